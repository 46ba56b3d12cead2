/* On-policy collection by hand: the yardstick for the compiled engine.
 *
 * Plays the same episodes as the engine, draw by draw, on any model in the outcome layout with one
 * start state and normal rewards, and keeps the same statistics. Random numbers come from the
 * bit generator that NumPy hands over and from NumPy's own C routines.
 */
#include <stdint.h>
#include "numpy/random/bitgen.h"

double random_standard_normal(bitgen_t *stream);

void on_policy(bitgen_t *stream, int64_t episodes, int64_t horizon, int64_t states,
               int64_t actions, int64_t start, const double *policy, const int64_t *row_start,
               const int64_t *successor, const double *cumulative, const double *reward_mean,
               const double *reward_std, int64_t *visits, double *mean, double *squares,
               int64_t *outcome_count, double *outcome_mean)
{
    for (int64_t episode = 0; episode < episodes; episode++) {
        int64_t s = start;
        for (int64_t t = 0; t < horizon; t++) {
            double draw = stream->next_double(stream->state), reached = 0.0;
            int64_t a = 0;
            for (int64_t i = 0; i < actions; i++) {
                double share = policy[s * actions + i];
                if (share > 0.0) {
                    a = i;
                    reached += share;
                    if (draw < reached)
                        break;
                }
            }
            int64_t pair = s * actions + a;
            int64_t slot = row_start[pair], last = row_start[pair + 1] - 1;
            if (slot < last) {
                draw = stream->next_double(stream->state);
                while (slot < last && draw >= cumulative[slot])
                    slot++;
            }
            double reward = reward_mean[pair] + reward_std[pair] * random_standard_normal(stream);
            int64_t count = ++visits[pair];
            double delta = reward - mean[pair];
            mean[pair] += delta / (double)count;
            squares[pair] += delta * (reward - mean[pair]);
            int64_t seen = ++outcome_count[slot];
            outcome_mean[slot] += (reward - outcome_mean[slot]) / (double)seen;
            if (successor[slot] == states)
                break;
            s = successor[slot];
        }
    }
}

"""CartPole: continuous observations, the mean return with critics, and what bins make of it.

Critics learn from the episodes themselves what actions and start states explain of their returns.
That biases nothing. Observations that are cut into bins make a table, and another problem of it:
the check plays the policy itself and compares its mean return.
"""

import revar


def lean(observation):
    """Push towards the side to which the pole turns, now and then the other way."""
    return [0.1, 0.9] if observation[3] > 0 else [0.9, 0.1]


shared = {"episodes": 100, "horizon": 200, "seed": 0}
result = revar.evaluate("CartPole-v1", lean, critics=["linear"], **shared)
print(result.table())

bins = revar.Bins.uniform([-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0], [3, 3, 6, 6])
binned = revar.evaluate("CartPole-v1", lean, bins=bins, **shared)
print(f"\nin bins: {binned}")
check = revar.check_aggregation(binned, "CartPole-v1", lean, episodes=100, seed=1)
print(f"the check: {check}")

"""The optimal flow where collection costs something, or has limits, with a certificate.

Flows are mixtures of a few behaviors within the caps: what sweeps find, and best replies to prices.
A small convex program finds the best mixture that keeps the limits on sums, and their multipliers;
the best reply to the prices at that mixture bounds the optimum, and joins the mixture (column
generation).
"""

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.validation import pair_name
from revar.theory.costs import weighted_sum
from revar.theory.limited_steps import limited_sweeps
from revar.theory.mixtures import MixedFunctions, best_mixture_of
from revar.theory.restrictions import ROUNDING, Restrictions

FIRST_SWEEPS = 64
FIRST_REPLIES = 8
MOST_ROUNDS = 10
# Replies until the largest ratio of earnings to cost is known; each squares what is missing.
MOST_REPLIES = 20
# How much room below the limits on sums is enough to start from.
ENOUGH_ROOM = 1e-2
# Where limits leave no room, visits per unit of cost that are no more than rounding.
TOO_RARE = 1e-6
# Flows of a smaller share than this leave the mixture.
LEAST_SHARE = 1e-11
# How small the error of the best mixture is, compared to the tolerance.
FINER = 0.1


class LimitedSolver:
    """The flows that are mixed, their shares, and the best lower bound so far.

    The first flow visits everything and has room below the limits on sums. Shares are of the cost,
    so that the visits they mix are visits per unit of cost.
    """

    def __init__(self, restrictions: Restrictions, objectives: FloatArray) -> None:
        self.restrictions = restrictions
        self.objectives = objectives  # [Q, S, A], the costs of each
        self.needed = np.asarray(objectives.any(axis=0))  # [S, A]
        restrictions.require_visits(self.needed)
        self.weights = np.full(len(objectives), 1.0 / len(objectives))  # [Q]
        self.multipliers = np.zeros(len(restrictions.most))  # [M], of the sums
        equal = np.full(restrictions.policy.shape, 1.0 / restrictions.policy.shape[1])
        halfway = 0.5 * (restrictions.policy + equal)
        self.start = restrictions.behavior_within_caps(halfway)
        self.flows = [restrictions.flow_of(self.start)]
        self.shares = np.ones(1)
        self.bound = 0.0
        # The limits with half of the rounding that is allowed: there is always some room.
        self.most = restrictions.most + 0.5 * restrictions.rounding

    @property
    def values(self) -> FloatArray:
        """Every objective at the mixture at hand, per unit of cost, [Q]."""
        visits = self._visits()
        return np.asarray(self.objectives[:, self.needed] @ (1.0 / visits[self.needed]))

    @property
    def limit(self) -> float:
        """The largest of the objectives."""
        return float(self.values.max()) if self.needed.any() else 0.0

    @property
    def gap(self) -> float:
        """How far the limit may be above the optimum."""
        return max(0.0, self.limit - self.bound)

    def solve(self, tolerance: float) -> None:
        """Sweep, mix and add replies until the gap is the tolerance's share of the limit."""
        self.make_room()
        if not self.needed.any():
            return
        sweeps, replies = FIRST_SWEEPS, FIRST_REPLIES
        for _ in range(MOST_ROUNDS):
            self.sweep(sweeps)
            for _ in range(replies):
                self.mix(tolerance)
                reply = self.reply()
                if self.gap <= tolerance * self.limit:
                    return
                self._join(reply, 1e-2)
            sweeps, replies = 2 * sweeps, int(1.5 * replies)

    def make_room(self) -> None:
        """Find a mixture that keeps all limits on sums, or say that there is none."""
        if not len(self.most):
            return
        for alone in np.eye(len(self.most)):
            self._join(self.restrictions.reply(self.restrictions.nothing, alone)[0], 0.5)
        self._join(self.restrictions.behavior_within_caps(self.restrictions.policy), 0.5)
        while True:
            rows = MixedFunctions.of_sums(self._rows())
            found = best_mixture_of(rows, self.shares, 0.01 * ROUNDING)
            self.shares = found.shares
            worst = float((self._rows() @ self.shares).max())
            if worst < -ENOUGH_ROOM:
                break
            multipliers = found.multipliers / self.restrictions.units
            reply, earned = self.restrictions.reply(self.restrictions.nothing, multipliers)
            # No behavior has a weighted mean of the excesses below this one.
            if -earned - multipliers @ self.most >= worst - 0.1 * ROUNDING:
                break
            self._join(reply, 0.1)
        if worst >= 0.0:  # a vertex may have what the inside of a thin set has not
            excess = self._rows().max(axis=0)
            worst = float(excess.min())
            self.shares = np.eye(len(excess))[int(np.argmin(excess))]
        if worst >= 0.0:
            raise InputError(
                f"no behavior keeps all of {' and '.join(self.restrictions.names)} at once"
            )
        if worst >= -float((self.restrictions.rounding / self.restrictions.units).max()):
            self._require_visits()
        self._join(self.start, 0.5)
        self.flows, self.shares = [self.restrictions.flow_of(self.behavior)], np.ones(1)

    def sweep(self, count: int) -> None:
        """Sweep from the mixture, at the multipliers at hand, and add what comes of it."""
        restrictions, mdp = self.restrictions, self.restrictions.mdp
        behavior = self.behavior
        worth, later = restrictions.own_worth(self.multipliers / self.cost)
        limited_sweeps(
            mdp.arrays.outcomes,
            mdp.arrays.initial,
            restrictions.layers,
            restrictions.caps,
            weighted_sum(self.weights, self.objectives),
            restrictions.nothing,
            1.0,
            restrictions.episode_cost,
            restrictions.visit_cost,
            worth,
            later,
            mdp.discount,
            behavior,
            count,
        )
        self._join(behavior, 0.5)

    def mix(self, tolerance: float) -> None:
        """The best shares of the flows at hand."""
        unit = self.limit
        visits = np.stack([flow.visits[self.needed] / flow.spent for flow in self.flows])
        minimised = np.arange(len(self.weights) + len(self.most)) < len(self.weights)
        costs = self.objectives[:, self.needed] / unit
        found = best_mixture_of(
            MixedFunctions(costs, visits, self._rows(), minimised),
            self._inner_shares(),
            max(FINER * tolerance, 1e-11),
        )
        self.shares = found.shares
        self.weights = found.multipliers[: len(self.weights)]
        self.multipliers = unit * found.multipliers[len(self.weights) :] / self.restrictions.units
        self._drop_unused()

    def reply(self) -> FloatArray:
        """The best reply to the prices at the mixture, [L, S, A]; it raises the bound.

        No y within the caps has p.y - multipliers.(sums - most) > r e(y) + excess; so p.y / e(y)
        is at most r + excess / (the least e) for all y that keep the limits. Dinkelbach's iteration
        raises r until nothing is in excess; if all episodes cost the same, one reply is exact.
        """
        restrictions = self.restrictions
        visits = self._visits()
        costs = weighted_sum(self.weights, self.objectives)
        prices = np.divide(costs, visits**2, out=np.zeros(costs.shape), where=costs > 0)
        value = rate = float(np.sum(prices * visits))
        allowance = float(self.multipliers @ restrictions.most)
        least = restrictions.least_cost
        for _ in range(MOST_REPLIES):
            reply, earned = restrictions.reply(
                prices - rate * restrictions.visit_cost, self.multipliers
            )
            excess = max(0.0, earned + allowance - rate * restrictions.episode_cost)
            if restrictions.episode_cost > 0.0 or excess <= ROUNDING * rate * least:
                break
            rate += excess / restrictions.flow_of(reply).spent
        rate += excess / least
        self.bound = max(self.bound, value**2 / rate)
        return reply

    @property
    def cost(self) -> float:
        """What an episode of the mixture costs."""
        if self.restrictions.episode_cost > 0.0:
            return self.restrictions.episode_cost
        return float(1.0 / (self.shares @ [1.0 / flow.spent for flow in self.flows]))

    @property
    def behavior(self) -> FloatArray:
        """The behavior of the mixture, [L, S, A]."""
        total = np.zeros(self.start.shape)
        for share, flow in zip(self.shares, self.flows, strict=True):
            total += share / flow.spent * flow.flow
        masses = total.sum(axis=2, keepdims=True)
        return np.asarray(np.divide(total, masses, out=self.start.copy(), where=masses > 0))

    def _visits(self) -> FloatArray:
        """Visits per unit of cost, [S, A]."""
        parts = [share / flow.spent for share, flow in zip(self.shares, self.flows, strict=True)]
        every = np.stack([flow.visits for flow in self.flows])
        return np.asarray(np.tensordot(parts, every, axes=1))

    def _rows(self) -> FloatArray:
        """How far each flow exceeds each limit on sums, per unit of cost, [M, K]."""
        excess = np.stack([(flow.sums - self.most) / flow.spent for flow in self.flows], axis=1)
        return np.asarray(excess / self.restrictions.units[:, None])

    def _require_visits(self) -> None:
        """Where there is no room but rounding, what is needed must be visited without it."""
        missing = self.needed & (self._visits() < TOO_RARE)
        if missing.any():
            pair = pair_name(int(np.argmax(missing)), missing.shape[1])
            names = " and ".join(self.restrictions.names)
            raise InputError(
                f"{names} can be kept, but leave no room for visits of {pair}, and the estimate "
                f"cannot do without them"
            )

    def _inner_shares(self) -> FloatArray:
        """Shares to start from: near those at hand, with half of the first flow's room."""
        count = len(self.shares)
        shares = 0.5 * self.shares + 0.5 / count
        rows = self._rows()
        room, excess = rows[:, 0], rows @ shares
        tight = excess > 0.5 * room
        first = float(((excess - 0.5 * room)[tight] / (excess - room)[tight]).max(initial=0.0))
        return np.asarray((1.0 - first) * shares + first * (np.arange(count) == 0))

    def _join(self, behavior: FloatArray, share: float) -> None:
        """Add a flow with a share at most this large that keeps the limits which are kept."""
        before = self._rows() @ self.shares if len(self.most) else np.zeros(0)
        self.flows.append(self.restrictions.flow_of(behavior))
        new = self._rows()[:, -1]
        kept = (before < 0) & (new > before)
        if kept.any():
            share = min(share, float((0.5 * before[kept] / (before - new)[kept]).min()))
        self.shares = np.append((1.0 - share) * self.shares, share)

    def _drop_unused(self) -> None:
        used = self.shares > LEAST_SHARE
        used[0] = True  # it visits everything, and has room
        shares = self.shares[used] / self.shares[used].sum()
        if (self._rows()[:, used] @ shares < 0).all():
            self.flows = [flow for flow, kept in zip(self.flows, used, strict=True) if kept]
            self.shares = shares

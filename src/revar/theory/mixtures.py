"""The best mixture of a few flows: a small convex program, by an interior-point method.

Shares w >= 0 of K flows sum to 1. The largest of some errors is minimised while some sums stay
below zero. Unknown are w, the largest error u, how far each function stays below its bound,
the multipliers of all of them, and z, those of w >= 0. Steps are Newton's on the optimality
conditions, with the predictor and corrector of Mehrotra (1992).
"""

from dataclasses import dataclass

import numpy as np

from revar.model.arrays import BoolArray, FloatArray

# Steps without progress, after which rounding is taken to be all that is left.
PATIENCE = 6
# How much of the way to the boundary a step may go.
NEARLY = 0.99


@dataclass(frozen=True, eq=False)
class MixedFunctions:
    """Errors sum_p C_qp / (sum_k w_k X_kp), and sums A w."""

    costs: FloatArray  # [Q, P]
    visits: FloatArray  # [K, P]
    sums: FloatArray  # [M, K]
    minimised: BoolArray  # [Q + M] the functions whose largest is minimised

    @classmethod
    def of_sums(cls, sums: FloatArray) -> "MixedFunctions":
        """No errors: the largest of the sums is minimised."""
        none = np.zeros((sums.shape[1], 0))
        return cls(np.zeros((0, 0)), none, sums, np.ones(len(sums), dtype=bool))

    def values(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """All functions [R] and their gradients [R, K]."""
        inverse = 1.0 / (shares @ self.visits)
        values = np.concatenate([self.costs @ inverse, self.sums @ shares])
        return values, np.concatenate([-(self.costs * inverse**2) @ self.visits.T, self.sums])

    def curvature(self, shares: FloatArray, multipliers: FloatArray) -> FloatArray:
        """The Hessian of the functions' weighted sum, [K, K]."""
        weight = multipliers[: len(self.costs)] @ self.costs / (shares @ self.visits) ** 3
        return np.asarray((self.visits * (2.0 * weight)) @ self.visits.T)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of the flows, and the multipliers of the functions (of the minimised: sum 1)."""

    shares: FloatArray  # [K]
    multipliers: FloatArray  # [R]


def best_mixture_of(functions: MixedFunctions, start: FloatArray, tolerance: float) -> Mixture:
    """Minimise to within `tolerance`, in the unit of the functions.

    At `start` [K], positive shares that sum to 1, functions that are not minimised must be
    negative; they stay so.
    """
    minimised = functions.minimised
    values, _ = functions.values(start)
    highest = float(values[minimised].max())
    level = highest + max(0.1 * abs(highest), 10.0 * tolerance)
    below = minimised * level - values
    barrier = (level - highest) / (len(values) + len(start))
    point = _Point(
        start,
        level,
        below,
        np.where(minimised, 1.0 / minimised.sum(), barrier / below),
        barrier / start,
        0.0,
    )
    best, least, since = point, np.inf, 0
    while since < PATIENCE:
        system = _System(functions, point)
        wrong = system.wrong()
        since = 0 if wrong < least else since + 1
        best, least = (point, wrong) if wrong < least else (best, least)
        following = system.step() if least > tolerance else None
        if following is None:
            break
        point = following
    total = best.multipliers[minimised].sum()
    return Mixture(best.shares / best.shares.sum(), best.multipliers / total)


@dataclass(frozen=True, eq=False)
class _Point:
    """All unknowns, or changes of them."""

    shares: FloatArray  # [K]
    level: float  # u
    below: FloatArray  # [R]
    multipliers: FloatArray  # [R]
    bounds: FloatArray  # [K] z
    balance: float  # the multiplier of sum w = 1

    def moved(self, change: "_Point", size: float) -> "_Point":
        return _Point(
            self.shares + size * change.shares,
            self.level + size * change.level,
            self.below + size * change.below,
            self.multipliers + size * change.multipliers,
            self.bounds + size * change.bounds,
            self.balance + size * change.balance,
        )

    def products(self) -> tuple[FloatArray, FloatArray]:
        """What is zero at the optimum: multipliers times what they belong to."""
        return self.multipliers * self.below, self.bounds * self.shares

    def barrier(self) -> float:
        """The mean of the products."""
        return float(np.concatenate(self.products()).mean())

    def largest_step(self, change: "_Point") -> float:
        """The step that keeps positive what must be."""
        values = np.concatenate([self.shares, self.below, self.multipliers, self.bounds])
        changes = np.concatenate([change.shares, change.below, change.multipliers, change.bounds])
        falling = changes < 0
        ways = -values[falling] / changes[falling]
        return min(1.0, NEARLY * float(ways.min(initial=np.inf)))


class _System:
    """The optimality conditions around a point, made linear."""

    def __init__(self, functions: MixedFunctions, point: _Point) -> None:
        self.point = point
        self.minimised = functions.minimised.astype(np.float64)
        values, slopes = functions.values(point.shares)
        self.over = values - self.minimised * point.level + point.below  # [R]
        self.slope = point.multipliers @ slopes - point.bounds + point.balance  # [K]
        self.unweighted = 1.0 - float(point.multipliers @ self.minimised)
        self.jacobian = np.hstack([slopes, -self.minimised[:, None]])  # [R, K+1]
        count, rows = len(point.shares), len(values)
        # Unknown are the changes of shares, level, multipliers and balance. The multipliers stay:
        # without them the system would be smaller, and far worse conditioned.
        matrix = np.zeros((count + rows + 2, count + rows + 2))
        matrix[:count, :count] = functions.curvature(point.shares, point.multipliers)
        matrix[range(count), range(count)] += point.bounds / point.shares
        matrix[count + 1 : -1, : count + 1] = self.jacobian
        matrix[: count + 1, count + 1 : -1] = self.jacobian.T
        places = range(count + 1, count + 1 + rows)
        matrix[places, places] = -point.below / point.multipliers
        matrix[:count, -1] = matrix[-1, :count] = 1.0
        # Scaled by the diagonal: shares that vanish would spoil the solution for the others.
        self.unit = np.ones(len(matrix))
        self.unit[:count] = 1.0 / np.sqrt(np.maximum(np.diag(matrix)[:count], 1e-300))
        self.matrix = matrix * self.unit[:, None] * self.unit

    def wrong(self) -> float:
        """How far the conditions are from holding."""
        gap = sum(float(part.sum()) for part in self.point.products())
        slope, over = float(np.abs(self.slope).max()), float(np.abs(self.over).max())
        return max(gap, slope, over, abs(self.unweighted))

    def step(self) -> _Point | None:
        """The next point: a step that looks ahead, then one that allows for what it saw.

        None where rounding leaves no direction.
        """
        point = self.point
        try:
            inverse: FloatArray = np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        ahead = self._change(inverse, np.zeros(point.below.shape), np.zeros(point.shares.shape))
        barrier = point.barrier()
        reached = point.moved(ahead, point.largest_step(ahead)).barrier()
        target = barrier * max((reached / barrier) ** 3, 1e-4)
        change = self._change(
            inverse,
            target - ahead.multipliers * ahead.below,
            target - ahead.bounds * ahead.shares,
        )
        following = point.moved(change, point.largest_step(change))
        return following if np.isfinite(following.shares).all() else None

    def _change(self, inverse: FloatArray, target: FloatArray, bound_target: FloatArray) -> _Point:
        """Newton's step to those products of multipliers [R] and bounds [K]."""
        point = self.point
        count = len(point.shares)
        products, bound_products = point.products()
        right = np.concatenate(
            [
                -self.slope + (bound_target - bound_products) / point.shares,
                [-self.unweighted],
                -self.over - (target - products) / point.multipliers,
                [1.0 - point.shares.sum()],
            ]
        )
        found = self.unit * (inverse @ (right * self.unit))
        shares, multipliers = found[:count], found[count + 1 : -1]
        return _Point(
            shares,
            float(found[count]),
            (target - products - point.below * multipliers) / point.multipliers,
            multipliers,
            (bound_target - bound_products - point.bounds * shares) / point.shares,
            float(found[-1]),
        )

"""The best mixture of a few flows: a small convex program, by a primal-dual interior-point method.

Shares w >= 0 of K flows sum to 1. Minimised is the largest of some convex functions of w, while
others stay below zero (Boyd and Vandenberghe 2004, Section 11.7).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revar.model.arrays import BoolArray, FloatArray

# Values [R] and gradients [R, K] at shares [K], and the Hessian of a weighted sum of them [K, K].
Functions = Callable[[FloatArray], tuple[FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]]

MOST_STEPS = 100
# How much of the way to the boundary a step may go, and how much smaller each barrier is.
NEARLY = 0.99
SHARPER = 10.0
# A step must lessen the residual by this much of what a linear model promises.
SUFFICIENT = 0.01


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of the flows, and the multipliers of the functions (those to minimise sum to 1)."""

    shares: FloatArray  # [K]
    multipliers: FloatArray  # [R]


def errors_and_sums(costs: FloatArray, visits: FloatArray, sums: FloatArray) -> Functions:
    """Errors sum_p C_qp / (sum_k w_k X_kp), then linear functions sums @ w.

    costs [Q, P], visits [K, P] and sums [M, K], P the pairs that have a cost.
    """

    def functions(
        shares: FloatArray,
    ) -> tuple[FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]:
        inverse = 1.0 / (shares @ visits)
        values = np.concatenate([costs @ inverse, sums @ shares])
        slopes = np.concatenate([-(costs * inverse**2) @ visits.T, sums])

        def curvature(multipliers: FloatArray) -> FloatArray:
            weight = 2.0 * (multipliers[: len(costs)] @ costs) * inverse**3
            return np.asarray((visits * weight) @ visits.T)

        return values, slopes, curvature

    return functions


def linear(sums: FloatArray) -> Functions:
    """The functions sums @ w alone, [M, K]."""
    return errors_and_sums(np.zeros((0, 0)), np.zeros((sums.shape[1], 0)), sums)


def best_mixture_of(
    functions: Functions,
    minimised: BoolArray,
    start: FloatArray,
    tolerance: float,
) -> Mixture:
    """Minimise the largest of the `minimised` [R] functions; the others are kept below zero.

    At `start` [K], positive shares that sum to 1, they must be so. Ends within `tolerance`, in the
    unit of the functions.
    """
    shares = start / start.sum()
    values, slopes, curvature = functions(shares)
    coupled = minimised.astype(np.float64)
    level = values[minimised].max() + max(10.0 * tolerance, 1e-3 * abs(values[minimised].max()))
    below = coupled * level - values  # [R] > 0
    count = len(values) + len(shares)
    barrier = (level - values[minimised].max()) / count
    multipliers = np.where(minimised, 1.0 / minimised.sum(), barrier / below)
    bounds = barrier / shares  # multipliers of w >= 0
    balance = 0.0
    for _ in range(MOST_STEPS):
        gap = multipliers @ below + bounds @ shares
        slope = multipliers @ slopes - bounds + balance
        if gap <= tolerance and np.abs(slope).max() <= tolerance:
            break
        barrier = gap / count / SHARPER
        step = _newton_step(
            *(shares, multipliers, bounds, balance, below, slopes, coupled, barrier),
            curvature(multipliers),
        )
        if not np.isfinite(step.shares).all():
            break
        size = _largest_step(shares, step.shares, multipliers, step.multipliers, bounds, step.bounds)
        residual = _residual(
            *(shares, multipliers, bounds, balance, below, slopes, coupled, barrier)
        )
        for _ in range(60):
            trial = shares + size * step.shares
            trial_values, trial_slopes, trial_curvature = functions(trial)
            trial_level = level + size * step.level
            trial_below = coupled * trial_level - trial_values
            if (trial_below > 0).all():
                after = _residual(
                    trial,
                    multipliers + size * step.multipliers,
                    bounds + size * step.bounds,
                    balance + size * step.balance,
                    trial_below,
                    trial_slopes,
                    coupled,
                    barrier,
                )
                if after <= (1.0 - SUFFICIENT * size) * residual:
                    break
            size *= 0.5
        else:
            break
        shares, level, below = trial, trial_level, trial_below
        slopes, curvature = trial_slopes, trial_curvature
        multipliers = multipliers + size * step.multipliers
        bounds = bounds + size * step.bounds
        balance += size * step.balance
    total = multipliers[minimised].sum()
    return Mixture(shares / shares.sum(), multipliers / total)


@dataclass(frozen=True, eq=False)
class _Step:
    shares: FloatArray
    level: float
    multipliers: FloatArray
    bounds: FloatArray
    balance: float


def _newton_step(
    shares: FloatArray,
    multipliers: FloatArray,
    bounds: FloatArray,
    balance: float,
    below: FloatArray,
    slopes: FloatArray,
    coupled: FloatArray,
    barrier: float,
    curvature: FloatArray,
) -> _Step:
    """Of the optimality conditions with complementarity `barrier`; unknown are shares and level."""
    count = len(shares)
    jacobian = np.hstack([slopes, -coupled[:, None]])  # [R, K+1] of the values minus the level
    system = np.zeros((count + 2, count + 2))
    system[:-1, :-1] = (jacobian.T * (multipliers / below)) @ jacobian
    system[:count, :count] += curvature
    system[range(count), range(count)] += bounds / shares
    system[:count, -1] = system[-1, :count] = 1.0
    right = np.zeros(count + 2)
    right[:-1] = -(jacobian.T @ (barrier / below))
    right[count] -= 1.0
    right[:count] += barrier / shares - balance
    right[-1] = 1.0 - shares.sum()
    # Scaled by the diagonal: shares that vanish would spoil the solution for the others.
    unit = np.ones(count + 2)
    unit[:count] = 1.0 / np.sqrt(np.maximum(np.diag(system)[:count], 1e-300))
    try:
        found = unit * np.linalg.solve(system * unit[:, None] * unit, right * unit)
    except np.linalg.LinAlgError:
        found = np.full(count + 2, np.nan)
    moved = jacobian @ found[:-1]
    return _Step(
        found[:count],
        float(found[count]),
        (multipliers * moved + barrier) / below - multipliers,
        (barrier - bounds * found[:count]) / shares - bounds,
        float(found[-1]),
    )


def _largest_step(*pairs: FloatArray) -> float:
    """The step that keeps everything positive, of positive arrays and their changes in turn."""
    largest = 1.0
    for values, changes in zip(pairs[::2], pairs[1::2], strict=True):
        falling = changes < 0
        if falling.any():
            largest = min(largest, NEARLY * float((-values[falling] / changes[falling]).min()))
    return largest


def _residual(
    shares: FloatArray,
    multipliers: FloatArray,
    bounds: FloatArray,
    balance: float,
    below: FloatArray,
    slopes: FloatArray,
    coupled: FloatArray,
    barrier: float,
) -> float:
    parts = [
        multipliers @ slopes - bounds + balance,
        [1.0 - multipliers @ coupled, shares.sum() - 1.0],
        multipliers * below - barrier,
        bounds * shares - barrier,
    ]
    return float(np.sqrt(sum(np.sum(np.square(part)) for part in parts)))

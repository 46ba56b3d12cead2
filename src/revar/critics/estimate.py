"""Returns with learned control variates: what critics explain is subtracted, and nothing is biased.

    Y = G - sum over t of discount^t A(s_t, a_t) - (u(s_0) - mean of u over extra resets)

A and u are weighted sums of what critics say; both were made without the fold that they serve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from revar.critics.given import given_columns
from revar.critics.interface import FOLDS, Columns, CriticFamily, Experience, ValueFunction
from revar.critics.stacking import LEAST_RESETS, Stack, fit_stack
from revar.critics.sums import episode_sums
from revar.model.arrays import FloatArray

LEAST_EPISODES = 2 * FOLDS  # with fewer, returns stay as they are


@dataclass(frozen=True, eq=False)
class CorrectedReturns:
    """Returns, and what is left of them where critics explained the rest."""

    returns: FloatArray  # [K] G
    corrected: FloatArray  # [K] Y, with the mean over resets
    after_actions: FloatArray  # [K] G less the advantages
    reset_variance: float  # of the value, because there are finitely many extra resets
    weights: Mapping[str, float]  # of every column's advantages, a mean over worlds
    start_weights: Mapping[str, float]  # of every column's values at first observations

    @property
    def value(self) -> float:
        """The estimate: the mean of the corrected returns."""
        return float(self.corrected.mean())

    @property
    def standard_error(self) -> float:
        """Of the value; NaN for a single episode."""
        return float(np.sqrt(_mean_variance(self.corrected) + self.reset_variance))

    @property
    def mean_return(self) -> float:
        """The plain mean of returns."""
        return float(self.returns.mean())

    @property
    def mean_return_error(self) -> float:
        """Its standard error; NaN for a single episode."""
        return float(np.sqrt(_mean_variance(self.returns)))

    @property
    def actions_share(self) -> float:
        """The share of the variance of returns that the draws of actions took."""
        return self._share(_mean_variance(self.returns) - _mean_variance(self.after_actions))

    @property
    def start_share(self) -> float:
        """The share that the first observation took, less what finitely many resets cost."""
        before = _mean_variance(self.after_actions)
        return self._share(before - _mean_variance(self.corrected) - self.reset_variance)

    def _share(self, variance: float) -> float:
        whole = _mean_variance(self.returns)
        return variance / whole if whole > 0 else 0.0


def _mean_variance(values: FloatArray) -> float:
    """The estimated variance of a mean."""
    return float(values.var(ddof=1)) / values.size if values.size > 1 else float("nan")


def estimate_returns(
    experience: Experience,
    families: Sequence[CriticFamily],
    given: Sequence[ValueFunction] = (),
    seed: int = 0,
) -> CorrectedReturns:
    """The corrected return of every episode, with critics of the families.

    Critics in `given` are fixed: they must not have seen any of these episodes. Each is one more
    column, whose weight is learned like that of the others.
    """
    returns = episode_sums(experience, experience.rewards)
    if returns.size < LEAST_EPISODES:
        return CorrectedReturns(returns, returns, returns, 0.0, {}, {})
    found = [family.cross_fit(experience, seed) for family in families]
    found.extend(given_columns(experience, given))
    if not found:
        return CorrectedReturns(returns, returns, returns, 0.0, {}, {})
    columns = join_columns(found)
    return correct(experience, columns, fit_stack(experience, columns))


def correct(experience: Experience, columns: Columns, stack: Stack) -> CorrectedReturns:
    """The returns less what the stack explains of them."""
    returns = episode_sums(experience, experience.rewards)
    after_actions = returns - episode_sums(experience, stack.advantages(columns, experience))
    corrected, reset_variance = after_actions, 0.0
    resets = experience.resets.shape[0]
    if resets >= LEAST_RESETS:
        at_resets = stack.reset_values(columns)  # [world, R]
        shares = np.bincount(experience.folds, minlength=FOLDS) / returns.size
        means = at_resets.mean(axis=1)
        explained = stack.first_values(columns, experience) - means[experience.folds]
        corrected = after_actions - explained
        reset_variance = float((shares @ at_resets).var(ddof=1)) / resets
    return CorrectedReturns(
        returns,
        corrected,
        after_actions,
        reset_variance,
        _by_name(columns, stack.weights),
        _by_name(columns, stack.start_weights),
    )


def _by_name(columns: Columns, weights: FloatArray) -> dict[str, float]:
    return dict(zip(columns.names, weights.mean(axis=0).tolist(), strict=True))


def join_columns(found: Sequence[Columns]) -> Columns:
    """The columns of several critics beside each other."""
    if len(found) == 1:
        return found[0]
    with_values = [
        np.zeros_like(each.advantages) if each.values is None else each.values for each in found
    ]
    return Columns(
        tuple(name for each in found for name in each.names),
        np.concatenate([each.advantages for each in found], axis=2),
        np.concatenate([each.first_values for each in found], axis=2),
        np.concatenate([each.reset_values for each in found], axis=2),
        np.concatenate(with_values, axis=2),
    )

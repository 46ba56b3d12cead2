"""Returns with learned control variates: what critics explain is subtracted, and nothing is biased.

    Y = G - sum over t of discount^t A(s_t, a_t) - (u(s_0) - mean of u over extra resets)

A and u are weighted sums of what critics say; both were made without the fold that they serve.
"""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from revar.critics.given import given_columns
from revar.critics.interface import (
    FOLDS,
    Columns,
    CriticFamily,
    Experience,
    ValueFunction,
    folds_of,
)
from revar.critics.linear import LinearFamily
from revar.critics.stacking import LEAST_RESETS, Stack, fit_stack
from revar.critics.sums import episode_sums, in_units
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray

FAMILIES = ("linear", "network")
LEAST_EPISODES = 2 * FOLDS  # with fewer, returns stay as they are
# Of returns that differ by a smaller share of their size, critics get more wrong than they explain.
LEAST_SPREAD = 1e-3
EXPLAINED = ("by_actions", "by_start", "reset_values")
NETWORK_FROM = 50  # episodes: with 25 networks made some intervals wider, docs/any_environment.md


@dataclass(frozen=True, eq=False)
class CorrectedReturns:
    """Returns, and what critics of every world explain of them.

    What is taken from a return is what the world without its fold says; other worlds say what it
    would have been without another fold as well.
    """

    returns: FloatArray  # [K] G
    by_actions: FloatArray  # [world, K] explained by the draws of actions
    by_start: FloatArray  # [world, K] by the first observation, less the mean over resets
    reset_values: FloatArray  # [world, R] what is said of extra resets
    weights: Mapping[str, float]  # of every column's advantages, a mean over worlds
    start_weights: Mapping[str, float]  # of every column's values at first observations

    @property
    def folds(self) -> IntArray:
        """The fold of every episode."""
        return folds_of(self.returns.size)

    @property
    def after_actions(self) -> FloatArray:
        """G less the advantages, [K]."""
        return self.returns - self._own(self.by_actions)

    @property
    def corrected(self) -> FloatArray:
        """Y, [K]."""
        return self.after_actions - self._own(self.by_start)

    @property
    def at_resets(self) -> FloatArray:
        """What is said of extra resets, by all worlds together, [R]."""
        shares = np.bincount(self.folds, minlength=FOLDS) / self.folds.size
        return np.asarray(shares @ self.reset_values)

    @property
    def fold_changes(self) -> FloatArray:
        """What each fold changed in the others' shares of the value, [fold, other]."""
        explained = self.by_actions + self.by_start
        changed = self._own(explained) - explained  # [other, K]
        of_fold = self.folds[:, None] == np.arange(FOLDS)
        return np.asarray((changed @ of_fold).T / self.folds.size)

    def _own(self, said: FloatArray) -> FloatArray:
        """What the world without its fold says of each episode, [K]."""
        return np.asarray(said[self.folds, np.arange(self.folds.size)])

    @property
    def value(self) -> float:
        """The estimate: the mean of the corrected returns."""
        return float(self.corrected.mean())

    @property
    def standard_error(self) -> float:
        """Of the value; NaN for a single episode."""
        added = self.reset_variance + self.fold_covariance
        return float(np.sqrt(_mean_variance(self.corrected) + added))

    @property
    def fold_covariance(self) -> float:
        """Of the value, because folds teach each other's critics."""
        return float(joint_fold_covariance([self.fold_changes])[0, 0])

    @property
    def reset_variance(self) -> float:
        """Of the value, because there are finitely many extra resets."""
        return _mean_variance(self.at_resets) if self.at_resets.size else 0.0

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

    @property
    def unexplained_share(self) -> float:
        """The share that no critic saw; with the two above it sums to 1."""
        return self._share(_mean_variance(self.corrected) + self.reset_variance)

    @property
    def learning_share(self) -> float:
        """What is added to the variance because critics of one fold learned from the others."""
        return self._share(self.fold_covariance)

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
    scaled, unit = in_units(experience)
    returns = episode_sums(experience, experience.rewards)
    found: list[Columns] = []
    differ = np.ptp(returns) > LEAST_SPREAD * np.abs(returns).max(initial=0.0)
    if differ and returns.size >= LEAST_EPISODES:
        found.extend(family.cross_fit(scaled, seed) for family in families)
        found.extend(given_columns(scaled, given, unit, seed))
    if not found:
        nothing = np.zeros((FOLDS, returns.size))
        return CorrectedReturns(returns, nothing, nothing, np.zeros((FOLDS, 0)), {}, {})
    columns = join_columns(found)
    corrected = correct(scaled, columns, fit_stack(scaled, columns))
    scales = {name: getattr(corrected, name) * unit for name in EXPLAINED}
    return replace(corrected, returns=returns, **scales)


def default_families(
    names: Sequence[str] | None = None, episodes: int | None = None
) -> tuple[CriticFamily, ...]:
    """The families of these names; by default linear critics, and networks where they are usual.

    That is where JAX is installed, and there are enough episodes to teach them more than noise.
    """
    if names is None:
        learnable = all(importlib.util.find_spec(each) for each in ("jax", "optax"))
        enough = episodes is None or episodes >= NETWORK_FROM
        names = FAMILIES if learnable and enough else FAMILIES[:1]
    for name in names:
        if name not in FAMILIES:
            raise InputError(f"there are no critics {name!r}; there are {', '.join(FAMILIES)}")
    return tuple(_family(name) for name in names)


def _family(name: str) -> CriticFamily:
    if name == "linear":
        return LinearFamily()
    family: CriticFamily = importlib.import_module("revar.critics.network").NetworkFamily()
    return family


def correct(experience: Experience, columns: Columns, stack: Stack) -> CorrectedReturns:
    """The returns, and what the stack explains of them in every world.

    Where means over resets are not known for every critic, other worlds say the same of first
    observations as the own one: then only corrections by actions tell what folds teach each other.
    """
    returns, fold = episode_sums(experience, experience.rewards), experience.folds
    by_actions, by_start = np.zeros((FOLDS, fold.size)), np.zeros((FOLDS, fold.size))
    resets = experience.resets.shape[0] >= LEAST_RESETS
    reset_values = stack.reset_values(columns) if resets else np.zeros((FOLDS, 0))  # [world, R]
    for world in range(FOLDS):
        for served in range(FOLDS):
            rows = fold == served
            weights = stack.weights_without[world, served]
            said = episode_sums(experience, columns.advantages[world] @ weights)
            by_actions[world, rows] = said[rows]
            if not resets:
                continue
            by = world if columns.reset_means is not None else served
            at_start = columns.first_values[by] @ stack.start_weights_without[by, served]
            center = reset_values[by].mean()
            if by != served and columns.reset_means is not None:
                center = columns.reset_means[by, served] @ stack.start_weights_without[by, served]
            by_start[world, rows] = at_start[rows] - center
    return CorrectedReturns(
        returns,
        by_actions,
        by_start,
        reset_values,
        _by_name(columns, stack.weights),
        _by_name(columns, stack.start_weights),
    )


def joint_fold_covariance(found: Sequence[FloatArray]) -> FloatArray:
    """Of several values, from changes [fold, other] in the same folds: folds correct each other.

    The mean of fold j varies with fold l by what l changed in j's correction, and the other way
    round. All else being uncorrelated, the mean product of these two changes is the covariance. No
    combination of values has a variance less than 0.
    """
    products = np.array([[np.sum(one * other.T) for other in found] for one in found])
    sizes, directions = np.linalg.eigh(products)
    return np.asarray((directions * sizes.clip(min=0.0)) @ directions.T)


def _by_name(columns: Columns, weights: FloatArray) -> dict[str, float]:
    return dict(zip(columns.names, weights.mean(axis=0).tolist(), strict=True))


def join_columns(found: Sequence[Columns]) -> Columns:
    """The columns of several critics beside each other."""
    if len(found) == 1:
        return found[0]
    with_values = [
        np.zeros_like(each.advantages) if each.values is None else each.values for each in found
    ]
    means = [each.reset_means for each in found if each.reset_means is not None]
    return Columns(
        tuple(name for each in found for name in each.names),
        np.concatenate([each.advantages for each in found], axis=2),
        np.concatenate([each.first_values for each in found], axis=2),
        np.concatenate([each.reset_values for each in found], axis=2),
        np.concatenate(with_values, axis=2),
        None if len(means) < len(found) else np.concatenate(means, axis=2),
    )

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
from revar.critics.interface import FOLDS, Columns, CriticFamily, Experience, ValueFunction
from revar.critics.linear import LinearFamily
from revar.critics.stacking import LEAST_RESETS, Stack, fit_stack
from revar.critics.sums import episode_sums, in_units
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line

FAMILIES = ("linear", "network")
LEAST_EPISODES = 2 * FOLDS  # with fewer, returns stay as they are
# Of returns that differ by a smaller share of their size, critics get more wrong than they explain.
LEAST_SPREAD = 1e-3
NETWORK_FROM = 50  # episodes: with 25 networks made some intervals wider, docs/any_environment.md


@dataclass(frozen=True, eq=False, repr=False)
class CorrectedReturns:
    """Returns, and what is left of them where critics explained the rest."""

    returns: FloatArray  # [K] G
    corrected: FloatArray  # [K] Y, with the mean over resets
    after_actions: FloatArray  # [K] G less the advantages
    at_resets: FloatArray  # [R] what is said of extra resets, by all worlds together
    fold_changes: FloatArray  # [fold, other] what the other changed in the fold's share of value
    weights: Mapping[str, float]  # of every column's advantages, a mean over worlds
    start_weights: Mapping[str, float]  # of every column's values at first observations

    __repr__ = in_a_line

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
        return float(joint_fold_covariance([self])[0, 0])

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
        nothing = np.zeros((FOLDS, FOLDS))
        return CorrectedReturns(returns, returns, returns, np.zeros(0), nothing, {}, {})
    columns = join_columns(found)
    corrected = correct(scaled, columns, fit_stack(scaled, columns))
    return replace(
        corrected,
        returns=returns,
        corrected=corrected.corrected * unit,
        after_actions=corrected.after_actions * unit,
        at_resets=corrected.at_resets * unit,
        fold_changes=corrected.fold_changes * unit,
    )


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
    """The returns less what the stack explains of them."""
    returns = episode_sums(experience, experience.rewards)
    after_actions = returns - episode_sums(experience, stack.advantages(columns, experience))
    corrected, at_resets = after_actions, np.zeros(0)
    if experience.resets.shape[0] >= LEAST_RESETS:
        by_world = stack.reset_values(columns)  # [world, R]
        shares = np.bincount(experience.folds, minlength=FOLDS) / returns.size
        means = by_world.mean(axis=1)
        explained = stack.first_values(columns, experience) - means[experience.folds]
        corrected = after_actions - explained
        at_resets = shares @ by_world
    return CorrectedReturns(
        returns,
        corrected,
        after_actions,
        at_resets,
        _fold_changes(experience, columns, stack, returns - after_actions, returns - corrected),
        _by_name(columns, stack.weights),
        _by_name(columns, stack.start_weights),
    )


def joint_fold_covariance(found: Sequence[CorrectedReturns]) -> FloatArray:
    """Of several values, from episodes in the same folds, because folds correct each other.

    The mean of fold j varies with fold l by what l changed in j's correction, and the other way
    round. All else being uncorrelated, the mean product of these two changes is the covariance. No
    variance is less than 0, and no covariance more than both variances allow.
    """
    changes = [each.fold_changes for each in found]
    products = np.array([[np.sum(one * other.T) for other in changes] for one in changes])
    deviations = np.sqrt(products.diagonal().clip(min=0.0))
    most = np.outer(deviations, deviations)
    return np.asarray(products.clip(-most, most))


def _fold_changes(
    experience: Experience,
    columns: Columns,
    stack: Stack,
    by_actions: FloatArray,
    explained: FloatArray,
) -> FloatArray:
    """What each fold changed in the others' shares of the value, [fold, other].

    Where means over resets are not known for every critic, only corrections by actions count.
    """
    fold, centers = experience.folds, columns.reset_means
    changes = np.zeros((FOLDS, FOLDS))
    for other in range(FOLDS):
        for served in set(range(FOLDS)) - {other}:
            weights = stack.weights_without[other, served]
            change = by_actions - episode_sums(experience, columns.advantages[other] @ weights)
            if centers is not None:
                at_start = columns.first_values[other] - centers[other, served]
                change += explained - by_actions
                change -= at_start @ stack.start_weights_without[other, served]
            changes[served, other] = change[fold == served].mean()
    shares = np.bincount(fold, minlength=FOLDS) / fold.size
    return np.asarray(shares[:, None] * changes)


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

"""Corrected returns of several policies whose episodes start alike.

Pairs take out by themselves what a common start explains, so that what narrows every value may
widen a difference. The draws of actions are no two policies' in common: what they explain of values
they explain of differences. But what is said of first observations is kept for the policies' mean
alone, and weighed anew for differences: in every world, by the pairs that it knows.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import helmert

from revar.critics.estimate import CorrectedReturns, joint_fold_covariance
from revar.critics.interface import FOLDS, folds_of
from revar.critics.stacking import Regression
from revar.model.arrays import FloatArray


def correct_pairs(found: Sequence[CorrectedReturns]) -> list[CorrectedReturns]:
    """The corrected returns of every policy; an episode without a partner stays as it is."""
    pairs = min(each.returns.size for each in found)
    resets = min(each.reset_values.shape[1] for each in found)
    by_start = np.stack([each.by_start[:, :pairs] for each in found])  # [J, world, K]
    at_resets = np.stack([each.reset_values[:, :resets] for each in found])  # [J, world, R]
    weights = _weigh(
        np.stack([each.returns[:pairs] - each.by_actions[:, :pairs] for each in found]), by_start
    )  # [world, fold]
    by_start = _with_differences(by_start, weights[:, folds_of(pairs)])
    at_resets = _with_differences(at_resets, np.diag(weights)[:, None])
    return [
        replace(
            each,
            by_start=np.column_stack([by_start[place], each.by_start[:, pairs:]]),
            reset_values=at_resets[place],
        )
        for place, each in enumerate(found)
    ]


def joint_covariance(pairs: Sequence[CorrectedReturns]) -> FloatArray:
    """Of the values: by episodes that started alike, shared resets, and folds that teach others."""
    counts = np.array([each.returns.size for each in pairs])  # they differ by one at most
    count, resets = int(counts.min()), pairs[0].reset_values.shape[1]
    if count < 2:
        return np.full((len(pairs), len(pairs)), np.inf)
    found = np.cov(np.stack([each.corrected[:count] for each in pairs]))
    found *= count / np.outer(counts, counts)
    np.fill_diagonal(found, [each.corrected.var(ddof=1) / each.corrected.size for each in pairs])
    if resets > 1:
        found += np.cov(np.stack([each.at_resets for each in pairs])) / resets
    return np.asarray(found + joint_fold_covariance([each.fold_changes for each in pairs]))


def _with_differences(said: FloatArray, weights: FloatArray) -> FloatArray:
    """What is said of all policies [J, ...], with so much of what differs from their mean."""
    mean = said.mean(axis=0)
    return np.asarray(mean + weights * (said - mean))


def _weigh(after_actions: FloatArray, by_start: FloatArray) -> FloatArray:
    """How much of what first observations say of differences is believed, [world, fold].

    For every world without its fold and each fold, as weights of critics are; both arrays are
    [J, world, K].
    """
    policies, _, count = by_start.shape
    fold, weights = folds_of(count), np.zeros((FOLDS, FOLDS))
    largest = np.abs(after_actions).max(initial=0.0)
    if largest == 0.0 or not by_start.any():
        return weights
    unit = 2.0 ** np.frexp(largest)[1]  # no square is too large
    contrasts = helmert(policies) / unit  # [J - 1, J] orthogonal, each of sum 0
    for world in range(FOLDS):
        known = fold != world
        said, targets = (contrasts @ each[:, world] for each in (by_start, after_actions))
        rows = [each - each[:, known].mean(axis=1, keepdims=True) for each in (said, targets)]
        regression = Regression.of(
            rows[0].reshape(-1, 1), rows[1].ravel(), np.tile(fold, policies - 1)
        )
        number = np.tile(np.arange(count), policies - 1)
        weights[world] = regression.shrunk_weights(world, number)[:, 0]
    return weights

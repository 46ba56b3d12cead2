"""The paper's optimal sampling proportions (Theorem 1 and Algorithm 2) and the oracle's error."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.model.arrays import BoolArray, FloatArray
from revar.model.mdp import TabularMDP
from revar.model.task import checked_policy
from revar.model.validation import checked_episodes
from revar.theory.costs import estimation_variance
from revar.theory.recursions import proportion_sweeps


@dataclass(frozen=True, eq=False)
class SamplingProportions:
    """How often the oracle takes each action, and how much variance each state stands for."""

    behavior: FloatArray  # [S, A] b*(a|s)
    normalizers: FloatArray  # [S] B(s)


def sampling_proportions(mdp: TabularMDP, policy: Any) -> SamplingProportions:
    """b*(a|s) and B(s) of Theorem 1, by Algorithm 2's sweeps, which are exact on a tree.

    On other structures they are the paper's approximation, which ignores that a state can be
    entered in several ways, and that the horizon may cut an episode short of what B counts: a
    last state that leads on, to itself for instance, counts as if it did. A bandit whose actions
    end the episode is the case of one sweep: b* is proportional to pi sigma (Proposition 1).
    Where nothing below a state varies, b* is the target policy.
    """
    target = checked_policy(mdp, policy)
    scores = np.zeros_like(target)
    normalizers = np.zeros(mdp.states + 1)
    proportion_sweeps(
        mdp.arrays.outcomes,
        mdp.arrays.reward_std,
        target,
        mdp.discount,
        mdp.horizon,
        scores,
        normalizers,
        np.empty(mdp.states + 1),
    )
    return SamplingProportions(normalized(scores, target), normalizers[: mdp.states].copy())


def oracle_mse(mdp: TabularMDP, policy: Any, episodes: int) -> float:
    """MSE after `episodes` episodes in the oracle's proportions, with known transitions.

    On a tree this is sum_s d0(s) B(s)^2 / K.
    """
    behavior = sampling_proportions(mdp, policy).behavior
    variance = estimation_variance(mdp, policy, behavior, known_transitions=True)
    return variance / checked_episodes(episodes)


def normalized(scores: FloatArray, policy: FloatArray) -> FloatArray:
    """Rows of `scores` made to sum to 1; a row of zeros becomes the policy's own row.

    A state that the policy never enters may have no row of its own; it gets equal shares.
    """
    totals = scores.sum(axis=1, keepdims=True)
    shares = np.divide(scores, totals, out=fallback_shares(policy), where=totals > 0)
    return np.asarray(shares)


def fallback_shares(policy: FloatArray) -> FloatArray:
    """The policy's rows where they are probabilities, equal shares elsewhere."""
    complete: BoolArray = np.isclose(policy.sum(axis=1, keepdims=True), 1.0)
    return np.where(complete, policy, 1.0 / policy.shape[1])

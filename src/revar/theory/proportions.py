"""The paper's optimal sampling proportions, the oracle's error, and bounds on both errors.

Theorem 1 and Algorithm 2; Proposition 2 on the oracle's error, Theorem 2 on ReVar's regret.
"""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import BoolArray, FloatArray
from revar.model.mdp import TabularMDP
from revar.model.records import in_a_line
from revar.model.task import check_policy
from revar.model.validation import check_episodes
from revar.theory.costs import estimation_variance
from revar.theory.recursions import proportion_sweeps
from revar.theory.values import occupancy


@dataclass(frozen=True, eq=False, repr=False)
class SamplingProportions:
    """How often the oracle takes each action, and how much variance each state stands for."""

    behavior: FloatArray  # [S, A] b*(a|s)
    normalizers: FloatArray  # [S] B(s)

    __repr__ = in_a_line


def sampling_proportions(mdp: TabularMDP, policy: Any) -> SamplingProportions:
    """b*(a|s) and B(s) of Theorem 1, by Algorithm 2's sweeps, which are exact on a tree.

    On other structures they are the paper's approximation, which ignores that a state can be
    entered in several ways, and that the horizon may cut an episode short of what B counts: a
    last state that leads on, to itself for instance, counts as if it did. A bandit whose actions
    end the episode is the case of one sweep: b* is proportional to pi sigma (Proposition 1).
    Where nothing below a state varies, b* is the target policy.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    """
    target = check_policy(mdp, policy)
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
    return SamplingProportions(normalize(scores, target), normalizers[: mdp.states].copy())


def oracle_mse(mdp: TabularMDP, policy: Any, episodes: int) -> float:
    """MSE after `episodes` episodes in the oracle's proportions, with known transitions.

    On a tree this is sum_s d0(s) B(s)^2 / K.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    episodes
        How many are collected.
    """
    behavior = sampling_proportions(mdp, policy).behavior
    variance = estimation_variance(mdp, policy, behavior, known_transitions=True)
    return variance / check_episodes(episodes)


def normalize(scores: FloatArray, policy: FloatArray) -> FloatArray:
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


def oracle_mse_bound(mdp: TabularMDP, policy: Any, episodes: int) -> float:
    """Proposition 2's sum over all states of a tree, an upper bound on `oracle_mse`.

    sum_s [B(s)^2/T(s) + gamma^2 sum_a pi(a|s)^2 sum_s' P(s'|s,a) B(s')^2/T(s')], where T(s) is
    the oracle's expected number of visits of s in `episodes` episodes. Its first term alone, at
    the root, is the exact error; the paper's proof bounds where equality holds.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    episodes
        How many are collected.
    """
    _require_tree(mdp, "Proposition 2")
    target = check_policy(mdp, policy)
    oracle = sampling_proportions(mdp, policy)
    visits = check_episodes(episodes) * occupancy(mdp, oracle.behavior).sum(axis=(0, 2))
    visited = visits > 0
    squares = np.divide(oracle.normalizers**2, visits, out=np.zeros(mdp.states), where=visited)
    ahead = (mdp.transitions @ squares).reshape(mdp.states, mdp.actions)
    children = mdp.discount**2 * np.sum(target**2 * ahead, axis=1)
    return float(np.sum(squares + np.where(visited, children, 0.0)))


def regret_bound(mdp: TabularMDP, policy: Any, episodes: int) -> float:
    """Theorem 2's leading terms for ReVar's excess error over the oracle, up to a constant.

    [B(root)^2 / b_min(root)^{3/2} + gamma sum_{levels l >= 2} max_{s in l, a} pi(a|root)
    P(s|root, a) B(s)^2 / b_min(s)^{3/2}] * sqrt(log(S A n^{11/2})) / n^{3/2}

    with n = episodes * horizon; b_min(s) the smallest b*(a|s) over the actions that the target
    policy takes; P(s|root, a) the probability of reaching s when a is taken first and the target
    policy followed after it. The theorem is for bounded rewards and n >= 4 S A. The constant that
    multiplies this and the lower-order terms are not stated in the paper, so that only its
    dependence on n and on the problem is to be read.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    episodes
        How many are collected.
    """
    _require_tree(mdp, "Theorem 2")
    roots = np.flatnonzero(mdp.initial)
    if roots.size != 1:
        raise InputError(f"Theorem 2 needs a single start state; this model has {roots.size}")
    root = int(roots[0])
    target = check_policy(mdp, policy)
    oracle = sampling_proportions(mdp, policy)
    samples = check_episodes(episodes) * mdp.horizon
    rate = sqrt(log(mdp.states * mdp.actions * samples**5.5)) / samples**1.5
    # pi(a|root) P(s|root,a) is a flow of the target policy: on a tree only one a leads to s.
    entered = occupancy(mdp, target).sum(axis=2)
    total = _term(oracle, target, root)
    for level in range(1, mdp.horizon):
        states = np.flatnonzero(entered[level])
        terms = [entered[level, s] * _term(oracle, target, int(s)) for s in states]
        total += mdp.discount * max(terms, default=0.0)
    return float(total * rate)


def _term(oracle: SamplingProportions, target: Any, state: int) -> float:
    variance = float(oracle.normalizers[state]) ** 2
    if variance == 0.0:
        return 0.0
    smallest = float(oracle.behavior[state][target[state] > 0].min())
    return variance / smallest**1.5 if smallest > 0 else inf


def _require_tree(mdp: TabularMDP, result: str) -> None:
    structure = mdp.structure()
    if not structure.is_tree:
        raise InputError(f"{result} holds on trees; this model is not one: {structure.reason}")

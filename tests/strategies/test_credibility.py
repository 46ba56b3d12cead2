"""Transitions to navigate by: drawn towards their state's, as far as the data allow it."""

import numpy as np
import pytest

from revar import simulate
from revar.model.arrays import FloatArray, IntArray, Outcomes
from revar.problems import problems
from revar.strategies.credibility import credible_transitions


def counted(counts: IntArray) -> tuple[Outcomes, IntArray]:
    """Frequencies and visits from counts [S, A, S+1], with a slot for every successor."""
    states, actions, successors = counts.shape
    visits = counts.sum(axis=2)
    shares = counts / np.maximum(visits, 1)[..., None]
    row_start = np.arange(states * actions + 1, dtype=np.int64) * successors
    successor = np.tile(np.arange(successors, dtype=np.int64), states * actions)
    return Outcomes(row_start, successor, shares.ravel()), visits


def table(outcomes: Outcomes, states: int, actions: int) -> FloatArray:
    """Probabilities as [S, A, S+1]."""
    dense = np.zeros((states * actions, states + 1))
    pairs = np.repeat(np.arange(states * actions), np.diff(outcomes.row_start))
    np.add.at(dense, (pairs, outcomes.successor), outcomes.probability)
    return dense.reshape(states, actions, states + 1)


def drawn(shares: FloatArray, visits: IntArray, seed: int) -> IntArray:
    """Counts [S, A, S+1] of so many visits."""
    rng = np.random.default_rng(seed)
    return np.array(
        [
            [rng.multinomial(n, p) for n, p in zip(*row, strict=True)]
            for row in zip(visits, shares, strict=True)
        ]
    )


def expected(counts: IntArray) -> FloatArray:
    """The rule written out: variances by explicit distances, every action in the policy."""
    visits = counts.sum(axis=2).astype(np.float64)
    shares = counts / visits[..., None]
    usual = counts.sum(axis=1) / visits.sum(axis=1)[:, None]
    within = (visits * (shares * (1 - shares)).sum(axis=2)).sum() / (visits - 1).sum()
    distance = (visits * ((shares - usual[:, None]) ** 2).sum(axis=2)).sum()
    total = visits.sum(axis=1)
    weight = (total - (visits**2).sum(axis=1) / total).sum()
    between = (distance - (visits.shape[1] - 1) * len(visits) * within) / weight
    own = visits / (visits + within / between) if between > 0 else np.zeros(visits.shape)
    return np.asarray(own[..., None] * shares + (1 - own)[..., None] * usual[:, None])


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_credibility_of_buehlmann_and_straub(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(7, 0.7), (6, 3))
    counts = drawn(shares, rng.integers(2, 30, (6, 3)), seed)
    policy = rng.dirichlet(np.ones(3), 6)
    result = table(credible_transitions(*counted(counts), policy), 6, 3)
    np.testing.assert_allclose(result, expected(counts), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(result.sum(axis=2), 1.0, rtol=1e-12)


def test_both_variances_are_found() -> None:
    """Laws drawn around their state: as near to them as with the best weight, which is known."""
    concentration, states, actions = 8.0, 400, 4
    rng = np.random.default_rng(0)
    shares = np.zeros((states, actions, states + 1))
    shares[..., :5] = rng.dirichlet(np.full(5, concentration / 5), (states, actions))
    visits = rng.integers(2, 40, (states, actions))
    counts = drawn(shares, visits, 1)
    result = table(
        credible_transitions(*counted(counts), np.ones(visits.shape) / actions), *visits.shape
    )
    frequencies = counts / visits[..., None]
    state = counts.sum(axis=1, keepdims=True) / visits.sum(axis=1)[:, None, None]
    # Of such laws the variance of a visit is `concentration` times that between the laws.
    own = visits / (visits + concentration)
    ideal = own[..., None] * frequencies + (1 - own)[..., None] * state
    errors = [((p - shares) ** 2).sum() for p in (result, ideal, frequencies)]
    assert errors[0] < 1.01 * errors[1] < 0.8 * errors[2]


def test_certain_outcomes_are_believed() -> None:
    counts = np.zeros((3, 2, 4), dtype=np.int64)
    counts[:, 0, 1] = 2
    counts[:, 1, 3] = 1
    outcomes, visits = counted(counts)
    result = credible_transitions(outcomes, visits, np.full((3, 2), 0.5))
    assert result.probability is outcomes.probability


def test_where_actions_make_no_difference_they_are_taken_together() -> None:
    counts = np.zeros((1, 2, 2), dtype=np.int64)
    counts[0] = [[3, 3], [2, 2]]
    result = table(credible_transitions(*counted(counts), np.full((1, 2), 0.5)), 1, 2)
    np.testing.assert_allclose(result, 0.5)


def test_only_visited_pairs_of_the_target_policy_count() -> None:
    counts = np.zeros((2, 3, 3), dtype=np.int64)
    counts[0] = [[4, 1, 0], [1, 3, 0], [0, 0, 50]]
    counts[1] = [[2, 2, 0], [0, 0, 0], [0, 0, 50]]
    policy = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    with_it = table(credible_transitions(*counted(counts), policy), 2, 3)
    counts[:, 2] = 0
    without = table(credible_transitions(*counted(counts), policy), 2, 3)
    np.testing.assert_array_equal(with_it, without)
    assert not with_it[1, 1].any()


def test_states_without_a_choice_say_nothing_of_those_with_one() -> None:
    counts = np.zeros((3, 2, 4), dtype=np.int64)
    counts[0] = [[3, 1, 0, 0], [1, 4, 0, 0]]
    counts[1] = [[2, 2, 0, 0], [5, 1, 0, 0]]
    policy = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    alone = table(credible_transitions(*counted(counts), policy), 3, 2)
    for forced in ([900, 0, 0, 0], [9, 9, 9, 9]):
        counts[2, 0] = forced
        result = table(credible_transitions(*counted(counts), policy), 3, 2)
        np.testing.assert_array_equal(result[:2], alone[:2])
        np.testing.assert_allclose(result[2, 0], np.array(forced) / sum(forced), rtol=1e-15)
    assert 0.5 < alone[0, 0, 0] < 0.75


def test_lucky_actions_do_not_make_the_estimate_low() -> None:
    """On the lake after 200 episodes the bias was 0.46 standard deviations without it."""
    lake, runs = problems.find("frozenlake")(), 2000
    result = simulate(lake.mdp, lake.policy, "flow", episodes=200, runs=runs, checkpoints=[200])
    errors = result.estimates[:, 0] - result.true_value
    assert errors.mean() / errors.std() > -0.33 - 3 / np.sqrt(runs)

"""What few visits have to say: transitions are drawn to their state's, shares to the policy's."""

import numpy as np
import pytest

from revar import TabularMDP, one_step_costs, optimal_flow, simulate
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes
from revar.problems import problems
from revar.strategies.flow import Flow
from revar.strategies.flow.ahead import keep_to_policy
from revar.strategies.flow.plan import share_prior
from revar.strategies.flow.transitions import credible_transitions
from revar.strategies.flow.tuning import DEFAULT_TUNING, Tuning


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
    result = table(credible_transitions(*counted(counts), policy)[0], 6, 3)
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
        credible_transitions(*counted(counts), np.ones(visits.shape) / actions)[0], *visits.shape
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
    result, prior = credible_transitions(outcomes, visits, np.full((3, 2), 0.5))
    assert result.probability is outcomes.probability
    assert prior == 0.0


def test_where_actions_make_no_difference_they_are_taken_together() -> None:
    counts = np.zeros((1, 2, 2), dtype=np.int64)
    counts[0] = [[3, 3], [2, 2]]
    result, prior = credible_transitions(*counted(counts), np.full((1, 2), 0.5))
    np.testing.assert_allclose(table(result, 1, 2), 0.5)
    assert prior == np.inf


def test_only_visited_pairs_of_the_target_policy_count() -> None:
    counts = np.zeros((2, 3, 3), dtype=np.int64)
    counts[0] = [[4, 1, 0], [1, 3, 0], [0, 0, 50]]
    counts[1] = [[2, 2, 0], [0, 0, 0], [0, 0, 50]]
    policy = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    with_it = table(credible_transitions(*counted(counts), policy)[0], 2, 3)
    counts[:, 2] = 0
    without = table(credible_transitions(*counted(counts), policy)[0], 2, 3)
    np.testing.assert_array_equal(with_it, without)
    # An action without data leads where the others of its state do.
    np.testing.assert_allclose(with_it[1, 1], [0.5, 0.5, 0.0])


def test_states_without_a_choice_say_nothing_of_those_with_one() -> None:
    counts = np.zeros((3, 2, 4), dtype=np.int64)
    counts[0] = [[3, 1, 0, 0], [1, 4, 0, 0]]
    counts[1] = [[2, 2, 0, 0], [5, 1, 0, 0]]
    policy = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    alone = table(credible_transitions(*counted(counts), policy)[0], 3, 2)
    for forced in ([900, 0, 0, 0], [9, 9, 9, 9]):
        counts[2, 0] = forced
        result = table(credible_transitions(*counted(counts), policy)[0], 3, 2)
        np.testing.assert_array_equal(result[:2], alone[:2])
        np.testing.assert_allclose(result[2, 0], np.array(forced) / sum(forced), rtol=1e-15)
    assert 0.5 < alone[0, 0, 0] < 0.75


def test_few_visits_leave_shares_to_the_policy() -> None:
    rng = np.random.default_rng(0)
    policy = rng.dirichlet(np.ones(3), 4)
    plan = rng.dirichlet(np.ones(3), (2, 4))
    policy[3] = plan[:, 3] = [0.4, 0.0, 0.6]  # an action that is never taken
    visits = np.array([[0, 5, 40], [3, 3, 3], [0, 0, 0], [1000, 0, 1]])
    layers = Layers(np.array([0, 1, 4]), np.array([0, 1, 2, 3]))
    behavior = plan.copy()
    keep_to_policy(behavior, layers, policy, visits, 6.0)
    own = visits / (visits + 6.0)
    mixed = own * plan + (1 - own) * policy
    mixed /= mixed.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(behavior[0, 0], mixed[0, 0], rtol=1e-14)
    np.testing.assert_allclose(behavior[1, 1:], mixed[1, 1:], rtol=1e-14)
    np.testing.assert_array_equal(behavior[0, 1:], plan[0, 1:])  # not reached at that step
    np.testing.assert_array_equal(behavior[1, 0], plan[1, 0])


def test_actions_that_lead_to_the_same_are_no_reason_for_doubt() -> None:
    alike = DEFAULT_TUNING.alike
    assert share_prior(0.1, alike) == pytest.approx(0.1, rel=1e-4)
    assert share_prior(6.0, alike) == pytest.approx(6.0, rel=0.1)
    assert share_prior(alike, alike) == alike / 2
    assert share_prior(np.inf, alike) == share_prior(0.0, alike) == 0.0


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("tuning", [Tuning(alike=0.1), Tuning(alike=1e3)])
def test_the_compiled_rule_is_as_cautious_as_plans_are(known: bool, tuning: Tuning) -> None:
    lake = problems.find("frozenlake")()
    strategy = Flow(known_transitions=known, tuning=tuning)
    alone = simulate(lake.mdp, lake.policy, strategy, episodes=80, runs=2)
    plain = simulate(lake.mdp, lake.policy, strategy, episodes=80, runs=2, compiled=False)
    np.testing.assert_array_equal(alone.visits, plain.visits)
    default = simulate(lake.mdp, lake.policy, Flow(known_transitions=known), episodes=80, runs=2)
    # Known ways leave nothing to doubt.
    assert np.array_equal(alone.visits, default.visits) == known


def test_where_ways_are_the_same_costs_alone_decide() -> None:
    """The next state is drawn whatever is done; 12% above the limit with a doubt of 20 visits.

    Plans are made more often than by default, so that what they rest on decides.
    """
    rng = np.random.default_rng(0)
    states, actions, episodes = 10, 3, 200
    law = rng.dirichlet(np.full(states, 20.0))
    mdp = TabularMDP(
        np.broadcast_to(law, (states, actions, states)),
        rng.normal(size=(states, actions)),
        np.tile([0.1, 1.0, 3.0], (states, 1)),
        law,
        5,
    )
    policy = np.tile([0.6, 0.3, 0.1], (states, 1))
    often = Flow(tuning=DEFAULT_TUNING._replace(growth=1.5))
    visits = simulate(mdp, policy, often, episodes=episodes, runs=200).visits
    errors = episodes * (one_step_costs(mdp, policy) / visits).sum(axis=(1, 2))
    above = errors / optimal_flow(mdp, policy).limit
    assert above.mean() < 1.045


@pytest.mark.slow
def test_lucky_actions_do_not_make_the_estimate_low() -> None:
    """On the lake after 200 episodes the bias was 0.46 standard deviations with neither.

    With transitions drawn together it was 0.32; shares that keep to the policy took half of that.
    """
    lake, runs = problems.find("frozenlake")(), 1000
    result = simulate(lake.mdp, lake.policy, "flow", episodes=200, runs=runs, checkpoints=[200])
    errors = result.estimates[:, 0] - result.true_value
    # With transitions drawn together alone this would fail in 99 of 100 cases.
    assert errors.mean() / errors.std() > -0.18 - 2 / np.sqrt(runs)

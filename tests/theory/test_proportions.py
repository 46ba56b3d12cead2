import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from revar import (
    TabularMDP,
    estimation_variance,
    oracle_mse,
    oracle_mse_bound,
    sampling_proportions,
)
from revar.errors import InputError
from revar.problems import problems
from tests.plain_model import MODELS, Floats, PlainModel, general_model, tree_model


def visits(model: PlainModel, behavior: Floats, discount: float = 1.0) -> Floats:
    """sum_t discount^t P(S_t = s, A_t = a), by dense forward recursion, [S, A]."""
    present = model.initial
    total = np.zeros((model.states, model.actions))
    for _ in range(model.horizon):
        taken = present[:, None] * behavior
        total += taken
        present = discount * np.einsum("sa,sap->p", taken, model.chance[:, :, :-1])
    return total


def reward_variance(model: PlainModel) -> Floats:
    """Var[R|s,a] over outcomes and noise."""
    mean = (model.chance * model.mean).sum(axis=2)
    return np.asarray(
        (model.chance * (model.std**2 + (model.mean - mean[:, :, None]) ** 2)).sum(axis=2)
    )


def variance_of(model: PlainModel, behavior: Floats) -> float:
    """K*MSE with known transitions: sum of (discounted target visits)^2 sigma^2 / visits."""
    weight = visits(model, model.policy, model.discount)
    cost = weight**2 * reward_variance(model)
    seen = visits(model, behavior)
    return float(np.sum(cost[cost > 0] / seen[cost > 0]))


@pytest.mark.parametrize("seed", range(12))
def test_no_minimiser_finds_better_proportions_on_a_tree(seed: int) -> None:
    model = tree_model(seed, by_outcome=seed % 2 == 1)

    def behavior_of(logits: Floats) -> Floats:
        table = logits.reshape(model.states, model.actions)
        table = np.exp(table - table.max(axis=1, keepdims=True))
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    found = optimize.minimize(
        lambda logits: np.log(variance_of(model, behavior_of(logits))),
        np.zeros(model.states * model.actions),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    oracle = sampling_proportions(model.mdp(), model.policy).behavior
    best = oracle_mse(model.mdp(), model.policy, 1)
    assert variance_of(model, oracle) == pytest.approx(best, rel=1e-12)
    assert np.exp(found.fun) == pytest.approx(best, rel=1e-8)
    # The value is flat around its minimum: 1e-8 in it are 1e-4 in the proportions.
    np.testing.assert_allclose(behavior_of(found.x), oracle, atol=1e-3)


@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 10**6))
def test_the_oracle_error_on_trees_is_the_normalizer_of_the_start(
    seed: int, by_outcome: bool, episodes: int
) -> None:
    model = tree_model(seed, by_outcome=by_outcome)
    mdp = model.mdp()
    assert mdp.structure().kind == "tree"
    normalizers = sampling_proportions(mdp, model.policy).normalizers
    expected = float(model.initial @ normalizers**2) / episodes
    assert oracle_mse(mdp, model.policy, episodes) == pytest.approx(expected, rel=1e-12)


def test_some_random_trees_have_several_start_states() -> None:
    # So that the test above speaks of them.
    several = [seed for seed in range(20) if (tree_model(seed).initial > 0).sum() > 1]
    assert len(several) > 3


@given(st.integers(0, 10_000))
def test_the_recursion_of_theorem_1_read_aloud(seed: int) -> None:
    model = tree_model(seed, by_outcome=seed % 2 == 1)
    oracle = sampling_proportions(model.mdp(), model.policy)
    sigma2 = reward_variance(model)

    def normalizer(state: int) -> float:
        return sum(score(state, action) for action in range(model.actions))

    def score(state: int, action: int) -> float:
        below = sum(
            model.chance[state, action, child] * normalizer(child) ** 2
            for child in range(model.states)
            if model.chance[state, action, child] > 0
        )
        inner = sigma2[state, action] + model.discount**2 * below
        return float(model.policy[state, action] * np.sqrt(inner))

    for state in range(model.states):
        scores = np.array([score(state, action) for action in range(model.actions)])
        assert oracle.normalizers[state] == pytest.approx(scores.sum(), rel=1e-12)
        np.testing.assert_allclose(oracle.behavior[state], scores / scores.sum(), rtol=1e-12)


@given(st.integers(0, 10_000))
def test_algorithm_2_read_aloud(seed: int) -> None:
    # Everywhere, not only on trees: L sweeps from B = 0, then the proportions from the last B.
    model = general_model(seed, by_outcome=seed % 2 == 1)
    oracle = sampling_proportions(model.mdp(), model.policy)
    sigma2 = reward_variance(model)

    def scores(normalizers: Floats) -> Floats:
        below = model.chance[:, :, :-1] @ normalizers**2
        return np.asarray(model.policy * np.sqrt(sigma2 + model.discount**2 * below))

    normalizers = np.zeros(model.states)
    for _ in range(model.horizon):
        normalizers = scores(normalizers).sum(axis=1)
    np.testing.assert_allclose(oracle.normalizers, normalizers, rtol=1e-12)
    final = scores(normalizers)
    np.testing.assert_allclose(
        oracle.behavior, final / final.sum(axis=1, keepdims=True), rtol=1e-12
    )


@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 100.0)), min_size=1, max_size=6))
def test_proposition_1(arms: list[tuple[float, float]]) -> None:
    weights, deviations = np.array(arms).T
    policy = weights / weights.sum()
    mdp = TabularMDP(np.zeros((1, len(arms), 1)), 0.0, deviations[None], [1.0], 1)
    assert mdp.structure().kind == "bandit"
    oracle = sampling_proportions(mdp, policy[None])
    expected = policy * deviations
    np.testing.assert_allclose(oracle.behavior[0], expected / expected.sum(), rtol=1e-12)
    assert oracle_mse(mdp, policy[None], 7) == pytest.approx(expected.sum() ** 2 / 7, rel=1e-12)


@pytest.mark.parametrize("problem_id", problems.ids())
def test_proportions_are_probabilities(problem_id: str) -> None:
    problem = problems.find(problem_id)()
    behavior = sampling_proportions(problem.mdp, problem.policy).behavior
    np.testing.assert_allclose(behavior.sum(axis=1), 1.0, rtol=1e-14)
    assert np.all(behavior[problem.policy == 0] == 0)


def test_where_nothing_varies_the_target_policy_is_followed() -> None:
    policy = np.array([[0.75, 0.25], [0.5, 0.5], [0.9, 0.1]])
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    deviations = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    mdp = TabularMDP(transitions, 1.0, deviations, [1.0, 0.0, 0.0], 2)
    oracle = sampling_proportions(mdp, policy)
    # Only action 1 of state 1 is noisy: everything goes there.
    assert oracle.behavior.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]
    assert oracle.normalizers.tolist() == [0.75, 1.0, 0.0]
    assert oracle_mse(mdp, policy, 1) == 0.5625


def test_states_without_a_row_get_equal_shares() -> None:
    mdp = TabularMDP(np.zeros((2, 2, 2)), 0.0, 1.0, [1.0, 0.0], 1)
    oracle = sampling_proportions(mdp, [[0.25, 0.75], [0.0, 0.0]])
    assert oracle.behavior.tolist() == [[0.25, 0.75], [0.5, 0.5]]


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000))
def test_the_oracle_never_loses_to_the_target_policy_on_trees(kind: str, seed: int) -> None:
    model = MODELS[kind](seed)
    mdp = model.mdp()
    on_policy = estimation_variance(mdp, model.policy, model.policy, known_transitions=True)
    assert variance_of(model, model.policy) == pytest.approx(on_policy, rel=1e-11)
    if mdp.structure().is_tree:
        assert oracle_mse(mdp, model.policy, 1) <= on_policy * (1 + 1e-12)


@pytest.mark.parametrize("episodes", [0, -1, 2.5, float("nan"), None])
@pytest.mark.parametrize("function", [oracle_mse, oracle_mse_bound])
def test_episodes_are_counted(function: object, episodes: object) -> None:
    problem = problems.find("tree")()
    assert callable(function)
    with pytest.raises(InputError) as caught:
        function(problem.mdp, problem.policy, episodes)
    assert str(caught.value) == (
        f"episodes is {episodes!r}; it must be a whole number of at least 1"
    )

"""BPG, ODI and DOpt: their behaviors against a listing of all trajectories, and their estimates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revar import (
    Task,
    VisitStatistics,
    doubly_robust_variance,
    importance_sampling_variance,
    per_decision_variance,
    return_variance,
    simulate,
)
from revar.errors import InputError
from revar.problems import Problem, problems
from revar.strategies import (
    BehaviorPolicyGradient,
    DoublyOptimal,
    OfflineDataInformed,
    Strategy,
)
from revar.testing import check_strategy
from revar.testing.problems import crossroads
from tests import enumeration
from tests.plain_model import MODELS, Floats, PlainModel
from tests.plain_simulation import dataset
from tests.strategies.measured import scaled_mse

Kind = type[BehaviorPolicyGradient] | type[DoublyOptimal] | type[OfflineDataInformed]
KINDS: list[Kind] = [BehaviorPolicyGradient, OfflineDataInformed, DoublyOptimal]
EXACT = 1e-9  # a floor that changes nothing

models = st.builds(
    lambda kind, seed, by_outcome: MODELS[kind](seed, by_outcome=by_outcome),
    st.sampled_from(sorted(MODELS)),
    st.integers(0, 10_000),
    st.booleans(),
)


def oracle_behavior(strategy: Strategy, model: PlainModel) -> Floats:
    task = Task.of(model.mdp(), model.policy)
    plan = strategy.plan(task, VisitStatistics(model.states, model.actions))
    assert plan.lasts is None
    return plan.scores if len(plan.scores) > 1 else plan.scores[0]


def variance(model: PlainModel, behavior: Floats, estimator: str) -> float:
    return enumeration.estimate_moments(model, behavior, estimator)[1]


@settings(max_examples=25)
@given(models, st.sampled_from([EXACT, 0.1, 0.5]))
def test_odi_lies_below_on_policy(model: PlainModel, floor: float) -> None:
    """Liu and Zhang (2024): the variance of per-decision estimates is nowhere above on-policy's."""
    behavior = oracle_behavior(OfflineDataInformed(known_model=True, floor=floor), model)
    found = variance(model, behavior, "per-decision")
    assert found <= variance(model, model.policy, "per-decision") * (1 + 1e-9) + 1e-9


@settings(max_examples=20)
@given(models)
def test_odi_is_the_return_s_second_moment(model: PlainModel) -> None:
    """And the best single step: any other action probabilities at step 0 do worse."""
    behavior = oracle_behavior(OfflineDataInformed(known_model=True, floor=EXACT), model)
    by_step = np.broadcast_to(behavior, (model.horizon, model.states, model.actions))
    for s in np.flatnonzero(model.initial).tolist():
        moments = np.zeros(model.actions)
        for path in enumeration.paths(model, start=s):
            action = path.steps[0][1]
            square = path.return_mean**2 + path.return_variance
            moments[action] += path.probability / model.policy[s, action] * square
        scores = model.policy[s] * np.sqrt(moments)
        np.testing.assert_allclose(by_step[0, s], scores / scores.sum(), rtol=1e-6, atol=1e-9)
    # The target policy from the next step on, as the derivation assumes.
    first = np.repeat(model.policy[None], model.horizon, axis=0)
    first[0] = by_step[0]
    best = variance(model, first, "per-decision")
    rng = np.random.default_rng(0)
    for _ in range(3):
        other = first.copy()
        other[0] = 0.9 * first[0] + 0.1 * rng.dirichlet(np.ones(model.actions), model.states)
        assert variance(model, other, "per-decision") >= best - 1e-8 * (1 + best)


@settings(max_examples=25)
@given(models, st.integers(0, 1000))
def test_dopt_is_optimal_for_doubly_robust_estimates(model: PlainModel, seed: int) -> None:
    """Liu, Chen and Zhang (2025): below on-policy, and below every other behavior."""
    behavior = oracle_behavior(DoublyOptimal(known_model=True, floor=EXACT), model)
    best = variance(model, behavior, "doubly-robust")
    slack = 1e-6 * (1 + best)
    assert best <= variance(model, model.policy, "doubly-robust") + slack
    rng = np.random.default_rng(seed)
    for share in (0.1, 1.0):
        drawn = rng.dirichlet(np.ones(model.actions), size=(model.horizon, model.states))
        other = (1 - share) * behavior + share * (0.8 * drawn + 0.2 / model.actions)
        assert best <= variance(model, other, "doubly-robust") + slack


@pytest.mark.parametrize("floor", [0.1, 0.5])
@settings(max_examples=10)
@given(model=models)
def test_a_floor_leaves_dopt_below_on_policy(floor: float, model: PlainModel) -> None:
    behavior = oracle_behavior(DoublyOptimal(known_model=True, floor=floor), model)
    found = variance(model, behavior, "doubly-robust")
    assert found <= variance(model, model.policy, "doubly-robust") * (1 + 1e-9) + 1e-9


@settings(max_examples=10)
@given(models)
def test_bpg_falls_with_every_step(model: PlainModel) -> None:
    """Hanna et al. (2017): the variance of importance sampling falls along the gradient."""
    found = [variance(model, model.policy, "ordinary")]
    for steps in (1, 2, 3, 5, 8, 30):
        strategy = BehaviorPolicyGradient(known_model=True, steps=steps, floor=EXACT)
        found.append(variance(model, oracle_behavior(strategy, model), "ordinary"))
    scale = 1e-8 * (1 + found[0])
    assert np.all(np.diff(found) <= scale)
    if model.actions > 1:
        assert found[1] < found[0]


def test_bpg_ends_at_the_best_stationary_behavior() -> None:
    """Where the gradient, taken along the probabilities of every state, vanishes."""
    model = MODELS["general"](5)
    strategy = BehaviorPolicyGradient(known_model=True, steps=2_000, floor=EXACT)
    behavior = oracle_behavior(strategy, model)
    best = variance(model, behavior, "ordinary")
    rng = np.random.default_rng(0)
    for share in (0.01, 0.1, 1.0):
        for _ in range(5):
            drawn = rng.dirichlet(np.ones(model.actions), size=model.states)
            other = (1 - share) * behavior + share * (0.8 * drawn + 0.2 / model.actions)
            assert best < variance(model, other, "ordinary")


# With the estimator of its paper, and that estimator's exact variance.
PAIRED: dict[str, tuple[Kind, str, Callable[..., float]]] = {
    "bpg": (BehaviorPolicyGradient, "importance-sampling", importance_sampling_variance),
    "odi": (OfflineDataInformed, "per-decision-importance-sampling", per_decision_variance),
    "dopt": (DoublyOptimal, "doubly-robust", doubly_robust_variance),
}
SMALL = [crossroads(), problems.find("tree")(3), problems.find("layered")()]


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
@pytest.mark.parametrize("strategy_id", PAIRED)
def test_the_oracle_s_estimates_have_the_variance_of_theory(
    problem: Problem, strategy_id: str
) -> None:
    kind, estimator, exact = PAIRED[strategy_id]
    mdp, policy = problem.mdp, problem.policy
    strategy = kind(known_model=True)
    task = Task.of(mdp, policy)
    behavior = strategy.plan(task, VisitStatistics(mdp.states, mdp.actions)).scores
    expected = exact(mdp, policy, behavior if len(behavior) > 1 else behavior[0])
    result = simulate(
        mdp, policy, strategy, episodes=400, runs=600, checkpoints=[400], estimator=estimator
    )
    errors = result.estimates[:, 0] - result.true_value
    assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(errors.size)
    assert scaled_mse(result).is_within(4, expected)
    # On the tree the band is narrow enough to tell it from Monte Carlo.
    assert expected < (0.8 if problem.name == "tree" else 1.0) * return_variance(mdp, policy)


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
@pytest.mark.parametrize("strategy_id", PAIRED)
def test_online_the_same_is_learned(problem: Problem, strategy_id: str) -> None:
    """Unbiased from the first episode on, and nearly as good as with the model."""
    kind, estimator, _ = PAIRED[strategy_id]
    result, oracle = (
        simulate(
            problem.mdp,
            problem.policy,
            strategy,
            episodes=600,
            runs=400,
            checkpoints=[30, 600],
            estimator=estimator,
        )
        for strategy in (kind(), kind(known_model=True))
    )
    errors = result.estimates - result.true_value
    assert np.all(np.abs(errors.mean(axis=0)) < 4 * errors.std(axis=0, ddof=1) / np.sqrt(400))
    learned, known = scaled_mse(result), scaled_mse(oracle)
    assert learned.mean < 1.15 * known.mean + 4 * np.hypot(learned.error, known.error)
    if problem.name == "tree":
        monte_carlo = return_variance(problem.mdp, problem.policy)
        assert learned.mean + 4 * learned.error < monte_carlo


@pytest.mark.parametrize("kind", KINDS)
def test_with_much_data_the_plan_is_the_oracle_s(kind: Kind) -> None:
    model = MODELS["layered"](2, by_outcome=True)
    statistics = VisitStatistics(model.states, model.actions)
    rng = np.random.default_rng(3)
    even = np.full(model.policy.shape, 1 / model.actions)
    statistics.record_many(dataset(model, even, 20_000, rng))
    task = Task.of(model.mdp(), model.policy)
    known = kind(known_model=True).plan(task, statistics)
    learned = kind().plan(task.without_model(), statistics)
    assert learned.lasts is not None
    assert learned.lasts > 0
    np.testing.assert_allclose(learned.scores, known.scores, atol=0.05)
    # The first state need not be known.
    blind = Task(model.policy, model.horizon, model.discount)
    np.testing.assert_allclose(kind().plan(blind, statistics).scores, learned.scores, atol=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_policy_is_followed_where_nothing_is_known(kind: Kind) -> None:
    model = MODELS["layered"](2)
    task = Task.of(model.mdp(), model.policy).without_model()
    statistics = VisitStatistics(model.states, model.actions)
    plan = kind().plan(task, statistics)
    assert np.all(plan.scores == model.policy)
    assert plan.lasts == 10
    # After 12 episodes of action 0 alone: every state has an action that was never tried.
    behavior = np.zeros(model.policy.shape)
    behavior[:, 0] = 1.0
    statistics.record_many(dataset(model, behavior, 12, np.random.default_rng(0)))
    plan = kind().plan(task, statistics)
    assert np.all(plan.scores == model.policy)
    assert plan.lasts == 3


@pytest.mark.parametrize("kind", KINDS)
def test_no_ratio_exceeds_what_the_floor_allows(kind: Kind) -> None:
    problem = problems.find("gridworld")(3)
    task = Task.of(problem.mdp, problem.policy)
    nothing = VisitStatistics(problem.mdp.states, problem.mdp.actions)
    for floor in (0.05, 0.5, 1.0):
        scores = kind(known_model=True, floor=floor).plan(task, nothing).scores
        assert np.max(problem.policy / scores) <= (1 + 1e-12) / floor
    assert np.allclose(scores, problem.policy, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_oracles_keep_the_contracts(kind: Kind) -> None:
    check_strategy(lambda: kind(known_model=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"floor": 0.0}, r"floor is 0\.0; it must lie above 0 and at most at 1"),
        ({"floor": 1.5}, r"floor is 1\.5"),
        ({"floor": float("nan")}, "floor is nan"),
        ({"first_plan": 0}, "first_plan is 0; it must be a whole number of at least 1"),
    ],
)
def test_impossible_parameters_are_refused(
    kind: Kind, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind(**parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_model_is_named_once(kind: Kind) -> None:
    task = Task(np.full((2, 2), 0.5), 3)
    with pytest.raises(InputError, match=f"^{kind.id} with a known model needs "):
        kind(known_model=True).plan(task, VisitStatistics(2, 2))


def test_bpg_needs_a_step() -> None:
    with pytest.raises(InputError, match="steps is 0; it must be a whole number of at least 1"):
        BehaviorPolicyGradient(steps=0)

import numpy as np
import pytest

from revar import Task, VisitStatistics, sampling_proportions
from revar.errors import InputError
from revar.model.trajectory import ENDED
from revar.problems import problems
from revar.strategies import ReducedVariance, Selection
from tests import plain_simulation as simulation
from tests.plain_model import MODELS, Floats, PlainModel

EPISODES = 40


def collected(model: PlainModel, episodes: int) -> VisitStatistics:
    """On-policy statistics of the model."""
    statistics = VisitStatistics(model.states, model.actions)
    rng = np.random.default_rng(3)
    statistics.record_many(simulation.dataset(model, model.policy, episodes, rng))
    return statistics


def upper_deviations(statistics: VisitStatistics, scale: float, delta: float, n: int) -> Floats:
    """sigma-hat + 2c sqrt(log(SAn(n+1)/delta)/T), one visit taken for none."""
    visits = statistics.visits
    spread = np.sqrt(np.nan_to_num(statistics.reward_variance, nan=0.0))
    width = np.log(visits.size * n * (n + 1) / delta) / np.maximum(visits, 1)
    return np.asarray(spread + 2 * scale * np.sqrt(width))


def proportions(model: PlainModel, deviation: Floats, chance: Floats) -> Floats:
    """sqrt(M) after the horizon's sweeps of B(s) = sum_a sqrt(pi^2(sigma^2 + g^2 sum P B^2))."""
    normalizers = np.zeros(model.states + 1)
    for _ in range(model.horizon + 1):
        ahead = chance @ normalizers**2
        scores = model.policy * np.sqrt(deviation**2 + model.discount**2 * ahead)
        normalizers[:-1] = scores.sum(axis=1)
    return np.asarray(scores)


def frequencies(model: PlainModel, statistics: VisitStatistics) -> Floats:
    observed = statistics.run_statistics(model.states)
    chance = np.zeros((model.states * model.actions, model.states + 1))
    pair = np.repeat(np.arange(len(chance)), np.diff(observed.outcomes.row_start))
    visits = np.maximum(statistics.visits.ravel(), 1)
    chance[pair, observed.outcomes.successor] = observed.outcome_count / visits[pair]
    return chance.reshape(model.chance.shape)


@pytest.mark.parametrize("episodes", [0, 1, 3, 40])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", MODELS)
def test_the_plan_is_theorem_1_with_upper_bounds(kind: str, scale: float, episodes: int) -> None:
    model = MODELS[kind](8)
    task = Task.of(model.mdp(), model.policy, budget=EPISODES)
    statistics = collected(model, episodes) if episodes else VisitStatistics(*model.policy.shape)
    deviation = upper_deviations(statistics, scale, 0.01, EPISODES * model.horizon)
    strategy = ReducedVariance(confidence_scale=scale, failure_probability=0.01)
    plan = strategy.plan(task.without_model(), statistics)
    expected = proportions(model, deviation, frequencies(model, statistics))
    np.testing.assert_allclose(plan.scores[0], expected, rtol=1e-12, atol=1e-15)
    known = ReducedVariance(
        confidence_scale=scale, failure_probability=0.01, known_transitions=True
    )
    expected = proportions(model, deviation, model.chance)
    np.testing.assert_allclose(
        known.plan(task, statistics).scores[0], expected, rtol=1e-12, atol=1e-15
    )


def test_exact_deviations_give_the_oracles_proportions() -> None:
    problem = problems.find("tree")(5)
    mdp = problem.mdp
    statistics = VisitStatistics(mdp.states, mdp.actions)
    for s, a in np.ndindex(mdp.states, mdp.actions):
        child = 2 * s + 1 + a
        for sign in (-1.0, 1.0, -1.0, 1.0):
            reward = float(mdp.reward_mean[s, a] + sign * mdp.reward_std[s, a])
            statistics.record_step(s, a, reward, child if child < mdp.states else ENDED)
    task = Task.of(mdp, problem.policy, budget=100)
    scores = ReducedVariance(confidence_scale=0.0).plan(task, statistics).scores[0]
    shares = scores / scores.sum(axis=1, keepdims=True)
    expected = sampling_proportions(mdp, problem.policy).behavior
    np.testing.assert_allclose(shares, expected, rtol=1e-12)


def test_wider_bounds_come_closer_to_the_target_policy() -> None:
    """With the noise unknown for long, every action is worth what the policy gives it."""
    problem = problems.find("tree")(1)
    statistics = VisitStatistics(1, 2)
    for reward in (0.9, 1.1, 1.0):
        statistics.record_step(0, 0, reward, ENDED)
        statistics.record_step(0, 1, 40.0 * reward, ENDED)
    task = Task.of(problem.mdp, problem.policy, budget=100)
    shares = []
    for scale in (0.0, 0.1, 1.0, 10.0, 1000.0):
        scores = ReducedVariance(confidence_scale=scale).plan(task, statistics).scores[0, 0]
        shares.append(float(scores[1] / scores.sum()))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(0.05 * 40 / (0.05 * 40 + 0.95), rel=1e-12)
    assert shares[-1] == pytest.approx(0.05, rel=1e-2)


def test_how_long_a_plan_lasts_and_what_goes_first() -> None:
    problem = problems.find("tree")(2)
    task = Task.of(problem.mdp, problem.policy, budget=10)
    nothing = VisitStatistics(3, 2)

    def plan(**parameters: float | int) -> tuple[Selection, int | None, int]:
        made = ReducedVariance(**parameters).plan(task, nothing)  # type: ignore[arg-type]
        return made.selection, made.lasts, made.visits_first

    assert plan() == (Selection.TRACK, 1, 1)
    assert plan(replan_every=7) == (Selection.TRACK, 7, 1)
    assert plan(confidence_scale=0.0) == (Selection.TRACK, 1, 3)
    assert plan(confidence_scale=0.0, initial_visits=1) == (Selection.TRACK, 1, 1)
    assert plan(initial_visits=4) == (Selection.TRACK, 1, 4)


def test_the_budget_must_be_known() -> None:
    problem = problems.find("tree")(2)
    task = Task.of(problem.mdp, problem.policy)
    with pytest.raises(InputError, match="revar needs to know the number of episodes"):
        ReducedVariance().plan(task, VisitStatistics(3, 2))


def test_known_transitions_need_the_model() -> None:
    problem = problems.find("tree")(2)
    task = Task.of(problem.mdp, problem.policy, budget=10).without_model()
    with pytest.raises(InputError, match="revar with known transitions needs the true model"):
        ReducedVariance(known_transitions=True).plan(task, VisitStatistics(3, 2))


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"confidence_scale": -0.1}, r"confidence_scale is -0\.1; it must be at least 0"),
        ({"confidence_scale": NAN}, "confidence_scale is nan; it must be at least 0"),
        ({"confidence_scale": INFINITE}, "confidence_scale is inf"),
        ({"failure_probability": 0.0}, r"failure_probability is 0\.0; it must lie between 0 and 1"),
        ({"failure_probability": 1.0}, r"failure_probability is 1\.0"),
        ({"failure_probability": NAN}, "failure_probability is nan"),
        ({"replan_every": 0}, "replan_every is 0; it must be a whole number of at least 1"),
        ({"replan_every": 2.5}, r"replan_every is 2\.5; it must be a whole number"),
        ({"initial_visits": 0}, "initial_visits is 0; it must be a whole number of at least 1"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReducedVariance(**parameters)  # type: ignore[arg-type]

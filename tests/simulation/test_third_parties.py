"""Strategies that others write: in plain Python, with a fixed plan, or with a compiled rule."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from revar import TabularMDP, Task, VisitStatistics, occupancy, simulate
from revar.compilation import compiled_in_place
from revar.errors import InputError
from revar.problems import problems
from revar.strategies import OnPolicy, Plan, ReducedVariance, Selection, Strategy
from revar.strategies.compiled_rule import CompiledPlan, CompiledRule
from revar.testing import check_strategy
from revar.testing.contracts import expect_same_results
from tests.plain_model import MODELS
from tests.strategies.fixed_plan import FixedPlan


@dataclass(frozen=True)
class LeastTried(Strategy):
    """The action tried least: a score that falls with its visits."""

    id: ClassVar[str] = "least-tried"

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        visits = statistics.run_statistics(task.states).visits
        scores = np.array(1.0 / (1.0 + visits), dtype=np.float64)
        return Plan(scores[None], Selection.LARGEST, lasts=0)


@compiled_in_place
def _after_a_step(
    task: Any,
    statistics: Any,
    plan: Any,
    parameters: Any,
    path: Any,
    steps: int,
    episode: int,
) -> None:
    s, a = path.states[steps - 1], path.actions[steps - 1]
    plan.scores[0, s, a] = 1.0 / (1.0 + statistics.visits[s, a])


@dataclass(frozen=True)
class CompiledLeastTried(LeastTried):
    """The same with a rule for the compiled loop."""

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:
        plan = CompiledPlan.of(np.ones((1, task.states, task.actions)))
        return CompiledRule(plan, on_step=_after_a_step)


def test_a_strategy_in_plain_python() -> None:
    bandit = problems.find("bandit")()
    result = simulate(bandit.mdp, bandit.policy, LeastTried(), episodes=52, runs=4)
    assert result.strategy == "least-tried"
    assert result.estimates.shape == result.standard_errors.shape == (4, result.checkpoints.size)
    assert np.isfinite(result.estimates).all()
    assert result.complete
    # 52 visits of 5 arms: ten each, and two to spare, which differ from run to run.
    assert result.visits.min() == 10
    assert result.visits.max() == 11
    assert len({tuple(visits.ravel()) for visits in result.visits}) > 1


def test_it_meets_the_contracts() -> None:
    check_strategy(LeastTried)


def test_a_rule_of_their_own_is_compiled() -> None:
    check_strategy(CompiledLeastTried)
    grid = problems.find("gridworld")()
    mine, plain = (
        simulate(grid.mdp, grid.policy, kind(), episodes=100, runs=3, compiled=compiled)
        for kind, compiled in ((CompiledLeastTried, True), (LeastTried, None))
    )
    expect_same_results(mine, plain, "with and without a rule")


@dataclass(frozen=True)
class ByPointer(ReducedVariance):
    """ReVar, its rule called by a pointer as most rules are."""

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:
        return replace(super().compiled_rule(task, tree=tree), in_loop=False)


def test_a_rule_may_be_compiled_into_the_loop() -> None:
    tree = problems.find("tree")()
    for every in (1, 3, 1000):
        in_loop, by_pointer = (
            simulate(tree.mdp, tree.policy, kind(replan_every=every), episodes=100, runs=3)
            for kind in (ReducedVariance, ByPointer)
        )
        expect_same_results(in_loop, by_pointer, "in the loop and by a pointer")


def test_only_strategies_with_a_rule_are_compiled() -> None:
    tree = problems.find("tree")(2)
    with pytest.raises(InputError, match="strategy 'least-tried' has no compiled rule"):
        simulate(tree.mdp, tree.policy, LeastTried(), episodes=5, runs=1, compiled=True)


@pytest.mark.parametrize("selection", Selection)
@pytest.mark.parametrize("kind", MODELS)
def test_fixed_plans_are_compiled_without_a_rule(kind: str, selection: Selection) -> None:
    model = MODELS[kind](5)
    mdp = model.mdp()
    for steps in (1, mdp.horizon):
        scores = np.random.default_rng(1).dirichlet(
            np.ones(model.actions), size=(steps, model.states)
        )
        strategy = FixedPlan(Plan(scores, selection))
        compiled, plain = (
            simulate(
                mdp,
                model.policy,
                strategy,
                episodes=40,
                runs=3,
                keep_episodes=True,
                compiled=compiled,
            )
            for compiled in (True, False)
        )
        expect_same_results(compiled, plain, f"{selection!r} of {steps} tables")


@pytest.mark.parametrize("compiled", [True, False])
def test_plans_for_each_step_are_followed(compiled: bool) -> None:
    """One state again and again: only the step tells the tables apart."""
    shares = np.array([[[0.9, 0.1, 0.0]], [[0.2, 0.2, 0.6]], [[0.0, 0.5, 0.5]]])
    mdp = TabularMDP(np.ones((1, 3, 1)), 0.0, 1.0, [1.0], 3)
    episodes = 10_000 if compiled else 2_000
    result = simulate(
        mdp,
        np.full((1, 3), 1 / 3),
        FixedPlan(Plan(shares, Selection.SAMPLE)),
        episodes=episodes,
        runs=1,
        keep_episodes=True,
        compiled=compiled,
    )
    data = result.datasets[0]
    for step in range(3):
        counts = np.bincount(data.actions[data.step_in_episode == step], minlength=3)
        expected = episodes * shares[step, 0]
        assert counts[expected == 0].sum() == 0
        possible = expected > 0
        statistic = np.sum((counts - expected)[possible] ** 2 / expected[possible])
        # Once in 1000 times a chi-square variable of 1 or 2 degrees of freedom is larger.
        assert statistic < {2: 10.828, 3: 13.816}[int(possible.sum())]


@pytest.mark.parametrize("kind", MODELS)
def test_visits_are_the_occupancy_of_the_plan(kind: str) -> None:
    model = MODELS[kind](3)
    mdp = model.mdp()
    behavior = np.random.default_rng(2).dirichlet(
        np.ones(model.actions), size=(mdp.horizon, model.states)
    )
    episodes, runs = 100, 300
    result = simulate(
        mdp,
        model.policy,
        FixedPlan(Plan(behavior, Selection.SAMPLE)),
        episodes=episodes,
        runs=runs,
        checkpoints=[episodes],
    )
    expected = episodes * occupancy(mdp, behavior).sum(axis=0)
    error = result.visits.std(axis=0, ddof=1) / np.sqrt(runs)
    # Bonferroni over the pairs: 4.5 standard errors.
    assert np.all(np.abs(result.visits.mean(axis=0) - expected) <= 4.5 * error + 1e-9)


@dataclass(frozen=True)
class Onlooker(OnPolicy):
    """Notes which models it is shown."""

    wants: bool = False
    shown: list[object] = field(default_factory=list, compare=False, hash=False)

    @property
    def needs_model(self) -> bool:
        return self.wants

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        self.shown.append(task.model)
        return Plan(task.policy[None], Selection.SAMPLE, lasts=1)


def test_the_model_is_shown_to_those_who_say_that_they_need_it() -> None:
    tree = problems.find("tree")(2)
    for wants in (False, True):
        onlooker = Onlooker(wants)
        simulate(tree.mdp, tree.policy, onlooker, episodes=3, runs=2)
        assert len(onlooker.shown) >= 5  # the plan without data serves both runs
        assert all(model is (tree.mdp if wants else None) for model in onlooker.shown)


@dataclass(frozen=True)
class Shapeless(OnPolicy):
    steps: int = 1
    states: int = 3
    first: int = 0  # episodes for which the plan is as it should be

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        if statistics.episodes <= self.first:
            return Plan(task.policy[None], Selection.SAMPLE, lasts=1)
        return Plan(np.full((self.steps, self.states, 2), 0.5), Selection.SAMPLE, lasts=1)


@pytest.mark.parametrize(("steps", "states"), [(3, 3), (1, 2), (1, 4), (0, 3)])
@pytest.mark.parametrize("first", [-1, 4])
def test_plans_of_another_shape_are_refused(steps: int, states: int, first: int) -> None:
    tree = problems.find("tree")(2)
    expected = (
        rf"strategy 'on-policy' plans scores of shape \({steps}, {states}, 2\); they must be "
        rf"\[1 or horizon, states, actions\] = \[1 or 2, 3, 2\]"
    )
    with pytest.raises(InputError, match=expected):
        simulate(tree.mdp, tree.policy, Shapeless(steps, states, first), episodes=9, runs=1)


@pytest.mark.parametrize("compiled", [None, False])
def test_fixed_plans_that_are_no_probabilities_are_refused(compiled: bool | None) -> None:
    tree = problems.find("tree")(2)
    low = FixedPlan(Plan(np.full((1, 3, 2), 0.4), Selection.SAMPLE))
    with pytest.raises(InputError, match=r"behavior of state 0 sums to 0\.8"):
        simulate(tree.mdp, tree.policy, low, episodes=5, runs=1, compiled=compiled)


@pytest.mark.parametrize("steps", [1, 3])
def test_shares_that_do_not_sum_to_1_are_not_followed(steps: int) -> None:
    tree = problems.find("tree")(3)
    shares = np.full((steps, 7, 2), 0.5)
    shares[-1, 6] = 0.0, 0.0  # action 1 has a share on the way there
    with pytest.raises(InputError, match="shares of state 6 at step 2 sum to 0; where they are"):
        plan = Plan(shares, Selection.FOLLOW)
        simulate(tree.mdp, tree.policy, FixedPlan(plan), episodes=5, runs=1)
    shares[-1, 6] = 0.3, 0.3
    # Nothing leads there but the first visits of the target policy's actions.
    shares[:, [0, 2]] = 1.0, 0.0
    with pytest.raises(InputError, match=r"shares of state 6 at step 2 sum to 0\.6"):
        plan = Plan(shares, Selection.FOLLOW)
        simulate(tree.mdp, tree.policy, FixedPlan(plan), episodes=5, runs=1)

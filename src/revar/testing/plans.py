"""Contracts of strategies: what a plan may look like, ask for and depend on."""

from collections.abc import Callable
from typing import Any

import numpy as np

from revar.model.arrays import BoolArray, FloatArray
from revar.model.mdp import TabularMDP
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task
from revar.model.trajectory import ENDED
from revar.problems import Problem
from revar.simulation.plain import PlainRun, play_episode
from revar.simulation.simulate import simulate
from revar.simulation.world import World
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, visible_task
from revar.testing.contracts import contract, expect, expect_refusal, identical
from revar.testing.problems import (
    on_policy_episodes,
    questions_about,
    sample_problems,
    statistics_of,
    task_of,
)

Factory = Callable[[], Strategy]

EPISODES = 24
# Plans of these kinds choose among the target policy's actions.
WITHIN_TARGET = (Selection.SAMPLE, Selection.TRACK, Selection.LARGEST)


class RecordingRun(PlainRun):
    """A run that remembers which actions were asked for, and by which plan."""

    def __init__(self, strategy: Strategy, mdp: TabularMDP, asked: Any) -> None:
        task = visible_task(strategy, Task.of(mdp, asked, budget=EPISODES))
        statistics = VisitStatistics.for_model(mdp)
        super().__init__(strategy, task, statistics, np.random.default_rng(0))
        self.asked: list[tuple[int, int, float, Plan]] = []  # state, action, propensity, plan

    def act(self, step: int, state: int) -> tuple[int, float]:
        """As any run does."""
        action, propensity = super().act(step, state)
        if self.plan_in_force is not None:
            self.asked.append((state, action, propensity, self.plan_in_force.plan))
        return action, propensity


@contract
def check_plans_are_valid(factory: Factory) -> None:
    """After any number of episodes scores are finite, not negative, and of the right shape.

    Where they are sampled they are probabilities, in every state that the target policy reaches.
    """
    strategy = factory()
    for problem in sample_problems():
        _expect_valid_plans(strategy, problem.mdp, problem.policy)


@contract
def check_asks_only_for_what_counts(factory: Factory) -> None:
    """Only actions that the target policy takes are asked for, compiled or not.

    A plan that follows shares step by step may lead elsewhere, but only where it has a share.
    The propensity of an action is its score where it was sampled, and unknown otherwise.
    """
    strategy = factory()
    for problem in sample_problems():
        _expect_only_what_counts(strategy, problem, problem.policy)


@contract
def check_several_policies(factory: Factory) -> None:
    """Asked about several target policies it plans, and asks only for what one of them takes."""
    strategy = factory()
    for problem in sample_problems():
        for question in questions_about(problem):
            _expect_valid_plans(strategy, problem.mdp, question)
            _expect_only_what_counts(strategy, problem, question)


@contract
def check_bad_rewards_are_refused(factory: Factory) -> None:
    """A reward that is not a number is refused, changes nothing, and collection goes on."""
    strategy = factory()
    for problem in sample_problems():
        run = RecordingRun(strategy, problem.mdp, problem.policy)
        world = World.of(problem.mdp)
        for _ in range(3):
            play_episode(run, world)
        state = int(np.flatnonzero(problem.mdp.initial)[0])
        action, _ = run.act(0, state)
        run.statistics.start_episode(state)
        before = _snapshot(run.statistics)
        for reward in (float("nan"), float("inf")):
            with expect_refusal(f"a reward of {reward} under {strategy!r}"):
                run.statistics.record_step(state, action, reward, ENDED)
            expect(
                all(map(identical, before, _snapshot(run.statistics))),
                f"a refused reward of {reward} changed the statistics under {strategy!r}",
            )
        run.statistics.record_step(state, action, 1.0, ENDED)
        play_episode(run, world)
        expect(
            run.statistics.episodes == 5,
            f"collection with {strategy!r} does not go on after a refused reward",
        )


@contract
def check_planning_has_no_memory(factory: Factory) -> None:
    """A plan follows from the statistics alone, and planning changes nothing."""
    strategy = factory()
    for problem in sample_problems():
        task = visible_task(strategy, task_of(problem, EPISODES))
        data = on_policy_episodes(problem, EPISODES)
        early, late = statistics_of(problem, data.head(5)), statistics_of(problem, data)
        before = _snapshot(early), task.policy.copy()
        first = strategy.plan(task, early)
        first_scores = first.scores.copy()
        strategy.plan(task, late)
        for planner in (strategy, factory()):
            again = planner.plan(task, early)
            expect(
                identical(first_scores, again.scores)
                and (first.selection, first.lasts, first.visits_first)
                == (again.selection, again.lasts, again.visits_first),
                f"{strategy!r} plans differently from the same statistics on {problem.name}",
            )
        expect(
            identical(first_scores, first.scores),
            f"a plan of {strategy!r} changes when the next one is made",
        )
        expect(
            all(map(identical, before[0], _snapshot(early))) and identical(before[1], task.policy),
            f"planning with {strategy!r} changes the statistics or the task",
        )
    expect(strategy == factory(), f"{strategy!r} is changed by planning")


@contract
def check_only_oracles_see_the_model(factory: Factory) -> None:
    """Without the model an oracle refuses, and any other strategy plans as it does with it."""
    strategy = factory()
    for problem in sample_problems():
        task = task_of(problem, EPISODES)
        statistics = statistics_of(problem, on_policy_episodes(problem, EPISODES))
        if strategy.needs_model:
            with expect_refusal(f"{strategy!r} needs the model and plans without it"):
                strategy.plan(task.without_model(), statistics)
            continue
        scores = strategy.plan(task.without_model(), statistics).scores
        expect(
            identical(scores, strategy.plan(task, statistics).scores),
            f"{strategy!r} does not say that it needs the model, but uses it on {problem.name}",
        )


@contract
def check_its_estimators_take_its_data(factory: Factory) -> None:
    """Each of its `estimators` is known, and makes a finite estimate of the data it collects."""
    strategy = factory()
    expect(strategy.estimators, f"{strategy!r} names no estimator")
    for problem in sample_problems():
        for estimator in strategy.estimators:
            result = simulate(
                problem.mdp,
                problem.policy,
                strategy,
                episodes=EPISODES,
                runs=1,
                checkpoints=[EPISODES],
                estimator=estimator,
            )
            expect(
                np.all(np.isfinite(result.estimates)),
                f"{estimator} makes {result.estimates} of what {strategy!r} collects",
            )


PLAN_CHECKS: tuple[Callable[[Factory], None], ...] = (
    check_plans_are_valid,
    check_asks_only_for_what_counts,
    check_several_policies,
    check_bad_rewards_are_refused,
    check_planning_has_no_memory,
    check_only_oracles_see_the_model,
    check_its_estimators_take_its_data,
)


def _expect_valid_plans(strategy: Strategy, mdp: TabularMDP, asked: Any) -> None:
    run = RecordingRun(strategy, mdp, asked)
    world = World.of(mdp)
    for episode in range(EPISODES):
        plan = strategy.plan(run.task, run.statistics)
        name = f"the plan of {strategy!r} after {episode} episodes"
        scores = plan.scores
        shapes = [(steps, mdp.states, mdp.actions) for steps in (1, mdp.horizon)]
        fits = scores.shape in shapes or (plan.alternates and scores.shape[1:] == shapes[0][1:])
        expect(fits, f"{name} has shape {scores.shape}, not one of {shapes}")
        expect(np.all(np.isfinite(scores)), f"{name} has scores that are not finite")
        expect(np.all(scores >= 0), f"{name} has negative scores")
        expect(plan.lasts is None or plan.lasts >= 0, f"{name} lasts {plan.lasts} episodes")
        if plan.selection is Selection.SAMPLE and plan.alternates:
            # An episode that reads one table alone comes only where that leads.
            for table in scores:
                _expect_probabilities(table[None], mdp, table > 0, name)
        elif plan.selection is Selection.SAMPLE:
            _expect_probabilities(scores, mdp, run.task.policy > 0, name)
        play_episode(run, world)


def _expect_probabilities(scores: FloatArray, mdp: TabularMDP, taken: BoolArray, name: str) -> None:
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, taken, mdp.horizon)
    for t in range(mdp.horizon):
        table = scores[min(t, len(scores) - 1)]
        for state in layers.states[layers.start[t] : layers.start[t + 1]].tolist():
            total = float(table[state].sum())
            expect(
                abs(total - 1.0) < 1e-9,
                f"{name} is sampled, but in state {state} at step {t} its scores sum to {total}",
            )


def _expect_only_what_counts(strategy: Strategy, problem: Problem, asked: Any) -> None:
    run = RecordingRun(strategy, problem.mdp, asked)
    world = World.of(problem.mdp)
    for _ in range(EPISODES):
        play_episode(run, world)
    policy = run.task.policy
    who = "the target policy" if len(run.task.policies) == 1 else "any of the target policies"
    shares = np.zeros(policy.shape, dtype=bool)
    for state, action, propensity, plan in run.asked:
        pair = f"state {state}, action {action} of {problem.name}"
        within = plan.selection in WITHIN_TARGET
        shares |= np.any(plan.scores > 0, axis=0) & (not within)
        expect(
            policy[state, action] > 0 or shares[state, action],
            f"{strategy!r} asks for {pair}, which is no action of {who}",
        )
        sampled = plan.selection is Selection.SAMPLE
        expect(
            propensity in plan.scores[:, state, action] if sampled else np.isnan(propensity),
            f"{strategy!r} gives {pair} the propensity {propensity}",
        )
    visits = simulate(problem.mdp, asked, strategy, episodes=EPISODES, runs=3).visits
    expect(
        not visits[:, (policy == 0) & ~shares].any(),
        f"{strategy!r} visits pairs of {problem.name} that are no actions of {who}",
    )


def _snapshot(statistics: VisitStatistics) -> tuple[Any, ...]:
    observed = statistics.run_statistics(statistics.states)
    return tuple(np.array(part) for part in (*observed.outcomes, *observed[1:]))

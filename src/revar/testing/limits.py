"""Contracts of strategies that keep limits; of all others, that they are refused."""

from collections.abc import Callable, Iterator

import numpy as np

from revar.model.arrays import BoolArray, FloatArray
from revar.model.limits import Limits
from revar.model.structure import reachable_layers
from revar.model.task import Task
from revar.problems import Problem
from revar.simulation.simulate import simulate
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, make_plan, visible_task
from revar.testing.contracts import contract, expect, expect_refusal, expect_same_results
from revar.testing.problems import on_policy_episodes, sample_problems, statistics_of

Factory = Callable[[], Strategy]

EPISODES = 24
RATIO = 1.5
ROUNDING = 1e-9


@contract
def check_plans_keep_caps(factory: Factory) -> None:
    """No share exceeds `max_ratio` times the target policy's, and forbidden actions have none.

    After any number of episodes, in every state that can be entered.
    """
    strategy = factory()
    if not strategy.keeps_limits:
        return
    for problem in sample_problems():
        for limits in (Limits(max_ratio=RATIO), Limits(forbidden=_untaken(problem))):
            caps = limits.caps(problem.policy)
            entered = _entered(problem, caps > 0)
            for episodes, plan in _plans(strategy, problem, limits):
                name = f"the plan of {strategy!r} after {episodes} episodes of {problem.name}"
                shares = _shares(plan, problem)
                expect(
                    limits.max_ratio is None or _goes_by_shares(plan),
                    f"{name} does not take actions by their shares, which are limited",
                )
                over = (shares > caps + ROUNDING) & entered[:, :, None]
                for step, state, action in np.argwhere(over)[:1]:
                    raise AssertionError(
                        f"{name} gives action {action} of state {state} the share "
                        f"{shares[step, state, action]:.6g} at step {step}; its limit is "
                        f"{caps[state, action]:.6g}"
                    )


@contract
def check_the_first_plan_is_the_target_policy(factory: Factory) -> None:
    """Where sums are limited and nothing is known yet, the target policy collects.

    An oracle knows what it does from the start.
    """
    strategy = factory()
    if not strategy.keeps_limits or strategy.needs_model:
        return
    for problem in sample_problems():
        amounts = np.ones(problem.policy.shape)
        for limits in (
            Limits(min_return="100%"),
            Limits(max_sums=[(amounts, float(problem.mdp.horizon))]),
        ):
            plan = next(_plans(strategy, problem, limits))[1]
            entered = _entered(problem, problem.policy > 0)
            differs = np.abs(_shares(plan, problem) - problem.policy) > ROUNDING
            expect(
                _goes_by_shares(plan) and not differs[entered].any(),
                f"the first plan of {strategy!r} on {problem.name} is not the target policy, and "
                f"{'a sum' if limits.sums else 'the return'} is limited",
            )


@contract
def check_limits_compiled_and_plain(factory: Factory) -> None:
    """Under limits, too, the compiled loop and plain Python give the same numbers.

    A strategy that keeps none is refused when it is given limits.
    """
    strategy = factory()
    for problem in sample_problems():
        for limits in (Limits(max_ratio=RATIO), Limits(min_return="80%")):
            if not strategy.keeps_limits:
                with expect_refusal(f"{strategy!r} does not keep limits, and is given some"):
                    simulate(
                        *(problem.mdp, problem.policy, strategy),
                        episodes=EPISODES,
                        runs=2,
                        limits=limits,
                    )
                continue
            compiled, plain = (
                simulate(
                    *(problem.mdp, problem.policy, strategy),
                    episodes=EPISODES,
                    runs=2,
                    limits=limits,
                    keep_episodes=True,
                    compiled=how,
                )
                for how in (None, False)
            )
            expect_same_results(
                compiled, plain, f"{strategy!r} with limits, compiled and plain, on {problem.name}"
            )


LIMIT_CHECKS: tuple[Callable[[Factory], None], ...] = (
    check_plans_keep_caps,
    check_the_first_plan_is_the_target_policy,
    check_limits_compiled_and_plain,
)


def _plans(strategy: Strategy, problem: Problem, limits: Limits) -> Iterator[tuple[int, Plan]]:
    """Plans after more and more of the target policy's episodes."""
    task = Task.of(problem.mdp, problem.policy, budget=2 * EPISODES, limits=limits)
    data = on_policy_episodes(problem, EPISODES)
    for episodes in (0, 1, 3, 8, EPISODES):
        statistics = statistics_of(problem, data.head(episodes))
        yield episodes, make_plan(strategy, visible_task(strategy, task), statistics)


def _goes_by_shares(plan: Plan) -> bool:
    """Whether actions are taken as often as their shares say, but for one visit."""
    followed = plan.selection is Selection.FOLLOW and plan.visits_first <= 1
    return followed or plan.selection is Selection.SAMPLE


def _shares(plan: Plan, problem: Problem) -> FloatArray:
    """The scores for every step, [L, S, A]."""
    return np.broadcast_to(plan.scores, (problem.mdp.horizon, *problem.policy.shape))


def _untaken(problem: Problem) -> BoolArray:
    """All that the target policy leaves out in states that it has a row for."""
    return np.asarray((problem.policy == 0) & problem.policy.any(axis=1, keepdims=True))


def _entered(problem: Problem, allowed: BoolArray) -> BoolArray:
    """Which states can be entered at which step by allowed actions, [L, S]."""
    mdp = problem.mdp
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, allowed, mdp.horizon)
    entered = np.zeros((mdp.horizon, mdp.states), dtype=bool)
    for t in range(mdp.horizon):
        entered[t, layers.states[layers.start[t] : layers.start[t + 1]]] = True
    return entered

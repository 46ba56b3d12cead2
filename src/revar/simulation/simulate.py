"""simulate: many independent runs of a strategy on a known model."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revar.errors import InputError, kind_of
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.estimator import Estimator, find_estimator
from revar.estimators.smallest_error import SmallestError
from revar.interrupts import catch_interrupts, is_interrupted
from revar.model.arrays import FloatArray
from revar.model.budget import Budget, check_budget
from revar.model.limits import Limits
from revar.model.mdp import TabularMDP
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.validation import (
    as_floats,
    check_count,
    check_whole,
)
from revar.simulation.compiled import find_rule, make_compiled_player
from revar.simulation.parallel import Progress, available_threads, play_runs
from revar.simulation.plain import make_plain_player
from revar.simulation.result import Job, SimulationResult, log_spaced
from revar.strategies.selection import Selection
from revar.strategies.strategy import (
    Plan,
    Strategy,
    StrategyLike,
    check_limits_known,
    check_shares,
    find_strategy,
    make_plan,
    visible_task,
)
from revar.theory.restrictions import Restrictions
from revar.theory.values import occupancy, policy_value


@catch_interrupts()
def simulate(
    mdp: TabularMDP,
    question: Any,
    strategy: StrategyLike,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    budget: float | None = None,
    cost: ArrayLike | None = None,
    limits: Limits | None = None,
    runs: int,
    seed: int = 0,
    first_run: int = 0,
    checkpoints: ArrayLike | None = None,
    estimator: str | Estimator | None = None,
    threads: int | None = None,
    keep_episodes: bool = False,
    progress: Progress | None = None,
    compiled: bool | None = None,
) -> SimulationResult:
    """Collect with `strategy` until the budget is spent, `runs` times over; answer the question.

    The result has the estimates of what was asked for, and those of all policies' values. An
    interrupt (Ctrl-C) returns the finished runs, with `complete` False.

    Parameters
    ----------
    mdp
        The model, which plays the part of the environment.
    question
        A policy [S, A], whose value is wanted, or `Difference`, `Values` or `Best` of several.
    strategy
        How to collect: an id, or a strategy.
    episodes, steps
        What a run may spend; one of these and `budget`. An episode is begun while anything is left.
    budget
        What a run may spend of `cost`.
    cost
        What visits take from a `budget`, an array [S, A].
    limits
        What collection may not do, see `Limits`.
    runs
        How many times it is done.
    seed
        Run i draws from child i of SeedSequence(seed), so that the result depends neither on
        `threads` nor on the number of other runs.
    first_run
        The number of the first run: a large simulation can be done in parts.
    checkpoints
        What is spent when an estimate is made; by default log-spaced up to the budget.
    estimator
        What turns data into estimates: an id, or an estimator; by default the best one for data of
        the strategy.
    threads
        How many play at once; by default as many as there are cores.
    keep_episodes
        Keep every step of every run.
    progress
        A function that is called about ten times a second with what is done and what there is to
        do, in units of the budget, such as `progress_bar` gives.
    compiled
        False plays in plain Python, as strategies that plan before every step and have no compiled
        rule always do; True insists on the compiled loop.
    """
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp is {kind_of(mdp)}; it must be a TabularMDP")
    strategy = find_strategy(strategy)
    estimator = find_estimator(strategy.estimators[0] if estimator is None else estimator)
    runs, allowed = check_count(runs, "runs"), check_budget(episodes, steps, budget, cost)
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {progress!r}; it must be a function, such as revar.progress_bar gives: "
            f"with revar.progress_bar('runs') as progress: simulate(..., progress=progress)"
        )
    threads = available_threads() if threads is None else check_count(threads, "threads")
    check_whole(seed, "seed")
    check_whole(first_run, "first_run")
    task = Task.of(
        mdp,
        question,
        budget=allowed,
        cost=cost if allowed.unit == "cost" else None,
        limits=limits,
    )
    restrictions = _check_conditions(task, mdp, strategy)
    plan = _first_plan(task, mdp, strategy, estimator)
    if restrictions is not None and plan.lasts is None:
        _check_sums(strategy, plan, restrictions)
    points = _check_checkpoints(checkpoints, allowed)
    count = len(task.policies)
    rows = (runs, points.size, count)
    job = Job(
        mdp=mdp,
        task=task,
        strategy=strategy,
        estimator=estimator,
        seed=seed,
        first_run=first_run,
        checkpoints=points,
        keep_episodes=keep_episodes,
        plan=plan,
        values=np.full(rows, np.nan),
        covariances=np.full((*rows, count), np.nan),
        freedom=np.full(rows, np.inf),
        unvisited=np.full(rows, np.nan),
        visits=np.zeros((runs, mdp.states, mdp.actions), dtype=np.int64),
        finished=np.zeros((runs, 1), dtype=np.int64),
        spent=np.zeros((runs, 1)),
        stop=np.zeros(1, dtype=np.int64),
        datasets={},
    )
    rule = find_rule(job) if compiled is not False else None
    if compiled and rule is None:
        raise InputError(f"strategy {strategy.id!r} has no compiled rule")
    play = make_compiled_player(job, rule) if rule is not None else make_plain_player(job)
    # Before the runs: an interrupt waits for nothing.
    true_values = np.array([policy_value(mdp, policy) for policy in task.policies])
    ended = play_runs(
        play,
        job.spent,
        allowed.amount,
        threads=threads if rule is not None else 1,
        progress=progress,
        stop=job.stop,
    )
    result = job.result(true_values, ended)
    return replace(result, interrupted=True) if is_interrupted() else result


def _first_plan(task: Task, mdp: TabularMDP, strategy: Strategy, estimator: Estimator) -> Plan:
    """The plan before the first episode; raises where strategy and estimator do not fit."""
    if len(task.policies) > 1 and not isinstance(estimator, CertaintyEquivalence | SmallestError):
        raise InputError(
            f"estimator {estimator.id!r} estimates the value of one policy; for "
            f"{len(task.policies)} of them use 'certainty-equivalence'"
        )
    nothing = VisitStatistics(mdp.states, mdp.actions)
    plan = make_plan(strategy, visible_task(strategy, task), nothing)
    check_shares(mdp, task.policy, plan)
    if estimator.needs_episodes and plan.selection is not Selection.SAMPLE:
        raise InputError(
            f"estimator {estimator.id!r} needs the probability of every action, and strategy "
            f"{strategy.id!r} chooses deterministically; use 'certainty-equivalence'"
        )
    if estimator.needs_episodes:
        _check_cover(strategy, task.policy, plan)
    return plan


def _check_cover(strategy: Strategy, policy: FloatArray, plan: Plan) -> None:
    """Importance ratios need a behavior that takes whatever the target policy takes."""
    left_out = (policy > 0) & np.any(plan.scores == 0, axis=0)
    if left_out.any():
        state, action = (int(i) for i in np.argwhere(left_out)[0])
        raise InputError(
            f"strategy {strategy.id!r} never takes action {action} in state {state}, which the "
            f"target policy does; use 'certainty-equivalence'"
        )


def _check_conditions(task: Task, mdp: TabularMDP, strategy: Strategy) -> Restrictions | None:
    """Refuse limits that cannot be kept, or that the strategy does not know, and visits that cost
    nothing.
    """
    limits = task.limits
    check_limits_known(strategy, limits)
    if task.cost is not None or not limits.none:
        restrictions = Restrictions(mdp, task.question, task.cost, limits)
        restrictions.require_visits(occupancy(mdp, task.policy).sum(axis=0) > 0)
        return restrictions
    return None


def _check_sums(strategy: Strategy, plan: Plan, restrictions: Restrictions) -> None:
    """A plan that lasts for good must keep the limits on sums itself."""
    shape = (restrictions.mdp.horizon, *plan.scores.shape[1:])
    parts = [plan.scores] if plan.by_step else list(plan.scores)
    flows = [restrictions.flow_of(np.array(np.broadcast_to(part, shape))) for part in parts]
    sums = np.mean([flow.sums for flow in flows], axis=0)
    over = sums > restrictions.most + restrictions.rounding
    if over.any():
        first = int(np.argmax(over))
        raise InputError(
            f"strategy {strategy.id!r} does not keep {restrictions.names[first]}: its episodes "
            f"have {abs(sums[first]):.6g}, and {abs(restrictions.most[first]):.6g} is the limit"
        )


def _check_checkpoints(checkpoints: ArrayLike | None, budget: Budget) -> FloatArray:
    if checkpoints is None:
        if budget.unit == "cost":
            return np.geomspace(budget.amount / 1000.0, budget.amount, 25)
        return log_spaced(int(budget.amount)).astype(np.float64)
    points = np.atleast_1d(as_floats(checkpoints, "checkpoints"))
    whole = budget.unit == "cost" or np.all(np.floor(points) == points)
    if points.ndim != 1 or points.size == 0 or not whole:
        raise InputError(f"checkpoints must be whole numbers of {budget.unit}; got {checkpoints!r}")
    if np.any(np.diff(points) <= 0) or points[0] <= 0 or points[-1] > budget.amount:
        least = "above 0" if budget.unit == "cost" else "at least 1"
        raise InputError(
            f"checkpoints must increase from {least} to at most {budget.unit} = {budget.amount}; "
            f"got {checkpoints!r}"
        )
    return points

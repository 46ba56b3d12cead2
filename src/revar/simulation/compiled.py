"""Runs through the compiled loop. Its types are fixed, so that rules can be passed as pointers."""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any, cast

import numba
import numpy as np
from numba import boolean, float64, int64, types

from revar.errors import InputError
from revar.estimators.certainty_equivalence import CertaintyEquivalence, widen
from revar.estimators.estimator import Estimate
from revar.estimators.smallest_error import SmallestError, mix
from revar.model.arrays import IntArray, Layers, Outcomes, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.simulation.loop import (
    EPISODES_BETWEEN_STOPS,
    Revisions,
    episodes_at_a_time,
    loop_around,
    play_episodes,
    play_run,
)
from revar.simulation.recording import Log, RunResults, dataset_of, empty_log, with_room
from revar.simulation.result import Job
from revar.simulation.world import World
from revar.strategies.compiled_rule import (
    ENDLESS,
    CompiledPlan,
    CompiledRule,
    EpisodePath,
    LimitArrays,
    RuleParameters,
    TaskArrays,
    keep_plan,
)
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, check_shares, make_plan, visible_task


def _tuple_type(record_class: type, *fields: Any) -> Any:
    kinds: Any = types
    if len(set(fields)) == 1:
        return kinds.NamedUniTuple(fields[0], len(fields), record_class)
    return kinds.NamedTuple(list(fields), record_class)


_INTS, _FLOATS = int64[::1], float64[::1]
_INT_TABLE, _FLOAT_TABLE = int64[:, ::1], float64[:, ::1]
_INT_CUBE, _FLOAT_CUBE = int64[:, :, ::1], float64[:, :, ::1]
_WORLD = _tuple_type(World, _INTS, _INTS, _FLOATS, _FLOATS, _FLOATS, boolean, int64, _INTS, _FLOATS)
_LIMITS = _tuple_type(
    *(
        LimitArrays,
        _FLOAT_TABLE,
        _FLOAT_CUBE,
        _FLOAT_CUBE,
        _FLOATS,
        float64,
        float64,
        boolean,
        float64,
    ),
)
_TASK = _tuple_type(
    *(TaskArrays, _FLOAT_TABLE, _FLOATS, int64, float64, float64, float64, _FLOAT_TABLE),
    *(_FLOAT_CUBE, _FLOAT_TABLE, _FLOATS, boolean, boolean, _LIMITS),
)
_OUTCOMES = _tuple_type(Outcomes, _INTS, _INTS, _FLOATS)
_STATISTICS = _tuple_type(
    RunStatistics, _OUTCOMES, _INT_TABLE, *[_FLOAT_TABLE] * 4, _INTS, _FLOATS, _INTS
)
_PLAN = _tuple_type(CompiledPlan, _FLOAT_CUBE, _FLOATS, _FLOAT_TABLE, _FLOATS, _INT_CUBE, _INTS)
_PARAMETERS = _tuple_type(RuleParameters, _FLOATS, _INTS, boolean)
_PATH = _tuple_type(EpisodePath, _INTS, _INTS)
_REVISIONS = _tuple_type(Revisions, boolean, boolean, boolean)
_RESULTS = _tuple_type(
    *(
        RunResults,
        _FLOAT_TABLE,
        _FLOAT_CUBE,
        _FLOAT_TABLE,
        _FLOAT_TABLE,
        _INT_TABLE,
        _INTS,
        _INTS,
        _FLOATS,
    ),
    *(_INTS, _INTS, _INTS, _FLOAT_TABLE),
)
_LOG = _tuple_type(Log, _INTS, _INTS, _INTS, _FLOATS, _INTS, _FLOATS)
_GENERATOR = cast(Any, numba).typeof(np.random.default_rng(0))
REVISE_SIGNATURE = types.void(_TASK, _STATISTICS, _PLAN, _PARAMETERS, _PATH, int64, int64)
_RULE = types.FunctionType(REVISE_SIGNATURE)
EPISODES_SIGNATURE = int64(
    *(int64, int64, float64, _FLOATS, _WORLD, _TASK, _STATISTICS, _PLAN, _PARAMETERS),
    *(_RULE, _RULE, _REVISIONS, int64, boolean, _PATH, _LOG, boolean, _INTS, _GENERATOR),
)
RUN_SIGNATURE = types.void(
    *(_WORLD, _TASK, _tuple_type(Layers, _INTS, _INTS), _STATISTICS, _STATISTICS, _PLAN),
    *(_PARAMETERS, _PATH, types.FunctionType(EPISODES_SIGNATURE), _RULE, _RULE, _REVISIONS),
    *(boolean, boolean, int64, boolean, int64, _FLOATS, _RESULTS, _LOG, boolean),
    *(_GENERATOR, _INTS),
)


def find_rule(job: Job) -> CompiledRule | None:
    """The strategy's own rule; or the rule to keep its plan as long as it lasts."""
    rule = job.strategy.compiled_rule(
        visible_task(job.strategy, job.task), tree=job.mdp.structure().is_tree
    )
    return CompiledRule(_to_compile(job.plan)) if rule is None and job.plan.lasts != 0 else rule


def _to_compile(plan: Plan) -> CompiledPlan:
    """The plan as the loop follows it."""
    arrays = CompiledPlan.of(plan.scores, follows=plan.selection is Selection.FOLLOW)
    return arrays._replace(selection=np.array([plan.selection], dtype=np.int64))


def make_compiled_player(job: Job, rule: CompiledRule) -> Callable[[int], bool]:
    """What plays a run of the job by its number: False if it was stopped.

    A rule that keeps its plan is left when that expires: then the strategy plans.
    """
    mdp, task = job.mdp, job.task
    _compile_for(play_run, RUN_SIGNATURE)
    loop = loop_around(rule.on_episode) if rule.in_loop else play_episodes
    revisions = Revisions(
        rule.on_step is not keep_plan, rule.on_episode is not keep_plan, rule.in_loop
    )
    play_by = _pointer_to(loop, EPISODES_SIGNATURE)
    on_step = _pointer_to(rule.on_step, REVISE_SIGNATURE)
    on_episode = _pointer_to(keep_plan if rule.in_loop else rule.on_episode, REVISE_SIGNATURE)
    world = World.of(mdp)
    arrays = TaskArrays.of(task, mdp.arrays.initial)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, task.policy > 0, mdp.horizon)
    chooses = isinstance(job.estimator, SmallestError) and len(task.policies) == 1
    in_loop = isinstance(job.estimator, CertaintyEquivalence | SmallestError)
    known = isinstance(job.estimator, CertaintyEquivalence) and job.estimator.known_transitions
    log_all = job.keep_episodes or not in_loop
    logging = log_all or chooses
    room = (0, 0)
    if logging:
        room = _expected_size(job) if log_all else (1, 1)
    outcomes = mdp.arrays.outcomes
    first_plan = rule.plan._replace(selection=np.array([job.plan.selection], dtype=np.int64))
    replans = job.plan.lasts is not None and rule.on_step is rule.on_episode is keep_plan
    nothing = VisitStatistics.for_model(mdp) if replans else None
    visible = visible_task(job.strategy, task)
    at_a_time = episodes_at_a_time(arrays)

    def play(run: int) -> bool:
        results = _results_of(job, run)
        statistics = _no_statistics(outcomes, results.visits, rule.parameters.known_transitions)
        estimated = statistics._replace(outcomes=_outcomes_to_fill(outcomes, known))
        plan = first_plan.copy()
        path = EpisodePath(*(np.zeros(task.horizon, dtype=np.int64) for _ in "ab"))
        log, rng = empty_log(*room), job.stream(run)
        latest, pause = job.plan, ENDLESS
        if nothing is not None:
            held, pause = nothing.copy(), job.plan.lasts or ENDLESS
        while results.spent[0] < arrays.budget and job.stop[0] == 0:
            if logging:
                log = with_room(log, int(results.logged[0]), at_a_time, task.horizon)
            if results.finished[0] == pause:
                latest = _plan_next(job, visible, held, statistics)
                plan = _to_compile(latest)
                pause = ENDLESS if latest.lasts is None else pause + latest.lasts
            play_run(
                world,
                arrays,
                layers,
                statistics,
                estimated,
                plan,
                rule.parameters,
                path,
                play_by,
                on_step,
                on_episode,
                revisions,
                known,
                in_loop,
                latest.visits_first,
                latest.alternates,
                pause,
                job.checkpoints,
                results,
                log,
                log_all,
                rng,
                job.stop,
            )
        ended = bool(results.spent[0] >= arrays.budget)
        if logging and ended:
            dataset = dataset_of(log, mdp.states, int(results.logged[0]))
            _estimate_from(job, run, dataset, results)
            if job.keep_episodes:
                job.datasets[run] = dataset
        return ended and (job.stop[0] == 0 or not logging)

    return play


def _plan_next(job: Job, task: Task, statistics: VisitStatistics, seen: RunStatistics) -> Plan:
    """The plan that is due, of what a run has shown; `statistics` are the run's to hold it."""
    statistics.hold(seen)
    plan = make_plan(job.strategy, task, statistics)
    check_shares(job.mdp, task.policy, plan)
    if plan.lasts == 0:
        raise InputError(
            f"strategy {job.strategy.id!r} plans for episodes and then for a single step; simulate "
            f"it with compiled=False"
        )
    return plan


def _estimate_from(job: Job, run: int, dataset: Dataset, results: RunResults) -> None:
    """Make the estimates that need whole episodes."""
    task = job.task
    for i, count in enumerate(results.logged_at.tolist()):
        if job.stop[0] != 0:
            return
        if isinstance(job.estimator, SmallestError):
            mixed = None
            if count > 1 and len(task.policies) == 1:
                mixed = mix(
                    *(task, dataset.head(count), job.mdp.arrays.outcomes),
                    *(_table_estimate(results, i), results.thin_share[i, 0]),
                )
            if mixed is not None:
                job.write(run, i, mixed.estimate)
                job.freedom[run, i] = inf
        elif (
            not isinstance(job.estimator, CertaintyEquivalence)
            and count >= job.estimator.least_episodes
        ):
            job.write(run, i, job.estimator.estimate(task, dataset.head(count)))


def _table_estimate(results: RunResults, checkpoint: int) -> Estimate:
    """What certainty equivalence gave for a single policy."""
    variance = widen(results.covariances[checkpoint], results.freedom[checkpoint])[0, 0]
    return Estimate(
        float(results.values[checkpoint, 0]),
        sqrt(variance),
        int(results.played_at[checkpoint]),
        float(results.unvisited[checkpoint, 0]),
    )


def _results_of(job: Job, run: int) -> RunResults:
    """Where that run writes its results."""
    points, policies = job.checkpoints.size, len(job.task.policies)
    return RunResults(
        values=job.values[run],
        covariances=job.covariances[run],
        freedom=job.freedom[run],
        unvisited=job.unvisited[run],
        visits=job.visits[run],
        finished=job.finished[run],
        checkpoint=np.zeros(1, dtype=np.int64),
        spent=job.spent[run],
        logged=np.zeros(1, dtype=np.int64),
        logged_at=np.zeros(points, dtype=np.int64),
        played_at=np.zeros(points, dtype=np.int64),
        thin_share=np.zeros((points, policies)),
    )


def _no_statistics(outcomes: Outcomes, visits: IntArray, known_transitions: bool) -> RunStatistics:
    """What a run has shown before its first episode; it counts visits in `visits`."""
    states, slots = visits.shape[0], outcomes.successor.size
    return RunStatistics(
        _outcomes_to_fill(outcomes, known_transitions),
        visits,
        np.zeros(visits.shape),
        np.zeros(visits.shape),
        np.zeros(visits.shape),
        np.zeros(visits.shape),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots),
        np.zeros(states, dtype=np.int64),
    )


def _outcomes_to_fill(outcomes: Outcomes, known: bool) -> Outcomes:
    """The outcomes with a run's own probabilities: the true ones if they are known."""
    probability = outcomes.probability
    return outcomes._replace(probability=probability.copy() if known else 0.0 * probability)


def _expected_size(job: Job) -> tuple[int, int]:
    """Episodes and steps that a log needs room for, where the budget tells; memory is not touched
    before it is written to.
    """
    budget, horizon = job.budget, job.mdp.horizon
    if budget.unit == "cost":
        return 1, 1
    episodes = int(budget.amount) + EPISODES_BETWEEN_STOPS
    steps = episodes * horizon
    if budget.unit == "steps":
        steps = int(budget.amount) + (EPISODES_BETWEEN_STOPS + 1) * horizon
    return episodes, steps


def _pointer_to(function: Any, signature: Any) -> Any:
    """The function as a pointer that the loop takes.

    Given the function itself, numba would compile the loop anew for it, in every process.
    """
    return types.CompileResultWAP(_compile_for(function, signature))


def _compile_for(function: Any, signature: Any) -> Any:
    dispatcher = cast(Any, function)
    if signature.args not in dispatcher.overloads:
        dispatcher.compile(signature)
    return dispatcher.overloads[signature.args]

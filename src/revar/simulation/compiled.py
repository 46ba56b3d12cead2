"""Runs through the compiled loop. Its types are fixed, so that rules can be passed as pointers."""

from collections.abc import Callable
from math import inf
from typing import Any, cast

import numba
import numpy as np
from numba import boolean, float64, int64, types

from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.smallest_error import SmallestError, better_mean
from revar.model.arrays import Layers, Outcomes, RunStatistics
from revar.model.structure import reachable_layers
from revar.simulation.loop import (
    EPISODES_BETWEEN_STOPS,
    Revisions,
    loop_around,
    play_episodes,
    play_run,
)
from revar.simulation.recording import Log, RunResults, dataset_of, empty_log
from revar.simulation.result import Job
from revar.simulation.world import World
from revar.strategies.compiled_rule import (
    CompiledPlan,
    CompiledRule,
    EpisodePath,
    LimitArrays,
    RuleParameters,
    TaskArrays,
    keep_plan,
)
from revar.strategies.selection import Selection
from revar.strategies.strategy import visible_task


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
        _FLOATS,
    ),
    *(_INTS, _INTS, _INTS, _FLOAT_TABLE, _FLOAT_TABLE),
)
_LOG = _tuple_type(Log, _INTS, _INTS, _INTS, _FLOATS, _INTS, _FLOATS)
_GENERATOR = cast(Any, numba).typeof(np.random.default_rng(0))
REVISE_SIGNATURE = types.void(_TASK, _STATISTICS, _PLAN, _PARAMETERS, _PATH, int64, int64)
_RULE = types.FunctionType(REVISE_SIGNATURE)
EPISODES_SIGNATURE = int64(
    *(int64, int64, float64, _FLOATS, _WORLD, _TASK, _STATISTICS, _PLAN, _PARAMETERS),
    *(_RULE, _RULE, _REVISIONS, int64, boolean, _PATH, _LOG, boolean, _INTS, _GENERATOR),
)
RUN_SIGNATURE = cast(Any, types).Tuple((boolean, _LOG))(
    *(_WORLD, _TASK, _tuple_type(Layers, _INTS, _INTS), _OUTCOMES, _PLAN, _PARAMETERS),
    *(types.FunctionType(EPISODES_SIGNATURE), _RULE, _RULE, _REVISIONS),
    *(boolean, boolean, int64, boolean, _FLOATS, _RESULTS, _LOG, boolean, _GENERATOR, _INTS),
)


def find_rule(job: Job) -> CompiledRule | None:
    """The strategy's own rule; or, for a plan that lasts for good, the rule to keep it."""
    rule = job.strategy.compiled_rule(
        visible_task(job.strategy, job.task), tree=job.mdp.structure().is_tree
    )
    if rule is None and job.plan.lasts is None:
        follows = job.plan.selection is Selection.FOLLOW
        rule = CompiledRule(CompiledPlan.of(job.plan.scores, follows=follows))
    return rule


def make_compiled_player(job: Job, rule: CompiledRule) -> Callable[[int], bool]:
    """What plays a run of the job by its number: False if it was stopped."""
    mdp, task = job.mdp, job.task
    _compile_for(play_run, RUN_SIGNATURE)
    loop = loop_around(rule.on_episode) if rule.in_loop else play_episodes
    play_by = _pointer_to(loop, EPISODES_SIGNATURE)
    on_step = _pointer_to(rule.on_step, REVISE_SIGNATURE)
    on_episode = _pointer_to(keep_plan if rule.in_loop else rule.on_episode, REVISE_SIGNATURE)
    revisions = Revisions(
        rule.on_step is not keep_plan, rule.on_episode is not keep_plan, rule.in_loop
    )
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

    def play(run: int) -> bool:
        logged_at, played_at = (np.zeros(job.checkpoints.size, dtype=np.int64) for _ in "ab")
        logged = np.zeros(1, dtype=np.int64)
        thin_share, evident = (np.zeros((job.checkpoints.size, len(task.policies))) for _ in "ab")
        ended, log = play_run(
            world,
            arrays,
            layers,
            mdp.arrays.outcomes,
            first_plan,
            rule.parameters,
            play_by,
            on_step,
            on_episode,
            revisions,
            known,
            in_loop,
            job.plan.visits_first,
            job.plan.alternates,
            job.checkpoints,
            RunResults(
                job.values[run],
                job.covariances[run],
                job.freedom[run],
                job.unvisited[run],
                job.visits[run],
                job.finished[run],
                job.spent[run],
                logged,
                logged_at,
                played_at,
                thin_share,
                evident,
            ),
            empty_log(*room),
            log_all,
            job.stream(run),
            job.stop,
        )
        if logging and ended:
            dataset = dataset_of(log, mdp.states, int(logged[0]))
            for i, count in enumerate(logged_at.tolist()):
                if job.stop[0] != 0:
                    return False
                if chooses and count > 1:
                    played = int(played_at[i])
                    better = better_mean(
                        *(task, dataset.head(count), played, outcomes),
                        *(thin_share[i, 0], evident[i, 0]),
                    )
                    if better is not None:
                        job.write(run, i, better)
                        job.freedom[run, i] = inf
                elif not in_loop and count >= job.estimator.least_episodes:
                    job.write(run, i, job.estimator.estimate(task, dataset.head(count)))
            if job.keep_episodes:
                job.datasets[run] = dataset
        return bool(ended)

    return play


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

"""One run of an adaptive collection, compiled: episodes, statistics, plans, estimates."""

from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba import boolean, float64, int64, types

from revar.compilation import compiled
from revar.engine.world import World, draw_outcome, draw_reward, first_state
from revar.estimators.certainty_equivalence import plug_in
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes
from revar.model.moments import push
from revar.strategies.reduced_variance import refresh_frequencies
from revar.strategies.rule import Memory, Path, Question, Revise, Seen
from revar.strategies.selection import choose

push_moments = compiled(push)


class Ledger(NamedTuple):
    """Where a run writes its results: rows of arrays that all runs share."""

    estimates: FloatArray  # [checkpoint]
    standard_errors: FloatArray  # [checkpoint]
    unvisited: FloatArray  # [checkpoint]
    visits: IntArray  # [S, A]
    finished: IntArray  # [1] episodes played so far, read by the progress display


class Log(NamedTuple):
    """Every step of the run, kept only where `states` has room for it."""

    start: IntArray  # [episode + 1]
    states: IntArray  # [step]
    actions: IntArray  # [step]
    rewards: FloatArray  # [step]
    successors: IntArray  # [step]
    propensities: FloatArray  # [step]


def _play_run(
    world: World,
    question: Question,
    layers: Layers,
    outcomes: Outcomes,
    memory_before: Memory,
    parameters: FloatArray,
    on_step: Revise,
    on_episode: Revise,
    revises: IntArray,
    known_to_strategy: bool,
    known_to_estimator: bool,
    estimating: bool,
    selection: int,
    visits_first: int,
    checkpoints: IntArray,
    ledger: Ledger,
    log: Log,
    rng: np.random.Generator,
    stop: IntArray,
) -> bool:
    """Play all episodes; False if `stop` was raised before the last one.

    `revises` holds whether on_step and on_episode do anything.
    """
    states, actions = question.policy.shape
    slots = outcomes.successor.size
    seen = Seen(
        ledger.visits,
        np.zeros((states, actions)),
        np.zeros((states, actions)),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots),
    )
    memory = Memory(
        memory_before.scores.copy(),
        memory_before.normalizers.copy(),
        memory_before.deviation.copy(),
    )
    believed = Outcomes(
        outcomes.row_start,
        outcomes.successor,
        outcomes.probability.copy() if known_to_strategy else np.zeros(slots),
    )
    plugged = Outcomes(
        outcomes.row_start,
        outcomes.successor,
        outcomes.probability.copy() if known_to_estimator else np.zeros(slots),
    )
    path = Path(
        np.zeros(question.horizon, dtype=np.int64), np.zeros(question.horizon, dtype=np.int64)
    )
    stationary = memory.scores.shape[0] == 1
    logging = log.states.size > 0
    steps_logged = 0
    checkpoint = 0
    for episode in range(question.episodes):
        if stop[0] != 0:
            return False
        s = first_state(world, rng)
        steps = 0
        for t in range(question.horizon):
            a, propensity = choose(
                selection,
                visits_first,
                memory.scores[0 if stationary else t, s],
                question.policy[s],
                seen.visits[s],
                rng,
            )
            pair = s * actions + a
            slot = draw_outcome(world, pair, rng)
            reward = draw_reward(world, pair, slot, rng)
            successor = world.successor[slot]
            path.states[t], path.actions[t] = s, a
            steps = t + 1
            record(seen, s, a, slot, reward)
            if logging:
                log.states[steps_logged] = s
                log.actions[steps_logged] = a
                log.rewards[steps_logged] = reward
                log.successors[steps_logged] = -1 if successor == states else successor
                log.propensities[steps_logged] = propensity
                steps_logged += 1
            if revises[0] != 0:
                on_step(question, believed, seen, memory, parameters, path, steps, episode)
            if successor == states:
                break
            s = successor
        if logging:
            log.start[episode + 1] = steps_logged
        if revises[1] != 0:
            on_episode(question, believed, seen, memory, parameters, path, steps, episode + 1)
        ledger.finished[0] = episode + 1
        if checkpoint < checkpoints.size and checkpoints[checkpoint] == episode + 1:
            if estimating:
                if not known_to_estimator:
                    refresh_frequencies(plugged, seen.visits, seen.outcome_count)
                value, variance, unvisited = plug_in(
                    plugged,
                    question.initial,
                    question.policy,
                    layers,
                    question.discount,
                    seen.visits,
                    seen.reward_mean,
                    seen.reward_squares,
                    seen.outcome_reward_mean,
                    known_to_estimator,
                    0,
                )
                ledger.estimates[checkpoint] = value
                ledger.standard_errors[checkpoint] = np.sqrt(variance)
                ledger.unvisited[checkpoint] = unvisited
            checkpoint += 1
    return True


@compiled
def record(seen: Seen, state: int, action: int, slot: int, reward: float) -> None:
    """Add one step to the run's statistics, as VisitStatistics.record_step does."""
    seen.visits[state, action] += 1
    count = seen.visits[state, action]
    seen.reward_mean[state, action], seen.reward_squares[state, action] = push_moments(
        count, seen.reward_mean[state, action], seen.reward_squares[state, action], reward
    )
    seen.outcome_count[slot] += 1
    seen.outcome_reward_mean[slot] += (
        reward - seen.outcome_reward_mean[slot]
    ) / seen.outcome_count[slot]


def _tuple_type(record_class: type, *fields: Any) -> Any:
    if len(set(fields)) == 1:
        return types.NamedUniTuple(fields[0], len(fields), record_class)
    return types.NamedTuple(list(fields), record_class)


_INTS, _FLOATS = int64[::1], float64[::1]
_INT_TABLE, _FLOAT_TABLE, _FLOAT_CUBE = int64[:, ::1], float64[:, ::1], float64[:, :, ::1]
_QUESTION = _tuple_type(Question, _FLOAT_TABLE, _FLOATS, int64, float64, int64)
_OUTCOMES = _tuple_type(Outcomes, _INTS, _INTS, _FLOATS)
_MEMORY = _tuple_type(Memory, _FLOAT_CUBE, _FLOATS, _FLOAT_TABLE)
REVISE_SIGNATURE = types.void(
    _QUESTION,
    _OUTCOMES,
    _tuple_type(Seen, _INT_TABLE, _FLOAT_TABLE, _FLOAT_TABLE, _INTS, _FLOATS),
    _MEMORY,
    _FLOATS,
    _tuple_type(Path, _INTS, _INTS),
    int64,
    int64,
)
RUN_SIGNATURE = boolean(
    _tuple_type(
        World, _INTS, _INTS, _FLOATS, _FLOATS, _FLOATS, boolean, int64, _INTS, _FLOATS
    ),
    _QUESTION,
    _tuple_type(Layers, _INTS, _INTS),
    _OUTCOMES,
    _MEMORY,
    _FLOATS,
    types.FunctionType(REVISE_SIGNATURE),
    types.FunctionType(REVISE_SIGNATURE),
    _INTS,
    boolean,
    boolean,
    boolean,
    int64,
    int64,
    _INTS,
    _tuple_type(Ledger, _FLOATS, _FLOATS, _FLOATS, _INT_TABLE, _INTS),
    _tuple_type(Log, _INTS, _INTS, _INTS, _FLOATS, _INTS, _FLOATS),
    numba.typeof(np.random.default_rng(0)),
    _INTS,
)
play_run = compiled(_play_run)


def prepare(*rules: Revise) -> None:
    """Compile the loop and the rules for the one signature that lets rules be passed to it."""
    for function, signature in (*((rule, REVISE_SIGNATURE) for rule in rules), (play_run, RUN_SIGNATURE)):
        dispatcher = cast(Any, function)
        if not dispatcher.signatures:
            dispatcher.compile(signature)

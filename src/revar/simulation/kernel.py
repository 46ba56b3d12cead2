"""One run of an adaptive collection, compiled: episodes, statistics, plans, estimates."""

from typing import Any, NamedTuple, cast

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined
from revar.estimators.certainty_equivalence import plug_in
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.model.moments import push
from revar.model.rewards import RewardLaw
from revar.simulation.world import World, locate, reward_of
from revar.strategies.reduced_variance import replan
from revar.strategies.rule import Memory, Path, Question, Revise, refresh_frequencies
from revar.strategies.selection import (
    Selection,
    best_action,
    sampled_action,
    tied_action,
)


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
    successors: IntArray  # [step]; the number of states where the episode ended
    propensities: FloatArray  # [step]


# How many episodes are played between two looks at `stop`, at most; and how many times, at most,
# all pairs may be swept at all steps in between, as a rule that plans after every episode does.
PATIENCE = 256
# ReVar revises after every episode. Through a pointer the call costs as much as its arithmetic,
# so that this one rule is compiled into the loop.
BY_NAME = 2
replan_here = inlined(cast(Any, replan).py_func)
SWEPT_PAIRS = 1_000_000


@compiled_in_place
def _play(  # noqa: PLR0912 - the innermost loop, in one piece
    begin: int,
    end: int,
    world: World,
    question: Question,
    statistics: RunStatistics,
    memory: Memory,
    parameters: FloatArray,
    on_step: Revise,
    on_episode: Revise,
    revises: IntArray,
    selection: int,
    visits_first: int,
    path: Path,
    log: Log,
    rng: np.random.Generator,
) -> None:
    """Play the episodes from number `begin` up to, without it, number `end`."""
    states, actions = question.policy.shape
    stationary = memory.scores.shape[0] == 1
    logging = log.states.size > 0
    for episode in range(begin, end):
        s = world.start_states[0]
        if world.start_states.size > 1:
            s = world.start_states[
                locate(world.start_cumulative, 0, world.start_states.size, rng.random())
            ]
        statistics.initial_count[s] += 1
        steps = 0
        while s != states and steps < question.horizon:
            table = 0 if stationary else steps
            propensity = np.nan
            if selection == Selection.SAMPLE:
                a = sampled_action(memory.scores, table, s, rng.random())
                propensity = memory.scores[table, s, a]
            else:
                a, ties = best_action(
                    selection,
                    visits_first,
                    memory.scores,
                    table,
                    s,
                    question.policy,
                    statistics.visits,
                    memory.taken,
                )
                if ties == 0:
                    a = sampled_action(memory.scores, table, s, rng.random())
                elif ties > 1:
                    a = tied_action(
                        selection,
                        visits_first,
                        memory.scores,
                        table,
                        s,
                        question.policy,
                        statistics.visits,
                        memory.taken,
                        a,
                        int(rng.random() * ties),
                    )
                if selection == Selection.FOLLOW:
                    memory.taken[table, s, a] += 1
            pair = s * actions + a
            slot, last = world.row_start[pair], world.row_start[pair + 1]
            if last - slot > 1:
                slot = locate(world.cumulative, slot, last, rng.random())
            draw = 0.0
            if world.reward_law == RewardLaw.NORMAL:
                draw = rng.standard_normal()
            elif world.reward_law != RewardLaw.DETERMINISTIC:
                draw = rng.random()
            source = slot if world.by_outcome else pair
            reward = reward_of(
                world.reward_law, world.reward_mean[source], world.reward_std[source], draw
            )
            record(statistics, s, a, slot, reward)
            path.states[steps] = s
            path.actions[steps] = a
            if logging:
                _log_step(log, episode, steps, s, a, reward, world.successor[slot], propensity)
            s = world.successor[slot]
            steps += 1
            if revises[0] != 0:
                on_step(question, statistics, memory, parameters, path, steps, episode)
        if logging:
            log.start[episode + 1] = log.start[episode] + steps
        if revises[1] == BY_NAME:
            replan_here(question, statistics, memory, parameters, path, steps, episode + 1)
        elif revises[1] != 0:
            on_episode(question, statistics, memory, parameters, path, steps, episode + 1)


@inlined
def record(statistics: RunStatistics, state: int, action: int, slot: int, reward: float) -> None:
    """Add one step to the run's statistics, as VisitStatistics.record_step does."""
    count = statistics.visits[state, action] + 1
    statistics.visits[state, action] = count
    mean, squares, cubes, quartics = push(
        count,
        statistics.reward_mean[state, action],
        statistics.reward_squares[state, action],
        statistics.reward_cubes[state, action],
        statistics.reward_quartics[state, action],
        reward,
    )
    statistics.reward_mean[state, action] = mean
    statistics.reward_squares[state, action] = squares
    statistics.reward_cubes[state, action] = cubes
    statistics.reward_quartics[state, action] = quartics
    statistics.outcome_count[slot] += 1
    statistics.outcome_reward_mean[slot] += (
        reward - statistics.outcome_reward_mean[slot]
    ) / statistics.outcome_count[slot]


@compiled_in_place
def _log_step(
    log: Log,
    episode: int,
    step: int,
    state: int,
    action: int,
    reward: float,
    successor: int,
    propensity: float,
) -> None:
    place = log.start[episode] + step
    log.states[place] = state
    log.actions[place] = action
    log.rewards[place] = reward
    log.successors[place] = successor
    log.propensities[place] = propensity


@compiled
def play_run(
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
    statistics = RunStatistics(
        Outcomes(
            outcomes.row_start,
            outcomes.successor,
            outcomes.probability.copy() if known_to_strategy else np.zeros(slots),
        ),
        ledger.visits,
        np.zeros((states, actions)),
        np.zeros((states, actions)),
        np.zeros((states, actions)),
        np.zeros((states, actions)),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots),
        np.zeros(states, dtype=np.int64),
    )
    # The same for the estimator, which may know other things than the strategy.
    estimated = RunStatistics(
        Outcomes(
            outcomes.row_start,
            outcomes.successor,
            outcomes.probability.copy() if known_to_estimator else np.zeros(slots),
        ),
        statistics.visits,
        statistics.reward_mean,
        statistics.reward_squares,
        statistics.reward_cubes,
        statistics.reward_quartics,
        statistics.outcome_count,
        statistics.outcome_reward_mean,
        statistics.initial_count,
    )
    memory = Memory(
        memory_before.scores.copy(),
        memory_before.normalizers.copy(),
        memory_before.deviation.copy(),
        memory_before.spare.copy(),
        memory_before.taken.copy(),
    )
    path = Path(
        np.zeros(question.horizon, dtype=np.int64), np.zeros(question.horizon, dtype=np.int64)
    )
    patience = min(PATIENCE, max(1, SWEPT_PAIRS // (states * actions * question.horizon)))
    episode = 0
    checkpoint = 0
    while episode < question.episodes:
        if stop[0] != 0:
            return False
        pause = min(question.episodes, episode + patience)
        if checkpoint < checkpoints.size:
            pause = min(pause, checkpoints[checkpoint])
        _play(
            episode,
            pause,
            world,
            question,
            statistics,
            memory,
            parameters,
            on_step,
            on_episode,
            revises,
            selection,
            visits_first,
            path,
            log,
            rng,
        )
        episode = pause
        ledger.finished[0] = episode
        if checkpoint < checkpoints.size and checkpoints[checkpoint] == episode:
            if estimating:
                if not known_to_estimator:
                    refresh_frequencies(estimated)
                value, variance, unvisited = plug_in(
                    estimated,
                    question.initial,
                    question.policy,
                    layers,
                    question.discount,
                    known_to_estimator,
                    0,
                )
                ledger.estimates[checkpoint] = value
                ledger.standard_errors[checkpoint] = np.sqrt(variance)
                ledger.unvisited[checkpoint] = unvisited
            checkpoint += 1
    return True

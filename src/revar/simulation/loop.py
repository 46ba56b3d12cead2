"""The compiled loop: a run of an adaptive collection, with its statistics and estimates."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined, with_functions
from revar.estimators.certainty_equivalence import PluggedIn, plug_in
from revar.model.arrays import FloatArray, IntArray, Layers, RunStatistics
from revar.model.rewards import RewardLaw
from revar.simulation.recording import Log, RunResults, has_room, log_step, record_step
from revar.simulation.world import World, locate, reward_of
from revar.strategies.compiled_rule import (
    CompiledPlan,
    EpisodePath,
    Revise,
    RuleParameters,
    TaskArrays,
    keep_plan,
    refresh_frequencies,
)
from revar.strategies.selection import Selection, best_action, sampled_action, tied_action


class Revisions(NamedTuple):
    """When the plan is revised, and how."""

    after_steps: bool  # by the pointer `on_step`
    after_episodes: bool  # by the pointer `on_episode`
    in_loop: bool  # after episodes, by the rule that is compiled into the loop


# `stop` is read at least every so many episodes, and at least as often as a rule that plans after
# every episode sweeps so many pairs.
EPISODES_BETWEEN_STOPS = 256
MOST_SWEPT_PAIRS = 1_000_000

# In a loop made by `loop_around` this is its rule.
revise_in_loop = inlined(keep_plan)


@compiled_in_place
def play_episodes(  # noqa: PLR0912, PLR0915 - the innermost loop, in one piece
    begin: int,
    end: int,
    until: float,
    spent: FloatArray,
    world: World,
    task: TaskArrays,
    statistics: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    on_step: Revise,
    on_episode: Revise,
    revisions: Revisions,
    visits_first: int,
    alternates: bool,
    path: EpisodePath,
    log: Log,
    log_all: bool,
    logged: IntArray,
    rng: np.random.Generator,
) -> int:
    """Play the episodes from number `begin` up to, without it, number `end`, or until so much is
    spent; the number of the next one.
    """
    states, actions = task.policy.shape
    tables = plan.scores.shape[0]
    by_step = tables > 1 and not alternates  # as `Plan` has it
    logging = log.states.size > 0
    by_visit = task.episode_cost == 0.0
    used = spent[0]
    times = parameters.plan_times
    always = times.size == 0
    upcoming = 0
    while upcoming < times.size and times[upcoming] <= begin:
        upcoming += 1
    due = times[upcoming] if upcoming < times.size else -1
    for episode in range(begin, end):
        s = world.start_states[0]
        if world.start_states.size > 1:
            s = world.start_states[
                locate(world.start_cumulative, 0, world.start_states.size, rng.random())
            ]
        statistics.initial_count[s] += 1
        selection = plan.selection[0]
        only_table = episode % tables if alternates else 0
        noting = logging and (log_all or selection == Selection.SAMPLE)
        steps = 0
        while s != states and steps < task.horizon:
            table = steps if by_step else only_table
            propensity = np.nan
            if selection == Selection.SAMPLE:
                a = sampled_action(plan.scores, table, s, rng.random())
                propensity = plan.scores[table, s, a]
            else:
                a, ties = best_action(
                    selection,
                    visits_first,
                    plan.scores,
                    table,
                    s,
                    task.policy,
                    statistics.visits,
                    plan.taken,
                )
                if ties == 0:
                    a = sampled_action(plan.scores, table, s, rng.random())
                elif ties > 1:
                    a = tied_action(
                        selection,
                        visits_first,
                        plan.scores,
                        table,
                        s,
                        task.policy,
                        statistics.visits,
                        plan.taken,
                        a,
                        int(rng.random() * ties),
                    )
                if selection == Selection.FOLLOW:
                    plan.taken[table, s, a] += 1
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
            record_step(statistics, s, a, slot, reward)
            path.states[steps] = s
            path.actions[steps] = a
            if noting:
                log_step(log, logged[0], steps, s, a, reward, world.successor[slot], propensity)
            s = world.successor[slot]
            steps += 1
            if revisions.after_steps:
                on_step(task, statistics, plan, parameters, path, steps, episode)
        if noting:
            log.start[logged[0] + 1] = log.start[logged[0]] + steps
            logged[0] += 1
        used += task.episode_cost
        if by_visit:
            for step in range(steps):
                used += task.visit_cost[path.states[step], path.actions[step]]
        if always or episode + 1 == due:
            if revisions.in_loop:
                revise_in_loop(task, statistics, plan, parameters, path, steps, episode + 1)
            elif revisions.after_episodes:
                on_episode(task, statistics, plan, parameters, path, steps, episode + 1)
            upcoming += 1
            due = times[upcoming] if upcoming < times.size else -1
        if used >= until:
            end = episode + 1
            break
    spent[0] = used
    return end


PlayEpisodes = Callable[..., int]


@cache
def loop_around(rule: Revise) -> PlayEpisodes:
    """`play_episodes` with that rule compiled into it."""
    return compiled_in_place(with_functions(play_episodes, revise_in_loop=inlined(rule)))


@compiled
def play_run(
    world: World,
    task: TaskArrays,
    layers: Layers,
    statistics: RunStatistics,
    estimated: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    path: EpisodePath,
    play: PlayEpisodes,
    on_step: Revise,
    on_episode: Revise,
    revisions: Revisions,
    known_to_estimator: bool,
    estimating: bool,
    visits_first: int,
    alternates: bool,
    pause: int,
    checkpoints: FloatArray,
    results: RunResults,
    log: Log,
    log_all: bool,
    rng: np.random.Generator,
    stop: IntArray,
) -> None:
    """Play by `play` until `pause` episodes are finished or all is spent.

    It ends before if `stop` is raised, or if the log has no room for as many episodes as are played
    at a time. `estimated` has the same statistics for the estimator, which may know other things
    than the strategy.
    """
    most_episodes = episodes_at_a_time(task)
    episode = results.finished[0]
    checkpoint = results.checkpoint[0]
    spent = results.spent
    while spent[0] < task.budget and episode < pause and stop[0] == 0:
        if log.states.size > 0 and not has_room(
            log, results.logged[0], most_episodes, task.horizon
        ):
            return
        until = task.budget
        if checkpoint < checkpoints.size:
            until = checkpoints[checkpoint]
        episode = play(
            episode,
            min(pause, episode + most_episodes),
            until,
            spent,
            world,
            task,
            statistics,
            plan,
            parameters,
            on_step,
            on_episode,
            revisions,
            visits_first,
            alternates,
            path,
            log,
            log_all,
            results.logged,
            rng,
        )
        results.finished[0] = episode
        while checkpoint < checkpoints.size and spent[0] >= checkpoints[checkpoint]:
            if estimating:
                if not known_to_estimator:
                    refresh_frequencies(estimated)
                found = plug_in(
                    estimated,
                    task.initial,
                    task.policies,
                    layers,
                    task.discount,
                    known_to_estimator,
                    0,
                )
                _write(found, results, checkpoint)
            results.logged_at[checkpoint] = results.logged[0]
            results.played_at[checkpoint] = episode
            checkpoint += 1
            results.checkpoint[0] = checkpoint


@compiled_in_place
def episodes_at_a_time(task: TaskArrays) -> int:
    """How many episodes are played before `stop` is read again, at most."""
    states, actions = task.policy.shape
    swept = states * actions * task.horizon
    return int(min(EPISODES_BETWEEN_STOPS, max(1, MOST_SWEPT_PAIRS // swept)))


@compiled_in_place
def _write(found: PluggedIn, results: RunResults, checkpoint: int) -> None:
    """Note what was estimated at a checkpoint."""
    for j in range(found.values.size):
        results.values[checkpoint, j] = found.values[j]
        results.freedom[checkpoint, j] = found.freedom[j]
        results.unvisited[checkpoint, j] = found.unvisited[j]
        results.thin_share[checkpoint, j] = found.thin_share[j]
        for k in range(found.values.size):
            results.covariances[checkpoint, j, k] = found.covariance[j, k]

"""One run in plain Python: for strategies without a compiled rule, and to check the compiled loop.

It plays the identical stream through the objects that live collection uses (Collector,
VisitStatistics, estimators); only speed differs.
"""

from collections.abc import Callable

import numpy as np

from revar.estimators.estimator import Estimate, Estimator
from revar.model.arrays import IntArray
from revar.model.mdp import TabularMDP
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset, Trajectory
from revar.simulation.collector import Collector
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward
from revar.strategies.strategy import Strategy, visible_task


def play_episode(collector: Collector, world: World, horizon: int) -> Trajectory:
    """One episode of the simulated environment under the collector's plan."""
    states: list[int] = []
    actions: list[int] = []
    rewards: list[float] = []
    propensities: list[float] = []
    rng = collector.rng
    ended = collector.task.states
    state = draw_first_state(world, rng)
    collector.begin(state)
    successor = ENDED
    for _ in range(horizon):
        action, propensity = collector.act(state)
        pair = state * collector.task.actions + action
        slot = draw_outcome(world, pair, rng)
        reward = draw_reward(world, slot if world.by_outcome else pair, rng)
        successor = int(world.successor[slot])
        successor = ENDED if successor == ended else successor
        collector.observe(state, action, reward, successor)
        states.append(state)
        actions.append(action)
        rewards.append(reward)
        propensities.append(propensity)
        if successor == ENDED:
            break
        state = successor
    collector.end()
    return Trajectory.of(
        states, actions, rewards, last_successor=successor, propensities=propensities
    )


def play_run(
    mdp: TabularMDP,
    world: World,
    task: Task,
    strategy: Strategy,
    estimator: Estimator,
    episodes: int,
    checkpoints: IntArray,
    rng: np.random.Generator,
    finished: Callable[[int], None],
) -> tuple[list[Estimate | None], VisitStatistics, Dataset]:
    """The estimate at every checkpoint (None where it is too early), statistics, and episodes."""
    collector = Collector(
        strategy, visible_task(strategy, task), VisitStatistics.for_model(mdp), rng
    )
    trajectories: list[Trajectory] = []
    estimates: list[Estimate | None] = []
    due = set(checkpoints.tolist())
    for episode in range(1, episodes + 1):
        trajectories.append(play_episode(collector, world, mdp.horizon))
        if episode in due:
            estimates.append(_estimate(estimator, task, collector.statistics, trajectories))
        finished(episode)
    return estimates, collector.statistics, Dataset.of(trajectories)


def _estimate(
    estimator: Estimator, task: Task, statistics: VisitStatistics, episodes: list[Trajectory]
) -> Estimate | None:
    if len(episodes) < estimator.least_episodes:
        return None
    return estimator.estimate(
        task, Dataset.of(episodes) if estimator.needs_episodes else statistics
    )

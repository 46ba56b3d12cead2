"""Small problems and data on which contracts are checked."""

from functools import cache

import numpy as np

from revar.model.mdp import TabularMDP
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.problems import Problem, problems
from revar.simulation.simulate import simulate


@cache
def sample_problems() -> tuple[Problem, ...]:
    """A tree, a grid, and a problem with everything that a model may have."""
    return problems.find("tree")(3), problems.find("gridworld")(3), crossroads()


def crossroads() -> Problem:
    """Two start states, endings, rewards by outcome, and a target policy with gaps.

    The target policy never takes action 2 in states 0 and 1, takes a single action in state 2,
    and has no row for state 4, to which only action 2 leads.
    """
    transitions = np.zeros((5, 3, 5))
    transitions[0, 0, [1, 2]] = 0.6, 0.4
    transitions[0, 1, [2, 3]] = 0.5, 0.3  # and ends with probability 0.2
    transitions[0, 2, 4] = 1.0
    transitions[1, 0, [2, 3]] = 0.9, 0.1
    transitions[1, 1, 0] = 1.0  # a way back
    transitions[1, 2, 4] = 1.0
    transitions[2, 1, 3] = 0.7
    transitions[3, :2, 1] = 0.5, 0.25
    transitions[4, :, 0] = 0.5
    rng = np.random.default_rng(0)
    mdp = TabularMDP(
        transitions,
        rng.normal(size=(5, 3, 6)),
        rng.exponential(size=(5, 3, 6)),
        [0.7, 0.3, 0.0, 0.0, 0.0],
        5,
        0.9,
        reward_law="two-point",
    )
    policy = np.array(
        [[0.8, 0.2, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 0.0]]
    )
    return Problem("crossroads", mdp, policy)


def task_of(problem: Problem, episodes: int) -> Task:
    """The problem's task, with the model."""
    return Task.of(problem.mdp, problem.policy, episodes=episodes)


@cache
def on_policy_episodes(problem: Problem, episodes: int) -> Dataset:
    """Episodes of the target policy itself, with propensities."""
    result = simulate(
        problem.mdp, problem.policy, "on-policy", episodes=episodes, runs=1, keep_episodes=True
    )
    return result.datasets[0]


def statistics_of(problem: Problem, data: Dataset) -> VisitStatistics:
    """What is learned from the episodes."""
    statistics = VisitStatistics(problem.mdp.states, problem.mdp.actions)
    statistics.record_many(data)
    return statistics

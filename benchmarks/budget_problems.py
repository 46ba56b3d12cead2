"""The problems on which budgets and limits are studied: models, and soft policies for them."""

from collections.abc import Callable

import numpy as np

import revar
from revar.model.arrays import FloatArray

Case = tuple[revar.TabularMDP, FloatArray]  # a model and a target policy [S, A]
DISCOUNT = 0.99
EPSILON = 0.2  # of soft policies, where nothing else is said


def gridworld() -> Case:
    """The paper's gridworld."""
    problem = revar.find_problem("gridworld")
    return problem.mdp, problem.policy


def frozen_lake(epsilon: float) -> Callable[[], Case]:
    """The 4 x 4 lake, and its best policy, soft by epsilon."""

    def build() -> Case:
        problem = revar.find_problem("frozenlake", epsilon=epsilon)
        return problem.mdp, problem.policy

    return build


def slippery_cliff() -> Case:
    """CliffWalking where moves may slip to either side."""
    return _from_gymnasium("CliffWalking-v1", horizon=100, is_slippery=True)


def taxi() -> Case:
    """Taxi-v4, where nothing is random but the first state: every pair needs one visit."""
    return _from_gymnasium("Taxi-v4")


def rainy_taxi() -> Case:
    """Taxi-v4 on wet streets, where moves may slip."""
    return _from_gymnasium("Taxi-v4", is_rainy=True)


def costly_river() -> Case:
    """RiverSwim with a good left bank, where the target policy stays: exploring is expensive."""
    river = revar.find_problem("riverswim").mdp
    mean, std = np.zeros((6, 2)), np.zeros((6, 2))
    mean[0, 0], mean[5, 1] = 0.5, 1.0
    std[0, 0], std[5, 1] = 0.1, 3.0
    mdp = revar.TabularMDP(river.transitions, mean, std, river.initial, river.horizon)
    return mdp, np.tile([0.7, 0.3], (6, 1))


def rare_loss() -> Case:
    """Action 0 pays nothing; action 1 pays 1, and once in 33 times loses 60."""
    transitions, reward = np.zeros((2, 2, 2)), np.zeros((2, 2, 3))  # [S, A, S], [S, A, S+1]
    transitions[0, 1, 1] = 32.0 / 33.0
    reward[0, 1, 1:] = 1.0, -60.0
    mdp = revar.TabularMDP(transitions, reward, np.zeros((2, 2, 3)), [1.0, 0.0], 1)
    return mdp, np.tile([0.9, 0.1], (2, 1))


def most_earned(mdp: revar.TabularMDP, rewards: FloatArray, discount: float) -> FloatArray:
    """The most that is earned from each action on, with the whole horizon ahead, [S, A]."""
    values = np.zeros(rewards.shape)
    for _ in range(mdp.horizon):
        later = mdp.transitions @ values.max(axis=1)
        values = rewards + discount * later.reshape(rewards.shape)
    return values


def _from_gymnasium(name: str, horizon: int | None = None, **options: bool) -> Case:
    mdp = revar.from_gymnasium(name, horizon=horizon, discount=DISCOUNT, env_options=options)
    values = most_earned(mdp, mdp.reward_mean, mdp.discount)
    best = np.argmax(values >= values.max(axis=1, keepdims=True) - 1e-12, axis=1)
    policy = np.full(values.shape, EPSILON / mdp.actions)
    policy[np.arange(mdp.states), best] += 1.0 - EPSILON
    return mdp, policy

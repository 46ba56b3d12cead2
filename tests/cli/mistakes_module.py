"""What users bring that cannot be used, by name: `tests.cli.mistakes_module:Pictures`."""

from typing import Any

import gymnasium
import numpy as np

from tests.environments.custom import Corridor


class VecEnv:
    """Several environments, as Stable-Baselines3 has them."""

    num_envs = 4

    def reset(self) -> Any:
        return np.zeros((4, 1))

    def step(self, actions: Any) -> Any:
        return np.zeros((4, 1)), np.zeros(4), np.zeros(4, bool), [{}] * 4


class Agents:
    """Several agents, as PettingZoo has them."""

    possible_agents = ("first", "second")

    def reset(self, seed: int | None = None) -> Any:
        return {}, {}

    def step(self, actions: Any) -> Any:
        return {}, {}, {}, {}, {}


class Pictures(gymnasium.Env[Any, Any]):
    """Observations that are images."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)


def corridor() -> Corridor:
    """An environment of 3 states and 2 actions."""
    return Corridor(3)


def endless() -> Any:
    """An environment that never ends."""
    return gymnasium.make("CliffWalking-v1").unwrapped


def broken(_observation: Any) -> Any:
    """A policy that raises."""
    raise ZeroDivisionError("no such luck")


def half(_observation: Any) -> Any:
    """A policy that gives neither probabilities nor an action."""
    return 0.5


def third(_observation: Any) -> int:
    """A policy that takes an action there is not."""
    return 2


def not_a_policy() -> None:
    """A function of nothing."""

"""A small environment of continuous observations, and policies for it."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import revar

HORIZON = 8


class Drift(gymnasium.Env[Any, Any]):
    """A number that is pushed about; the reward is its negative square."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space: Any = spaces.Discrete(2)

    def __init__(self, trouble: str = "", when: int = 10**9, pushes: bool = False) -> None:
        self.horizon = HORIZON
        self.trouble, self.when = trouble, when
        self.resets = 0
        if pushes:
            self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.resets += 1
        if self.trouble == "reset" and self.resets > self.when:
            raise RuntimeError("no more resets")
        self.x = float(self.np_random.normal())
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        push = float(np.ravel(action)[0])
        push = push - 0.5 if isinstance(self.action_space, spaces.Discrete) else push
        self.x = 0.9 * self.x + push + 0.1 * float(self.np_random.normal())
        reward = -self.x * self.x
        if self.trouble == "reward" and self.resets > self.when:
            reward = np.nan
        return np.array([self.x]), reward, abs(self.x) > 3, False, {"fuel": abs(push)}


def make(**options: Any) -> Drift:
    return Drift(**options)


BY_ID = "Drift-v0"  # where how it was made is known
gymnasium.register(BY_ID, entry_point=make, disable_env_checker=True)


def steer(observation: Any) -> list[float]:
    """Push towards 0, mostly."""
    right = 1.0 / (1.0 + np.exp(3.0 * observation[0]))
    return [1.0 - right, right]


def other(observation: Any) -> list[float]:
    return [0.5, 0.5]


def gaussian() -> revar.GaussianPolicy:
    return revar.GaussianPolicy(lambda observation: -0.5 * observation, 0.3)


def fuel(observation: Any, action: Any) -> float:
    return 0.5


def squares(observation: Any) -> Any:
    return [observation[0], observation[0] ** 2]


def evaluate(**options: Any) -> revar.EvaluationResult:
    settings: dict[str, Any] = {"episodes": 24, "seed": 3, "critics": ["linear"]}
    settings |= options
    if settings.get("method") == "mean":
        del settings["critics"]
    for unit in ("steps", "budget"):
        if unit in settings:
            del settings["episodes"]
    env, policy = settings.pop("env", BY_ID), settings.pop("policy", steer)
    return revar.evaluate(env, policy, **settings)

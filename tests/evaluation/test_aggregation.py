"""The diagnostic for lumped observations: silent where they are fine, loud where they are not."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import revar
from revar import Bins


class Drift(gymnasium.Env[Any, Any]):
    """Moves by a tenth each step from 0.05 to the end at 1; the reward is paid at the end."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 2.0, (1,))
        self.action_space = spaces.Discrete(2)
        self.place = 0.0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0.05
        return np.array([self.place], dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        self.place += 0.1 + 0.001 * float(action)
        ended = self.place > 1.0
        reward = float(0.1 * self.np_random.normal() + ended)
        return np.array([self.place], dtype=np.float32), reward, ended, False, {}


def check(bins: Bins) -> Any:
    def policy(observation: Any) -> Any:
        return [0.5, 0.5]

    result = revar.evaluate(Drift(), policy, episodes=1500, horizon=12, bins=bins, seed=0)
    return revar.check_aggregation(result, Drift(), policy, episodes=1500)


def test_fine_bins_pass_and_coarse_ones_do_not() -> None:
    """In one bin an episode could end at any step, or never: the end's reward is misjudged."""
    fine = check(Bins.uniform([0.0], [1.0], [10]))
    assert abs(fine.deviations) < 3
    assert "no sign of bias" in str(fine)
    coarse = check(Bins([[]]))
    assert abs(coarse.deviations) > 3
    assert "too coarse" in str(coarse)

"""A model played as a Gymnasium environment, or as one much like it where that is missing."""

from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.mdp import TabularMDP
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward

try:
    from gymnasium import Env
    from gymnasium.spaces import Discrete
except ImportError:
    from revar.environments.stand_ins import Discrete, Env  # type: ignore[assignment]


class ModelEnvironment(Env[np.int64, np.int64]):
    """See `to_gymnasium`. Draws as `simulate` does, from the environment's own stream."""

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, mdp: TabularMDP) -> None:
        self.horizon = mdp.horizon
        self.observation_space = Discrete(mdp.states)
        self.action_space = Discrete(mdp.actions)
        self._mdp = mdp
        self._world = World.of(mdp)
        self._state = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Draw the first state."""
        super().reset(seed=seed, options=options)
        self._steps = 0
        self._state = draw_first_state(self._world, self.np_random)
        return np.int64(self._state), {}

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Draw an outcome and its reward."""
        if not 0 <= int(action) < self._mdp.actions:
            raise InputError(f"action {action} does not exist; there are {self._mdp.actions}")
        pair = self._state * self._mdp.actions + int(action)
        slot = draw_outcome(self._world, pair, self.np_random)
        source = slot if self._world.by_outcome else pair
        reward = draw_reward(self._world, source, self.np_random)
        successor = int(self._world.successor[slot])
        terminated = successor == self._mdp.states
        if not terminated:
            self._state = successor
        self._steps += 1
        truncated = not terminated and self._steps >= self.horizon
        return np.int64(self._state), reward, terminated, truncated, {}

"""An environment of your own: a clinic that treats patients in rounds.

Anything with Gymnasium's reset and step will do. States are discovered as they appear; here they
are pairs (round, severity) that the environment never lists.
"""

import gymnasium
import numpy as np

import revar


class Clinic(gymnasium.Env):
    """Up to four rounds; a strong treatment (1) works better, and its cost varies a lot."""

    observation_space = gymnasium.spaces.MultiDiscrete([4, 3])
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.round, self.severity = 0, int(self.np_random.integers(3))
        return np.array([self.round, self.severity]), {}

    def step(self, action):
        cost = self.np_random.normal(3.0, 15.0) if action else self.np_random.normal(1.0, 0.2)
        cured = self.np_random.random() < (0.7 if action else 0.3) / (1 + self.severity)
        self.round += 1
        reward = 20.0 * cured - cost
        seen = np.array([min(self.round, 3), self.severity])
        return seen, float(reward), bool(cured), self.round == 4, {}


def careful(observation):
    """Mild treatments, and a strong one now and then, for severe cases more often."""
    return [0.8, 0.2] if observation[1] == 2 else [0.95, 0.05]


result = revar.evaluate(Clinic(), careful, episodes=20_000, horizon=4, half_width=0.5, seed=0)
print(result.table())

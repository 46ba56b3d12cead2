"""A budget in minutes, and limits on collection: a robot that may not bump into things.

The robot carries parcels. Hurrying (1) is quicker and its outcome varies a lot, so that it tells
most about the policy's value; it also bumps into things. Every step reports in `info` how many
minutes it took and whether the robot bumped. Collecting may take 120 hours, must earn at least
90% of what the policy earns, and may bump at most 0.3 times an episode.
"""

import gymnasium

import revar


class Robot(gymnasium.Env):
    """Three deliveries; a parcel pays by how well it arrives."""

    observation_space = gymnasium.spaces.Discrete(3)  # parcels delivered
    action_space = gymnasium.spaces.Discrete(2)  # take care, or hurry

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.delivered = 0
        return self.delivered, {}

    def step(self, action):
        draw = self.np_random
        reward = draw.normal(2.0, 6.0) if action else draw.normal(3.0, 0.5)
        minutes = draw.uniform(0.5, 1.0) if action else draw.uniform(1.0, 3.0)
        bumped = action == 1 and draw.random() < 0.2
        self.delivered += 1
        over = self.delivered == 3
        info = {"minutes": minutes, "bumps": int(bumped)}
        return min(self.delivered, 2), float(reward), over, False, info


def policy(delivered):
    """Hurry with the last parcel more than with the others."""
    return [0.7, 0.3] if delivered == 2 else [0.9, 0.1]


result = revar.evaluate(
    Robot(),
    policy,
    budget=120 * 60,
    cost="minutes",
    limits=revar.Limits(min_return="90%", max_sums=[("bumps", 0.3)]),
    horizon=3,
    seed=0,
)
print(result)
print()
print(result.table())
print()
for limit in result.kept:
    print(f"{limit.title}: {limit}")

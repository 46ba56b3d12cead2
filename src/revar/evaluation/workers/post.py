"""Post: a worker's own loop. It opens the environment and plays what it is ordered to."""

from typing import Any

import numpy as np

from revar.collection.batches import Batch, Order, SentPlan
from revar.collection.detachment import Detachment
from revar.environments.observations import observations_of
from revar.environments.opening import open_environment
from revar.errors import InputError
from revar.evaluation.interrupts import Interrupt
from revar.evaluation.opened import action_count, target_for
from revar.evaluation.players import Player
from revar.evaluation.workers.crew import Assignment

SEEDS = 2**31  # every environment takes seeds below


class Post:
    """One environment, and the plan sent last."""

    def __init__(self, assignment: Assignment, interrupt: Interrupt | None = None) -> None:
        self.env: Any = open_environment(assignment.env, assignment.env_options)
        self._seed = assignment.seed
        self._detachment = Detachment(
            assignment.strategy,
            horizon=assignment.horizon,
            actions=action_count(self.env),
            discount=assignment.discount,
            episodes=assignment.episodes,
            seed=assignment.seed,
            prior_episodes=assignment.prior_episodes,
        )
        self._player = Player(
            self.env,
            observations_of(self.env.observation_space, assignment.bins),
            target_for(self.env, assignment.policy, assignment.bins),
            assignment.seed,
            interrupt or Interrupt(),
        )

    @property
    def version(self) -> int:
        """Which plan it has; -1 for none."""
        return self._detachment.version

    def follow(self, plan: SentPlan) -> None:
        """The plan of orders to come."""
        self._detachment.follow(plan)

    def play(self, order: Order) -> Batch:
        """The episodes of an order; where something goes wrong, those before it."""
        self._detachment.begin(order)
        for number in range(order.first, order.first + order.count):
            self._player.seed(environment_seed(self._seed, number))
            try:
                self._player.play(self._detachment, number, 1)
            except InputError as error:
                return self._detachment.batch(str(error))
        return self._detachment.batch()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def environment_seed(seed: int, episode: int) -> int:
    """What the environment is seeded with for an episode; no two of a run have the same."""
    first = int(np.random.SeedSequence(seed).generate_state(1)[0])
    return (first + episode) % SEEDS

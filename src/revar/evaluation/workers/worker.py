"""A worker: opens the environment and plays the batches that it is asked for."""

from dataclasses import dataclass
from typing import Any

from revar.collection import Collection
from revar.collection.batches import Batch, BatchRequest, SharedPlan, pack, prepare
from revar.environments.observations import Bins, encoding_of
from revar.environments.opening import action_count, environment_seed, open_environment
from revar.errors import InputError
from revar.evaluation.amounts import StepAmounts
from revar.evaluation.players import Player
from revar.evaluation.target_policies import target_policy_of
from revar.interrupts import Interrupt
from revar.model.budget import Budget
from revar.model.limits import Limits
from revar.model.question import Combinations
from revar.strategies.strategy import Strategy


@dataclass(frozen=True)
class WorkerSetup:
    """All that a worker needs to open its environment and to play."""

    env: Any  # anything that `open_environment` opens
    env_options: dict[str, Any] | None
    policies: dict[str, Any]  # by name; a single one needs none
    combinations: Combinations
    bins: Bins | None
    strategy: Strategy
    horizon: int
    discount: float
    budget: Budget
    seed: int
    prior_episodes: int
    cost: Any = None  # of steps, where the budget is of cost
    limits: Limits = Limits()  # noqa: RUF009 - it is frozen; what is forbidden is named by state

    def start(self, interrupt: Interrupt | None = None) -> "Worker":
        """A worker with an environment of its own."""
        return Worker(self, interrupt)

    def parts(self) -> dict[str, Any]:
        """What is sent, by the names under which users gave it."""
        return {
            "env": self.env,
            "env_options": self.env_options,
            **{f"policy {name!r}" if name else "policy": p for name, p in self.policies.items()},
            "strategy": self.strategy,
            "cost": self.cost,
            **{f"amounts of {limit.name}": limit.amounts for limit in self.limits.sums},
        }


class Worker:
    """One environment, and the plan sent last.

    What an episode does follows from its request and the plan alone, never from batches played
    before: every worker plays the same batch in the same way.
    """

    def __init__(self, setup: WorkerSetup, interrupt: Interrupt | None = None) -> None:
        self.env: Any = open_environment(setup.env, setup.env_options)
        self.plan: SharedPlan | None = None
        self._seed = setup.seed
        encoding = encoding_of(self.env, setup.bins)
        actions = action_count(self.env)
        self._collection = Collection(
            setup.strategy,
            horizon=setup.horizon,
            actions=actions,
            discount=setup.discount,
            budget=setup.budget,
            limits=setup.limits,
            seed=setup.seed,
            names=tuple(setup.policies),
            combinations=setup.combinations,
        )
        self._collection.prior_episodes = setup.prior_episodes
        self._player = Player(
            self.env,
            encoding,
            target_policy_of(self.env, setup.policies, setup.bins),
            StepAmounts(setup.budget, setup.cost, setup.limits, encoding, actions),
            setup.seed,
            interrupt or Interrupt(),
        )

    @property
    def plan_version(self) -> int:
        """Which plan it has; -1 for none."""
        return -1 if self.plan is None else self.plan.version

    def play(self, request: BatchRequest) -> Batch:
        """The episodes asked for; where something goes wrong, those before it."""
        assert self.plan is not None
        prepare(self._collection, self.plan, request)
        known = len(self._collection.states)
        fault = ""
        try:
            for number in range(request.first, request.first + request.count):
                self._player.seed(environment_seed(self._seed, number))
                self._player.play(self._collection, number, 1)
        except InputError as error:
            fault = str(error)
        return pack(request, self._collection.dataset, known, fault)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

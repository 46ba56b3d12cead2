"""What a crew of workers is, whichever engine runs it, and what its workers are told once."""

from dataclasses import dataclass
from typing import Any, Protocol

from revar.collection.batches import Batch, Order, SentPlan
from revar.environments.bins import Bins
from revar.strategies.strategy import Strategy


@dataclass(frozen=True)
class Assignment:
    """All that a worker needs to open its environment and to play."""

    env: Any  # anything that `open_environment` opens
    env_options: dict[str, Any] | None
    policy: Any
    bins: Bins | None
    strategy: Strategy
    horizon: int
    discount: float
    episodes: int  # the budget
    seed: int
    prior_episodes: int


@dataclass(frozen=True)
class Died:
    """A worker ended with an order in hand; another one has taken its place."""

    order: Order
    how: str


class Crew(Protocol):
    """Workers, each with one order in hand at most."""

    @property
    def idle(self) -> int:
        """How many orders it can take now."""

    def give(self, order: Order, plan: SentPlan) -> None:
        """Let an idle worker play; it is sent the plan unless it has it."""

    def wait(self, seconds: float) -> list[Batch | Died]:
        """What has been played meanwhile; after so many seconds also nothing."""

    def close(self) -> None:
        """End all workers, also those at work."""

"""What a strategy is: frozen parameters, and a plan made from the statistics so far."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.registry import Registry
from revar.strategies.rule import CompiledRule
from revar.strategies.selection import Selection


@dataclass(frozen=True, eq=False)
class Plan:
    """Which action to take in each state until the plan is made anew.

    `lasts` is the number of episodes the plan holds for: None for good, 0 for a single step.
    """

    scores: FloatArray  # [1 or L, S, A] not negative; probabilities where they are sampled
    selection: Selection
    lasts: int | None = None
    visits_first: int = 1  # tracked actions with fewer visits than this go first

    def __post_init__(self) -> None:
        if self.scores.ndim != 3:
            raise InputError(
                f"the scores of a plan have shape {self.scores.shape}; they must be "
                f"[1 or horizon, states, actions]"
            )


class Strategy(ABC):
    """Decides how to collect. Subclasses are frozen dataclasses of their parameters."""

    id: ClassVar[str]

    @property
    def needs_model(self) -> bool:
        """Whether the true model must be handed over: oracles only."""
        return False

    @abstractmethod
    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The plan that follows from what has been seen."""

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule | None:
        """The same rule for the compiled engine; None leaves it to the plain one.

        `tree` tells that every state has one way in, which may save work but changes no plan. A
        strategy whose plan lasts for good needs no rule: the engine follows the plan itself.
        """
        del task, tree
        return None


strategies: Registry[type[Strategy]] = Registry("strategy", "revar.strategies")


def find_strategy(strategy: str | Strategy) -> Strategy:
    """The strategy itself, or the one of that id with its defaults."""
    if isinstance(strategy, str):
        return strategies.find(strategy)()
    if not isinstance(strategy, Strategy):
        raise InputError(
            f"strategy is {strategy!r}; it must be an id (one of {', '.join(strategies.ids())}) "
            f"or a Strategy"
        )
    return strategy


def shown_to(strategy: Strategy, task: Task) -> Task:
    """The task as the strategy may see it: with the model only if it says that it needs it."""
    return task if strategy.needs_model else task.without_model()

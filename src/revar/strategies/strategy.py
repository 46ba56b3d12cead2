"""What a strategy is: frozen parameters, and a plan made from the statistics so far."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.limits import Limits
from revar.model.mdp import TabularMDP
from revar.model.records import in_a_line
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task, check_behavior
from revar.model.validation import SUM_TOLERANCE, as_floats
from revar.registry import Registry
from revar.strategies.compiled_rule import CompiledRule
from revar.strategies.selection import DRAWN, Selection

# The estimators that take data of any sampled behavior, by id.
FOR_SAMPLED = (
    "certainty-equivalence",
    "doubly-robust",
    "per-decision-importance-sampling",
    "weighted-importance-sampling",
    "importance-sampling",
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Which action to take in each state until the plan is made anew.

    `lasts` is the number of episodes the plan holds for: None for good, 0 for a single step. A plan
    that `alternates` has a table of scores for each kind of episode, taken in turn; any other has
    one table, or one for each step.
    """

    scores: FloatArray  # [table, S, A] not negative; probabilities where they are sampled
    selection: Selection
    lasts: int | None = None
    visits_first: int = 1  # tracked actions with fewer visits than this go first
    alternates: bool = False  # scores are [kind of episode, S, A]

    __repr__ = in_a_line

    def __post_init__(self) -> None:
        scores = np.ascontiguousarray(as_floats(self.scores, "scores of a plan"))
        object.__setattr__(self, "scores", scores)
        if scores.ndim != 3:
            raise InputError(
                f"scores of a plan have shape {scores.shape}; they must be "
                f"[1 or horizon, states, actions]"
            )
        bad = ~np.isfinite(scores) | (scores < 0)
        if bad.any():
            step, state, action = (int(i) for i in np.argwhere(bad)[0])
            raise InputError(
                f"the score of state {state}, action {action} at step {step} of a plan is "
                f"{scores[step, state, action]:g}; scores must be finite and not negative"
            )
        if not isinstance(self.selection, Selection):
            raise InputError(f"selection of a plan is {self.selection!r}; it must be a Selection")
        least = 0 if self.selection in (Selection.FOLLOW, Selection.SAMPLE) else 1
        if not isinstance(self.visits_first, int) or self.visits_first < least:
            raise InputError(f"visits_first of a plan is {self.visits_first!r}; at least {least}")
        if self.lasts is not None and (not isinstance(self.lasts, int) or self.lasts < 0):
            raise InputError(
                f"a plan lasts {self.lasts!r} episodes; it must be a whole number, or None for good"
            )

    @property
    def by_step(self) -> bool:
        """Whether step t reads table t; otherwise episode k reads table k mod tables."""
        return len(self.scores) > 1 and not self.alternates


class Strategy(ABC):
    """Decides how to collect. Subclasses are frozen dataclasses of their parameters."""

    id: ClassVar[str]
    # Estimators that are valid for data of this strategy, by id, the best one first. Certainty
    # equivalence takes any data; all others need actions that were sampled.
    estimators: ClassVar[tuple[str, ...]] = ("certainty-equivalence",)
    # Whether its plans keep the limits of the task.
    keeps_limits: ClassVar[bool] = False

    @property
    def needs_model(self) -> bool:
        """Whether the true model must be handed over: oracles only."""
        return False

    @abstractmethod
    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The plan that follows from what has been seen."""

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule | None:
        """The same rule for the compiled loop, which saves it from asking for every plan.

        `tree` tells that every state has one way in, which may save work but changes no plan. A
        strategy whose plans last needs no rule: the loop follows each of them, and asks for the
        next, in several threads if there are several runs. One that plans before every step is left
        to plain Python without a rule.
        """
        del task, tree
        return None


def next_plan_after(episode: int, first: int, growth: float) -> int:
    """The episodes after which the next plan is due: `first`, and then `growth` times as many."""
    due = first
    while due <= episode:
        due = max(due + 1, int(growth * due))
    return due


StrategyLike: TypeAlias = str | Strategy
"""What users may give as a strategy: its id, or itself."""

strategies: Registry[type[Strategy]] = Registry("strategy", "revar.strategies")


def find_strategy(strategy: StrategyLike) -> Strategy:
    """The strategy itself, or the one of that id with its defaults."""
    if isinstance(strategy, str):
        return strategies.find(strategy)()
    if not isinstance(strategy, Strategy):
        raise InputError(
            f"strategy is {strategy!r}; it must be an id (one of {', '.join(strategies.ids())}) "
            f"or a Strategy"
        )
    if not isinstance(getattr(strategy, "id", None), str):
        raise InputError(f"strategy {type(strategy).__name__} has no id")
    return strategy


def check_limits_known(strategy: Strategy, limits: Limits) -> None:
    """Refuse a strategy whose plans would not keep the limits."""
    if not (limits.none or strategy.keeps_limits):
        able = [name for name in strategies.ids() if strategies.find(name).keeps_limits]
        raise InputError(
            f"strategy {strategy.id!r} knows no limits; those that do are {', '.join(able)}"
        )


def make_plan(strategy: Strategy, task: Task, statistics: VisitStatistics) -> Plan:
    """The strategy's plan, or an error where its scores do not fit the task."""
    plan = strategy.plan(task, statistics)
    if not isinstance(plan, Plan):
        raise InputError(f"strategy {strategy.id!r} plans {type(plan).__name__}, not a Plan")
    tables, *table = plan.scores.shape
    fits = tables in (1, task.horizon) or (plan.alternates and tables > 0)
    if not fits or table != [task.states, task.actions]:
        raise InputError(
            f"strategy {strategy.id!r} plans scores of shape {plan.scores.shape}; they must be "
            f"[1 or horizon, states, actions] = "
            f"[1 or {task.horizon}, {task.states}, {task.actions}]"
        )
    return plan


def visible_task(strategy: Strategy, task: Task) -> Task:
    """The task as the strategy may see it: with the model only if it says that it needs it."""
    return task if strategy.needs_model else task.without_model()


def check_shares(mdp: TabularMDP, policy: FloatArray, plan: Plan) -> None:
    """Scores that an action may be drawn from sum to 1 in every state that can be entered."""
    if plan.selection is Selection.SAMPLE and not _sum_to_one(plan.scores):
        for behavior in [plan.scores] if plan.by_step else plan.scores:
            check_behavior(mdp, behavior)
    elif plan.selection in DRAWN and not _sum_to_one(plan.scores):
        # The target policy's actions may be taken whatever their shares.
        allowed = np.any(plan.scores > 0, axis=0) | (policy > 0)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, allowed, mdp.horizon)
        for t in range(mdp.horizon):
            entered = layers.states[layers.start[t] : layers.start[t + 1]]
            tables = range(len(plan.scores)) if plan.alternates else [min(t, len(plan.scores) - 1)]
            for table in tables:
                sums = plan.scores[table, entered].sum(axis=1)
                wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
                if wrong.any():
                    i = int(np.argmax(wrong))
                    raise InputError(
                        f"shares of state {entered[i]} at step {t} sum to {sums[i]:.12g}; where "
                        f"they are followed or matched they must sum to 1"
                    )


def _sum_to_one(scores: FloatArray) -> bool:
    return bool(np.all(np.abs(scores.sum(axis=2) - 1.0) <= SUM_TOLERANCE))

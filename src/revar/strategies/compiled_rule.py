"""How a strategy's rule enters the compiled loop.

The loop calls `on_step` after every step and `on_episode` after episodes. Both read the run's
statistics and rewrite the scores of the plan in force. All rules have one signature, so that one
compiled loop serves every strategy and stays cached on disk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from revar.compilation import compiled_in_place
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, RunStatistics
from revar.model.limits import Limits
from revar.model.task import Task

ENDLESS = 2**40  # episodes; no run has as many


class LimitArrays(NamedTuple):
    """What collection may not do, for compiled code."""

    caps: FloatArray  # [S, A] the largest shares that actions may have
    amounts: FloatArray  # [M, S, A] of limited sums
    variances: FloatArray  # [M, S, A] of these amounts in one visit
    most: FloatArray  # [M]
    floor: float  # on the return; NaN where there is none
    share: float  # the floor is this share of the target policy's value; NaN where it is not
    has_floor: bool
    quantile: float  # sums are kept by so many standard errors

    @property
    def has_sums(self) -> bool:
        """Whether a sum is limited, or the return has a floor."""
        return self.has_floor or self.most.size > 0

    @classmethod
    def of(cls, limits: Limits, policy: FloatArray) -> "LimitArrays":
        """The limits on collection for the target policy [S, A], which takes its own actions."""
        shape = policy.shape
        sums = limits.sums
        nothing = np.zeros(shape)
        floor = limits.min_return
        return cls(
            np.where(policy > 0, limits.caps(policy), 0.0),
            np.array([limit.table(*shape) for limit in sums]).reshape(-1, *shape),
            np.array(
                [nothing if limit.variance is None else limit.variance for limit in sums]
            ).reshape(-1, *shape),
            np.array([limit.most for limit in sums]),
            floor if isinstance(floor, float) else nan,
            limits.share_of_value if isinstance(floor, str) else nan,
            floor is not None,
            NormalDist().inv_cdf(limits.confidence),
        )


class TaskArrays(NamedTuple):
    """The task for compiled code: what every strategy knows."""

    policy: FloatArray  # [S, A]; of several policies, the mean
    initial: FloatArray  # [S]
    horizon: int
    discount: float
    budget: float  # in all; what an episode takes from it is the sum of the two below
    episode_cost: float
    visit_cost: FloatArray  # [S, A]
    policies: FloatArray  # [J, S, A]
    coefficients: FloatArray  # [Q, J]
    weights: FloatArray  # [Q]
    best: bool
    limited: bool  # whether there are limits
    limits: LimitArrays

    @classmethod
    def of(cls, task: Task, initial: FloatArray) -> "TaskArrays":
        """The task, with that distribution of first states; without a budget there is no end."""
        combinations = task.question.combinations
        return cls(
            task.policy,
            initial,
            task.horizon,
            task.discount,
            inf if task.budget is None else float(task.budget.amount),
            1.0 if task.budget is None else task.budget.episode_cost,
            task.visit_cost,
            task.policies,
            combinations.coefficients,
            combinations.weights,
            combinations.best,
            not task.limits.none,
            LimitArrays.of(task.limits, task.policy),
        )

    @classmethod
    def observed(cls, task: Task, statistics: RunStatistics) -> "TaskArrays":
        """The task; without a known distribution, the frequencies of first states so far."""
        initial = task.initial
        if initial is None:
            initial = statistics.initial_count / statistics.initial_count.sum()
        return cls.of(task, initial)


class CompiledPlan(NamedTuple):
    """The plan in force, and the arrays that its rule keeps from one revision to the next."""

    scores: FloatArray  # [1 or L, S, A]
    normalizers: FloatArray  # [S + 1]
    deviation: FloatArray  # [S, A]
    scratch: FloatArray  # [S + 1]
    taken: IntArray  # [1 or L, S, A] actions taken under the plan, where shares are followed
    selection: IntArray  # [1] how scores are read; at first, as the plan before any data says

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        *,
        follows: bool = False,
        normalizers: FloatArray | None = None,
        deviation: FloatArray | None = None,
    ) -> "CompiledPlan":
        """The plan's scores, with room only for what the rule uses."""
        nothing = np.zeros(0)
        return cls(
            scores,
            nothing if normalizers is None else normalizers,
            np.zeros((0, 0)) if deviation is None else deviation,
            nothing if normalizers is None else np.zeros(normalizers.size),
            np.zeros(scores.shape if follows else (0, 0, 0), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )

    def copy(self) -> "CompiledPlan":
        """Arrays that a run may write to."""
        copies: Any = (array.copy() for array in self)
        return CompiledPlan(*copies)


class RuleParameters(NamedTuple):
    """What a rule is told beside the data: one type for all strategies."""

    constants: FloatArray  # [any] the strategy's own numbers, which its rule unpacks by name
    plan_times: IntArray  # [any] finished episodes at which `on_episode` is due; empty: at all
    known_transitions: bool  # `statistics.outcomes` holds the true probabilities

    @classmethod
    def of(
        cls,
        constants: Sequence[float] = (),
        *,
        plan_times: Sequence[int] | IntArray = (),
        known_transitions: bool = False,
    ) -> "RuleParameters":
        """Arrays of the types that the compiled loop takes."""
        return cls(
            np.array(constants, dtype=np.float64),
            np.array(plan_times, dtype=np.int64),
            known_transitions,
        )


class EpisodePath(NamedTuple):
    """The episode so far."""

    states: IntArray  # [L]
    actions: IntArray  # [L]


# (task, statistics, plan, parameters, path, steps taken, episodes finished)
Revise = Callable[
    [TaskArrays, RunStatistics, CompiledPlan, RuleParameters, EpisodePath, int, int], None
]


@compiled_in_place
def keep_plan(
    task: TaskArrays,
    statistics: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    path: EpisodePath,
    steps: int,
    episode: int,
) -> None:
    """Change nothing."""


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """A strategy's rule for the compiled loop, and its plan before the first episode.

    With `in_loop` the loop is compiled anew around `on_episode`, instead of calling it by a
    pointer. That takes seconds, once, and pays where the rule does less than such a call costs.
    """

    plan: CompiledPlan
    parameters: RuleParameters = field(default_factory=RuleParameters.of)
    on_step: Revise = keep_plan
    on_episode: Revise = keep_plan
    in_loop: bool = False


def sample_budget(task: Task, asker: str) -> int:
    """n, the most steps that the budget allows: of K episodes, K L."""
    if task.budget is None or task.budget.unit == "cost":
        raise InputError(f"{asker} needs to know the number of episodes, or of steps, in advance")
    return int(task.budget.amount) * (task.horizon if task.budget.by_episode else 1)


def most_episodes(task: Task) -> int:
    """No run has more episodes than so many, as far as the budget tells."""
    if task.budget is None or task.budget.unit == "cost":
        return ENDLESS
    return int(task.budget.amount)


@compiled_in_place
def refresh_frequencies(statistics: RunStatistics) -> None:
    """Bring `statistics.outcomes` up to date: P-hat of every pair that has been visited."""
    row_start, _, probability = statistics.outcomes
    visits, outcome_count = statistics.visits, statistics.outcome_count
    actions = visits.shape[1]
    for s in range(visits.shape[0]):
        for a in range(actions):
            if visits[s, a] > 0:
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    probability[o] = outcome_count[o] / visits[s, a]

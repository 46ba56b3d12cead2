"""CB-Var: the paper's bandit baseline, an empirical Bernstein index without look-ahead."""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np

from revar.compilation import compiled_in_place, inlined
from revar.errors import InputError
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.rule import CompiledRule, Memory, Path, Question, sample_budget
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies


@strategies.register("cb-var")
@dataclass(frozen=True)
class ConfidenceBoundVariance(Strategy):
    """argmax (2 eta + 4 eta^2) sqrt(2 pi sigma^2 log(SAn(n+1)) / T) + 7 log(SAn(n+1)) / (3 T).

    `reward_bound` is eta; the paper does not give its value, 1 is assumed.
    """

    id: ClassVar[str] = "cb-var"
    reward_bound: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.reward_bound < float("inf"):
            raise InputError(f"reward_bound is {self.reward_bound}; it must be positive, finite")

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The index of every pair, for one step: it moves with every visit."""
        observed = statistics.observed(task.states)
        parameters = self._parameters(task)
        scores = np.zeros((1, task.states, task.actions))
        for s, a in np.argwhere(observed.visits > 0):
            scores[0, s, a] = _index(
                task.policy[s, a], observed.visits[s, a], observed.reward_squares[s, a], parameters
            )
        return Plan(scores, Selection.LARGEST, lasts=0)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:  # noqa: ARG002
        """Only the pair just visited has a new index."""
        memory = Memory.of(np.zeros((1, task.states, task.actions)))
        return CompiledRule(memory, self._parameters(task), on_step=_refresh_last)

    def _parameters(self, task: Task) -> FloatArray:
        samples = sample_budget(task, "cb-var")
        logarithm = log(task.states * task.actions * samples * (samples + 1))
        return np.array([2 * self.reward_bound + 4 * self.reward_bound**2, logarithm])


@inlined
def _index(probability: float, visits: int, squares: float, parameters: FloatArray) -> float:
    constant, logarithm = parameters
    variance = squares / (visits - 1) if visits > 1 else 0.0
    spread = constant * sqrt(2.0 * probability * variance * logarithm / visits)
    return float(spread + 7.0 * logarithm / (3.0 * visits))


@compiled_in_place
def _refresh_last(
    question: Question,
    statistics: RunStatistics,
    memory: Memory,
    parameters: FloatArray,
    path: Path,
    steps: int,
    episode: int,  # noqa: ARG001
) -> None:
    s, a = path.states[steps - 1], path.actions[steps - 1]
    memory.scores[0, s, a] = _index(
        question.policy[s, a], statistics.visits[s, a], statistics.reward_squares[s, a], parameters
    )

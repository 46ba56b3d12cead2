"""How a strategy's rule enters the compiled engine: two functions and their parameters.

The engine calls `on_step` after every step and `on_episode` after every episode; both see what a
strategy may see and rewrite the plan's scores in `Memory`. They are passed as pointers, so that
one compiled loop serves every strategy and stays cached on disk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled_in_place
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, RunStatistics
from revar.model.task import Task


class Question(NamedTuple):
    """What is asked, and known to every strategy."""

    policy: FloatArray  # [S, A]
    initial: FloatArray  # [S]
    horizon: int
    discount: float
    episodes: int

    @classmethod
    def of(cls, task: Task, observed: RunStatistics, episodes: int) -> "Question":
        """The task's question; an unknown first state is taken to be as it was so far."""
        initial = task.initial
        if initial is None:
            initial = observed.initial_count / observed.initial_count.sum()
        return cls(task.policy, initial, task.horizon, task.discount, episodes)


class Memory(NamedTuple):
    """The plan in force, and what the rule keeps from one revision to the next."""

    scores: FloatArray  # [1 or L, S, A]
    normalizers: FloatArray  # [S + 1]
    deviation: FloatArray  # [S, A]
    spare: FloatArray  # [S + 1] scratch
    taken: IntArray  # [1 or L, S, A] actions taken under the plan, where shares are followed

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        *,
        follows: bool = False,
        normalizers: FloatArray | None = None,
        deviation: FloatArray | None = None,
    ) -> "Memory":
        """The plan's scores, with room only for what the rule uses."""
        nothing = np.zeros(0)
        return cls(
            scores,
            nothing if normalizers is None else normalizers,
            np.zeros((0, 0)) if deviation is None else deviation,
            nothing if normalizers is None else np.zeros(normalizers.size),
            np.zeros(scores.shape if follows else (0, 0, 0), dtype=np.int64),
        )


class Path(NamedTuple):
    """The episode so far."""

    states: IntArray  # [L]
    actions: IntArray  # [L]


# (question, statistics, memory, parameters, path, steps taken, episodes finished)
Revise = Callable[[Question, RunStatistics, Memory, FloatArray, Path, int, int], None]


@compiled_in_place
def leave(
    question: Question,
    statistics: RunStatistics,
    memory: Memory,
    parameters: FloatArray,
    path: Path,
    steps: int,
    episode: int,
) -> None:
    """Change nothing."""


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """A strategy's rule for the compiled engine, and its memory before the first episode."""

    memory: Memory
    parameters: FloatArray  # [any]
    on_step: Revise = leave
    on_episode: Revise = leave
    known_transitions: bool = False


def sample_budget(task: Task, asker: str) -> int:
    """n = K L, the most steps that the budget allows."""
    if task.episodes is None:
        raise InputError(f"{asker} needs to know the number of episodes in advance")
    return task.episodes * task.horizon


@compiled_in_place
def refresh_frequencies(statistics: RunStatistics) -> None:
    """P-hat of every pair that has been visited."""
    row_start, _, probability = statistics.outcomes
    visits, outcome_count = statistics.visits, statistics.outcome_count
    actions = visits.shape[1]
    for s in range(visits.shape[0]):
        for a in range(actions):
            if visits[s, a] > 0:
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    probability[o] = outcome_count[o] / visits[s, a]

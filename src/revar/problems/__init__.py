"""Problems: a model and what is asked of it, found by id; the built-in ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.question import Difference, Question
from revar.model.records import in_a_line
from revar.registry import Registry


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """The environment, and the policy whose value is wanted, or its difference to another's."""

    name: str
    mdp: TabularMDP
    policy: FloatArray  # [S, A]
    # For problems on a square grid, state by state in rows: each action's step down and right.
    moves: tuple[tuple[int, int], ...] = ()
    against: FloatArray | None = None  # [S, A] if the difference to this policy is wanted

    __repr__ = in_a_line

    @property
    def question(self) -> Question:
        """What is asked: one number."""
        if self.against is None:
            return Question.of_value(self.policy)
        return Difference(self.policy, self.against)


problems: Registry[Callable[..., Problem]] = Registry("problem", "revar.problems")


def find_problem(problem_id: str, **options: Any) -> Problem:
    """The problem of that id, built with these options.

    Parameters
    ----------
    problem_id
        One of those that `revar list problems` shows.
    **options
        Parameters of the problem, by name.
    """
    problem: Problem = problems.build(problem_id, options)
    return problem

"""Problems: a model and a target policy each, found by id; the built-in ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.registry import Registry


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be evaluated: the environment and the policy whose value is wanted."""

    name: str
    mdp: TabularMDP
    policy: FloatArray  # [S, A]
    # For problems on a square grid, state by state in rows: each action's step down and right.
    moves: tuple[tuple[int, int], ...] = ()


problems: Registry[Callable[..., Problem]] = Registry("problem", "revar.problems")


def find_problem(problem_id: str, **options: Any) -> Problem:
    """The problem of that id, built with these options."""
    problem: Problem = problems.build(problem_id, options)
    return problem

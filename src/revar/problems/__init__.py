"""Built-in problems: a model and a target policy each, found by id."""

from revar.problems.problem import Problem, problems

__all__ = ["Problem", "problems"]

"""Built-in problems: a model and a target policy each, found by id."""

from revar.problems.problem import Problem, find_problem, problems

__all__ = ["Problem", "find_problem", "problems"]

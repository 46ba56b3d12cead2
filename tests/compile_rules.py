"""Compile what most tests use before they start: their processes find it on disk.

Two processes would otherwise compile the same functions at the same time.

python -m tests.compile_rules flow     plans of "flow": half of the work
python -m tests.compile_rules others   other strategies, estimators, solvers
"""

import sys
from typing import Any

from revar import (
    Limits,
    doubly_robust_variance,
    find_problem,
    importance_sampling_variance,
    optimal_flow,
    per_decision_variance,
    return_variance,
    simulate,
)
from revar.estimators import estimators
from revar.strategies import strategies

GRID = find_problem("gridworld")


def play(strategy: str, **options: Any) -> None:
    """Play a few episodes compiled, and in plain Python, which calls what makes plans by itself."""
    if "steps" not in options:
        options["episodes"] = 3
    for compiled in (None, False):
        simulate(GRID.mdp, GRID.policy, strategy, runs=1, compiled=compiled, **options)


def compile_flow() -> None:
    """Plans with nothing in their way, for a budget of steps, and within limits."""
    play("flow")
    play("flow", steps=30)
    play("flow", limits=Limits(max_ratio=2.0, min_return="90%"))


def compile_others() -> None:
    """Everything else that several files of tests use."""
    for name in strategies.ids():
        if name != "flow":
            play(name)
    for name in estimators.ids():
        play("on-policy", estimator=name)
    limits = Limits(max_ratio=2.0, min_return="90%")
    play("flow-oracle", limits=limits)
    optimal_flow(GRID.mdp, GRID.policy, cost="steps", limits=limits)
    return_variance(GRID.mdp, GRID.policy)
    for variance in (doubly_robust_variance, importance_sampling_variance, per_decision_variance):
        variance(GRID.mdp, GRID.policy, GRID.policy)


if __name__ == "__main__":
    {"flow": compile_flow, "others": compile_others}[sys.argv[1]]()

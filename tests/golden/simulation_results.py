"""Seeded simulations whose results are kept in simulation_results_1.json.

They change only if draws are made in another order, or a rule changes; where that is meant,
`python -m tests.golden.simulation_results` writes the file anew.
"""

import json
from pathlib import Path
from typing import Any

from revar import simulate
from revar.problems import problems
from revar.strategies import ReducedVariance, Strategy
from revar.testing.problems import crossroads

FILE = Path(__file__).parent / "simulation_results_1.json"

PROBLEMS = {
    "tree": problems.find("tree")(3),
    "gridworld": problems.find("gridworld")(3),
    "crossroads": crossroads(),
}
STRATEGIES: dict[str, str | Strategy] = {
    "on-policy": "on-policy",
    "uniform": "uniform",
    "cb-var": "cb-var",
    "oracle": "oracle",
    "revar": "revar",
    "revar planning seldom": ReducedVariance(confidence_scale=0.1, replan_every=5),
    "revar without bounds": ReducedVariance(confidence_scale=0.0, known_transitions=True),
}
CASES = {
    f"{strategy} on {problem}": (strategy, problem)
    for problem in PROBLEMS
    for strategy in STRATEGIES
}


def simulated(case: str) -> dict[str, Any]:
    """The numbers that are kept of one simulation."""
    strategy, name = CASES[case]
    problem = PROBLEMS[name]
    result = simulate(
        problem.mdp,
        problem.policy,
        STRATEGIES[strategy],
        episodes=60,
        runs=2,
        seed=2022,
        checkpoints=[5, 60],
    )
    return {
        "estimates": result.estimates.tolist(),
        "standard_errors": result.standard_errors.tolist(),
        "unvisited_probability": result.unvisited_probability.tolist(),
        "visits": result.visits.tolist(),
    }


if __name__ == "__main__":
    lines = [f"{json.dumps(case)}: {json.dumps(simulated(case))}" for case in CASES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

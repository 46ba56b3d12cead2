"""What collecting with "flow" gains over playing the policy itself: the table of README.

`python -m benchmarks.gains` measures it and writes it into README.md. Some minutes on one core.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

import revar
from revar.problems import Problem
from revar.reports.metrics import Measurement
from revar.simulation.result import SimulationResult

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- python -m benchmarks.gains: begin -->\n", "<!-- end -->\n"
EPISODES, RUNS = 1000, 400
PROBLEMS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "the paper's tree": ("tree", {}),
    "the paper's gridworld": ("gridworld", {}),
    "difference of two policies on it": ("gridworld", {"against": 0.35}),
    "RiverSwim": ("riverswim", {}),
    "FrozenLake, ε = 0.5": ("frozenlake", {"epsilon": 0.5}),
    "rare failure, n = 4": ("rare-failure", {}),
}


def play(
    problem: Problem, strategy: str, episodes: int | None = None, steps: int | None = None
) -> SimulationResult:
    """Collect within a budget, many times over."""
    return revar.simulate(
        problem.mdp,
        problem.question,
        strategy,
        episodes=episodes,
        steps=steps,
        runs=RUNS,
        checkpoints=[budget for budget in (episodes, steps) if budget is not None],
    )


def ratio(of: SimulationResult, to: SimulationResult) -> Measurement:
    """How many times the error of `to` that of the other is, with its standard error."""
    times = float(of.mse[-1] / to.mse[-1])
    spread = np.array([each.mse_standard_error[-1] / each.mse[-1] for each in (of, to)])
    return Measurement(times, times * float(np.sqrt((spread**2).sum())))


def row(label: str, problem: Problem) -> str:
    """A line of the table."""
    on_policy, flow = (play(problem, way, episodes=EPISODES) for way in ("on-policy", "flow"))
    per_episode = ratio(on_policy, flow)
    steps = round(float(on_policy.steps.mean()))
    per_step = ratio(*(play(problem, way, steps=steps) for way in ("on-policy", "flow")))
    holds = flow.coverage()[-1]
    return f"| {label} | {per_episode} | {per_step} | {holds:.0%} |"


def main() -> None:
    """Measure, and write the table."""
    lines = [
        "| what is asked for | gain per episode | gain per step | 95% interval holds |",
        "|---|---:|---:|---:|",
    ]
    for label, (name, options) in PROBLEMS.items():
        lines.append(row(label, revar.find_problem(name, **options)))
        print(lines[-1], flush=True)
    page = README.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END, 1)[1]
    table = "\n".join(lines)
    README.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What limits and costs do to the best error: the figure of docs/costs_and_limits.md.

`python -m benchmarks.cost_figure` writes docs/results/costs-trade-offs.png. Everything is exact:
the optimal flows of known models, certified to TOLERANCE.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

import revar
from benchmarks.budget_problems import costly_river, frozen_lake, gridworld, most_earned
from revar.charts.chart import BLUE, GREEN, VERMILION, Chart, Line, Panel, Style
from revar.charts.static import save_picture
from revar.model.arrays import FloatArray
from revar.theory.flow import OptimalFlow

FIGURE = Path(__file__).parents[1] / "docs" / "results" / "costs-trade-offs"
TOLERANCE = 1e-3
RATIOS = (1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
POINTS = 20  # on the curves over floors and lengths
FLOORS = (0.5, 2.0)  # as shares of the value
NEARLY_ALL = 0.97  # of what can be earned
ROOM = 1.15  # times the shortest possible episodes


@dataclass(frozen=True, eq=False)
class Problem:
    """A model with its target policy, and how its lines look."""

    name: str
    mdp: revar.TabularMDP
    policy: FloatArray
    style: Style

    def optimum(self, limits: revar.Limits | None = None, cost: str | None = None) -> OptimalFlow:
        """The best collection."""
        mdp, policy = self.mdp, self.policy
        return revar.optimal_flow(mdp, policy, tolerance=TOLERANCE, limits=limits, cost=cost)

    def most(self, amounts: FloatArray, discount: float) -> float:
        """What an episode sums to at most."""
        earned = most_earned(self.mdp, amounts, discount).max(axis=1)
        return float(np.asarray(self.mdp.initial) @ earned)

    def steps(self, behavior: FloatArray) -> float:
        """Of an episode."""
        return float(revar.occupancy(self.mdp, behavior).sum())

    def line(self, x: Iterable[float], y: Iterable[float], label: str = "") -> Line:
        """A line in this problem's style."""
        return Line(label, np.array(list(x)), np.array(list(y)), self.style)


def main() -> None:
    """Draw it."""
    console = Console()
    problems = [
        Problem("gridworld", *gridworld(), Style(BLUE, "solid", "o")),
        Problem("FrozenLake", *frozen_lake(0.2)(), Style(VERMILION, "dash", "s")),
        Problem("costly RiverSwim", *costly_river(), Style(GREEN, "dashdot", "^")),
    ]
    with console.status("optimal flows"):
        panels = (
            Panel(
                "A floor: nearly free up to the policy's value",
                tuple(over_floors(each) for each in problems),
                "least return, as a share of the policy's value",
                "limit / limit without the floor",
                x_scale="linear",
                x_mark=1.0,
            ),
            Panel(
                "Keeping close to the policy costs more",
                tuple(over_ratios(each) for each in problems),
                "largest ratio κ",
                "limit / limit without the ratio",
                x_scale="linear",
            ),
            Panel(
                "Best per episode is not best per step",
                tuple(line for each in problems[:2] for line in over_lengths(each)),
                "steps of an episode",
                "error · steps / on-policy's",
                x_scale="linear",
            ),
        )
    path = save_picture(Chart("costs-trade-offs", "", panels), FIGURE)
    console.print(f"wrote {path}", soft_wrap=True)


def over_floors(problem: Problem) -> Line:
    """The limit as the floor on the return rises."""
    mdp = problem.mdp
    value = revar.policy_value(mdp, problem.policy)
    top = NEARLY_ALL * problem.most(mdp.reward_mean, mdp.discount) / value
    free = problem.optimum().limit
    shares = np.linspace(FLOORS[0], min(FLOORS[1], top), POINTS)
    limits = [problem.optimum(revar.Limits(min_return=share * value)).limit for share in shares]
    return problem.line(shares, np.array(limits) / free, problem.name)


def over_ratios(problem: Problem) -> Line:
    """The limit as actions may be taken more often; a ratio of 1 is on-policy collection."""
    free = problem.optimum().limit
    limits = [problem.optimum(revar.Limits(max_ratio=ratio)).limit for ratio in RATIOS]
    return problem.line(RATIOS, np.array(limits) / free, problem.name)


def over_lengths(problem: Problem) -> list[Line]:
    """Error times steps of the best collection, as episodes may be longer; and three ways."""
    mdp, policy = problem.mdp, problem.policy
    unit = problem.steps(policy) * revar.estimation_variance(mdp, policy, policy)
    free, best = problem.optimum(), problem.optimum(cost="steps")
    every_step = np.ones(policy.shape)
    least, most = -ROOM * problem.most(-every_step, 1.0), problem.steps(free.behavior)
    lengths = np.geomspace(least, most, POINTS)
    errors = [problem.optimum(revar.Limits(max_sums=[(every_step, n)])).limit for n in lengths]
    points = {
        "on-policy": (problem.steps(policy), unit),
        "best per step": (problem.steps(best.behavior), best.limit),
        "best per episode": (most, most * free.limit),
    }
    return [
        problem.line(lengths, lengths * np.array(errors) / unit),
        *(
            problem.line([x], [y / unit], f"{problem.name}, {label}")
            for label, (x, y) in points.items()
        ),
    ]


if __name__ == "__main__":
    main()

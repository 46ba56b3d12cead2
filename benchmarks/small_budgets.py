"""What small budgets give: flow, and what it must not be worse than.

`python -m benchmarks.small_budgets` writes benchmarks/results/small_budgets.md: K*MSE divided by
the limit, and how often 95% intervals hold, on problems that flow was tuned on and on others.
`--tuning` leaves out each constant of flow in turn instead. `--environments` plays Gymnasium's own
environments, where the first state's distribution has to be estimated, too.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy import sparse

import revar
from benchmarks.budget_problems import taxi
from revar.problems import Problem, find_problem
from revar.strategies import Flow, Strategy
from revar.strategies.flow.tuning import Tuning

RESULTS = Path(__file__).with_name("results")
BUDGETS = (10, 20, 50, 100, 200, 1000)


def ten_arms() -> Problem:
    """Weights and deviations that have nothing to do with each other."""
    rng = np.random.default_rng(5)
    return find_problem(
        "bandit", policy=rng.dirichlet(np.ones(10)), deviations=np.exp(rng.normal(size=10))
    )


def with_more_reward(problem: Problem, more: float) -> Problem:
    """The same problem with so much added to every reward."""
    mdp = problem.mdp
    rows = sparse.csr_array(
        (mdp.outcome_reward_mean + more, mdp.outcomes.successor, mdp.outcomes.row_start),
        shape=(mdp.states * mdp.actions, mdp.states + 1),
    )
    noise = sparse.csr_array(
        (mdp.outcome_reward_std, mdp.outcomes.successor, mdp.outcomes.row_start), shape=rows.shape
    )
    raised = revar.TabularMDP(mdp.transitions, rows, noise, mdp.initial, mdp.horizon, mdp.discount)
    return Problem(f"{problem.name}, +{more:g}", raised, problem.policy)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "ten arms": ten_arms,
    "tree, branching": lambda: find_problem("random-tree", depth=5, actions=2, branching=2, seed=3),
    "20 states": lambda: find_problem("garnet", states=20, actions=4, seed=7),
    "8 states": lambda: find_problem("garnet", states=8, actions=3, discount=0.95, seed=11),
    "4 x 4 grid": lambda: find_problem("gridworld"),
    "4 x 4 grid, +1": lambda: with_more_reward(find_problem("gridworld"), 1.0),
    "6 x 6 grid": lambda: find_problem("gridworld", size=6, slip=0.2),
    "RiverSwim": lambda: find_problem("riverswim"),
    "FrozenLake": lambda: find_problem("frozenlake"),
    "Blackjack": lambda: find_problem("blackjack"),
}
LEFT_OUT: dict[str, Strategy] = {
    "flow": Flow(),
    "growth 3": Flow(tuning=Tuning(growth=3.0)),
    "10 sweeps": Flow(tuning=Tuning(sweeps=10.0)),
    "settled at 1%": Flow(tuning=Tuning(settled=1e-2)),
    "prior_visits 2": Flow(tuning=Tuning(prior_visits=2.0)),
    "likeness 0": Flow(tuning=Tuning(likeness=0.0)),
    "alike 1e6": Flow(tuning=Tuning(alike=1e6)),
}


@dataclass(frozen=True)
class Played:
    """An environment, played by a policy whose value a model tells."""

    name: str
    mdp: revar.TabularMDP
    policy: Any  # as `evaluate` takes it
    table: Any  # [S, A]
    budgets: tuple[int, ...]


def environments() -> Iterator[Played]:
    """Gymnasium's own."""
    blackjack = find_problem("blackjack")

    def stick_on_20(hand: tuple[int, int, int]) -> list[float]:
        return [0.9, 0.1] if hand[0] >= 20 else [0.1, 0.9]

    yield Played("Blackjack-v1", blackjack.mdp, stick_on_20, blackjack.policy, (30, 100, 200))
    lake = revar.from_gymnasium("FrozenLake-v1")
    uniform = np.full((lake.states, lake.actions), 1.0 / lake.actions)
    yield Played("FrozenLake-v1", lake, uniform, uniform, (100,))
    mdp, policy = taxi()
    yield Played("Taxi-v4", mdp, policy, policy, (30, 100, 200))


def environment_lines(runs: int, console: Console) -> Iterator[str]:
    """A table's lines: the error over that of the mean return, and how many intervals held."""
    yield (
        "| environment | episodes | MSE / that of the mean return | intervals held "
        "| the mean return is mixed in |"
    )
    yield "|---|---:|---|---:|---|"
    for each in environments():
        value = revar.policy_value(each.mdp, each.table)
        variance = revar.return_variance(each.mdp, each.table)
        for budget in each.budgets:
            with console.status(f"{each.name}, {budget} episodes"):
                found = [
                    revar.evaluate(
                        *(each.name, each.policy),
                        episodes=budget,
                        horizon=each.mdp.horizon,
                        discount=each.mdp.discount,
                        seed=seed,
                    )
                    for seed in range(runs)
                ]
            squares = (
                np.array([(result.value - value) ** 2 for result in found]) * budget / variance
            )
            held = np.mean(
                [low <= value <= high for low, high in (result.interval for result in found)]
            )
            mixed = np.mean([result.method != "table" for result in found])
            error = squares.std(ddof=1) / runs**0.5
            yield (
                f"| {each.name} | {budget} | {squares.mean():.2f} ± {error:.2f} | {held:.0%} "
                f"| in {mixed:.0%} of the runs |"
            )


@dataclass(frozen=True)
class Cell:
    """One measured figure."""

    ratio: float  # K*MSE / limit
    error: float  # its standard error
    coverage: float

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ± {self.error:.2f} ({100 * self.coverage:.0f}%)"


def measure(
    problem: Problem, limit: float, strategy: str | Strategy, budget: int, runs: int
) -> Cell:
    """Runs of their own with that budget."""
    result = revar.simulate(
        problem.mdp,
        problem.policy,
        strategy,
        episodes=budget,
        runs=runs,
        seed=1,
        checkpoints=[budget],
    )
    scale = budget / limit
    return Cell(
        float(scale * result.mse[0]),
        float(scale * result.mse_standard_error[0]),
        float(result.coverage()[0]),
    )


def lines(strategies: dict[str, str | Strategy], runs: int, console: Console) -> Iterator[str]:
    """A table's lines: of each problem, the mean return, and a row for each strategy."""
    yield f"| problem | | {' | '.join(f'K = {budget}' for budget in BUDGETS)} |"
    yield "|---" * (len(BUDGETS) + 2) + "|"
    for name, build in PROBLEMS.items():
        problem = build()
        limit = revar.optimal_flow(problem.mdp, problem.policy, tolerance=1e-3).limit
        mean = revar.return_variance(problem.mdp, problem.policy) / limit
        yield f"| {name} | mean return (exact) | {' | '.join([f'{mean:.2f}'] * len(BUDGETS))} |"
        for label, strategy in strategies.items():
            with console.status(f"{name}, {label}"):
                cells = [measure(problem, limit, strategy, budget, runs) for budget in BUDGETS]
            yield f"| | {label} | {' | '.join(map(str, cells))} |"


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--tuning", action="store_true", help="leave out constants of flow")
    parser.add_argument("--environments", action="store_true", help="play Gymnasium's own")
    chosen = parser.parse_args()
    console = Console(stderr=True)
    if chosen.environments:
        write(
            "small_budgets_environments",
            f"The default strategy and estimate of `evaluate`, {chosen.runs} runs a row.",
            environment_lines(chosen.runs, console),
        )
        return
    strategies: dict[str, str | Strategy] = {"on-policy": "on-policy", "flow": "flow"}
    if chosen.tuning:
        strategies = dict(LEFT_OUT)
    write(
        "small_budgets_tuning" if chosen.tuning else "small_budgets",
        f"K·MSE divided by the limit ± its standard error, and how many of the 95% intervals held; "
        f"{chosen.runs} runs a cell, transitions unknown, start distribution known.",
        lines(strategies, chosen.runs, console),
    )


def write(name: str, what: str, table: Iterator[str]) -> None:
    """Write a page of results, and show its lines as they come."""
    text = [what, ""]
    for line in table:
        text.append(line)
        print(line, flush=True)
    (RESULTS / f"{name}.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

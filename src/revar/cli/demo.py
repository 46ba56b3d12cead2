"""`revar demo`: the paper's two problems, solved exactly."""

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from revar.problems import Problem

ACTIONS = {"tree": ("left", "right"), "gridworld": ("left", "right", "down", "up")}


@click.command()
def demo() -> None:
    """Show value, oracle proportions and error of the paper's tree and gridworld.

    Nothing is simulated: every number is computed from the model.

    \b
    Example:
      revar demo
    """
    from revar import find_problem

    console = Console()
    loaded = [find_problem(name) for name in ("tree", "gridworld")]
    console.print(_error_table(loaded))
    for problem in loaded:
        console.print()
        console.print(_proportion_table(problem))


def _error_table(loaded: list["Problem"]) -> Table:
    from revar import estimation_variance, optimal_flow, policy_value, sampling_proportions

    table = Table(
        title="K·MSE of the paper's problems, exactly",
        caption="K·MSE: mean squared error times the number of episodes K, as K grows. "
        "Oracle: the paper's. Limit: the smallest possible.",
    )
    table.add_column("problem")
    table.add_column("structure")
    table.add_column("value", justify="right")
    table.add_column("transitions")
    for heading in ("on-policy", "oracle", "limit"):
        table.add_column(heading, justify="right")
    for problem in loaded:
        mdp, policy = problem.mdp, problem.policy
        oracle = sampling_proportions(mdp, policy).behavior
        for known in (False, True):
            errors = [
                estimation_variance(mdp, policy, behavior, known_transitions=known)
                for behavior in (policy, oracle)
            ]
            table.add_row(
                *(
                    ("", "", "")
                    if known
                    else (
                        problem.name,
                        mdp.structure().kind,
                        f"{policy_value(mdp, policy):.4f}",
                    )
                ),
                "known" if known else "unknown",
                f"{errors[0]:.4f}",
                f"{errors[1]:.4f}",
                f"{optimal_flow(mdp, policy, known_transitions=known).limit:.4f}",
            )
    return table


def _proportion_table(problem: "Problem") -> Table:
    from revar import occupancy, sampling_proportions

    mdp, policy = problem.mdp, problem.policy
    oracle = sampling_proportions(mdp, policy)
    names = ACTIONS[problem.name]
    table = Table(
        title=f"{problem.name}: how often the oracle takes each action (target policy's share)"
    )
    table.add_column("state", justify="right")
    table.add_column("B(state)", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    entered = occupancy(mdp, policy).sum(axis=(0, 2)) > 0
    for state in entered.nonzero()[0]:
        table.add_row(
            str(state),
            f"{oracle.normalizers[state]:.3f}",
            *(
                f"{oracle.behavior[state, a]:.3f} [dim]({policy[state, a]:.2f})[/dim]"
                for a in range(mdp.actions)
            ),
        )
    return table

"""What must hold for a run to go on from the file of an earlier one."""

from math import inf

from revar.datasets.files import Conditions
from revar.errors import InputError
from revar.evaluation.amounts import spent_on
from revar.model.budget import Budget
from revar.model.episodes import Episodes
from revar.model.trajectory import Dataset

# What must be the same in a run that goes on from a file.
LATER = ("environment_details", "options", "bins")  # older files do not have these
SAME_RETURNS = (
    "environment",
    "environment_details",
    "horizon",
    "discount",
    "seed",
    "options",
    "names",
    "budget_unit",
    "cost",
)
SAME_TABLE = (
    "environment",
    "strategy",
    "horizon",
    "discount",
    "seed",
    "environments",
    "workers",
    "batch",
    "prior_episodes",
    "options",
    "bins",
    "names",
    "question",
    "budget_unit",
    "cost",
    "limits",
)


def check_same(earlier: Conditions, now: Conditions, names: tuple[str, ...]) -> None:
    """Refuse to go on from a file that was collected under other conditions."""
    for name in names:
        before, after = getattr(earlier, name), getattr(now, name)
        if before != after and not (name in LATER and before is None):
            if name == "workers":
                before, after = before or 1, after or 1
            what = name.replace("_", " ")
            raise InputError(f"the file was collected with {what} = {before}; now it is {after}")


def refuse_overspent(stored: Dataset | Episodes, earlier: Conditions, budget: Budget) -> None:
    """Refuse a budget of which the file has spent more; the last episode may exceed its own."""
    if budget.by_episode:
        if len(stored) > budget.amount:
            raise InputError(
                f"the file has {len(stored)} episodes, more than the {budget.amount} that are "
                f"wanted"
            )
        return
    spent = spent_on(stored, budget)
    if spent > budget.amount < (earlier.budget_amount or inf):
        raise InputError(
            f"the file has spent {budget.text(spent)}, more than the {budget.amount:,.6g} that "
            f"are wanted"
        )

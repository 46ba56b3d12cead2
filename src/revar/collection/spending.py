"""What a collection may still spend, and what is known of costs and of sums that are limited."""

from dataclasses import replace

import numpy as np

from revar.model.amounts import COST, AmountStatistics, EpisodeTotals
from revar.model.arrays import FloatArray
from revar.model.budget import Budget
from revar.model.limits import Limits
from revar.model.trajectory import Dataset

MOST_EPISODES = 2**40  # side by side


def count_affordable(
    budget: Budget,
    spent: float,
    totals: EpisodeTotals,
    horizon: int,
    under_way: int,
    dearest_step: float | None,
) -> int:
    """How many more episodes may be begun: see `Collection.affordable`."""
    left = budget.amount - spent
    if left <= 0.0:
        return 0
    if budget.by_episode:
        return max(0, int(left) - under_way)
    if budget.unit == "steps":
        dearest_step = 1.0
    if dearest_step is None:
        # What n episodes have cost at most is trusted for n of them at a time.
        dearest = float(totals.largest[totals.names.index(COST)])
        room = min(left / dearest if dearest > 0.0 else 1.0, totals.episodes)
    else:
        room = min(left / (horizon * dearest_step), MOST_EPISODES)
    return max(int(room) - under_way, 0 if under_way else 1)


def totals_of(episodes: Dataset, fading: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Discounted return, steps and the sum of each amount, [episode, 2 + names]."""
    discounted = fading[episodes.step_in_episode] * episodes.rewards
    ones = np.ones(episodes.states.size)
    columns = [discounted, ones, *(episodes.amounts[name] for name in names)]
    first = episodes.start[:-1]
    return np.stack([np.add.reduceat(each, first) for each in columns], axis=1)


def conditions_of(
    limits: Limits, amounts: AmountStatistics, states: int
) -> tuple[FloatArray | None, Limits]:
    """What visits cost [S, A], where they do, and the limits with the amounts of their sums.

    What is forbidden no target policy takes, and so no strategy: it is left out.
    """
    limits = replace(limits, forbidden=None)
    if not amounts.names:
        return None, limits
    means, variances = amounts.means(states), amounts.variances(states)
    paid = amounts.names[0] == COST
    sums = [
        replace(limit, amounts=means[paid + i], variance=variances[paid + i])
        for i, limit in enumerate(limits.sums)
    ]
    return means[0] if paid else None, replace(limits, max_sums=sums)

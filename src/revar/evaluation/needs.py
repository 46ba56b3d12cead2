"""What a half-width needs, with the interval that the need probably lies in."""

from dataclasses import dataclass
from math import ceil, isfinite

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.budget import Budget

RESAMPLES = 200  # of a pilot's episodes (Efron 1979, "Bootstrap methods")


@dataclass(frozen=True)
class Need:
    """What is needed, and the interval it probably lies in; whole numbers, but for a cost."""

    amount: float
    low: float
    high: float | None  # None where the data sets no limit
    episodes: int  # how many episodes that is
    unit: str = "episodes"

    def __str__(self) -> str:
        low, high = (
            "" if end is None else f"{end:,.6g}" if self.unit == "cost" else f"{end:,}"
            for end in (self.low, self.high)
        )
        upper = f"to {high}" if high else "or more"
        return f"{Budget(1, self.unit).text(self.amount)} (95%: {low} {upper})"


def find_need(
    episodes: float, price: float, resampled: FloatArray, unit: str, least: int = 1
) -> Need:
    """What so many episodes take at a price each, and at least `least` of them.

    The interval is from the spread of resampled numbers on a log scale. They spread around the
    number as the number does around the truth. So the spread is mirrored: where resampling divides
    by a factor, the truth may be larger by it. Where resampled data can lack any variance, there is
    no upper end.
    """
    if not isfinite(episodes * price) or resampled.size == 0:
        raise InputError("the data cannot tell how many episodes are needed; give more of it")
    low, middle, high = np.percentile(resampled, [2.5, 50.0, 97.5])
    below = min(middle / high, 1.0) if high > 0.0 else 0.0
    above = max(middle / low, 1.0) if low > 0.0 else None
    amount, floor = episodes * price, least * price
    least_amount, most = max(floor, amount * below), above and max(floor, amount * above)
    count = max(least, ceil(episodes))
    if unit == "cost":
        return Need(max(floor, amount), least_amount, most, count, unit)
    whole = None if most is None else ceil(most)
    return Need(ceil(max(floor, amount)), int(least_amount), whole, count, unit)

"""Blackjack: which total is best to stick from? Decided with as few games as it takes.

All policies are judged from the same games, which are played where the policies differ.
"""

import revar


def stick_from(total):
    """Take cards below that total, and now and then do the other thing."""
    return lambda hand: [0.95, 0.05] if hand[0] >= total else [0.05, 0.95]


result = revar.compare(
    "Blackjack-v1",
    {f"from {total}": stick_from(total) for total in (14, 16, 18, 20)},
    episodes=30_000,
    decide=0.95,
    indifference=0.02,
    seed=0,
)
print(result.table())

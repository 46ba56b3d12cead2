"""Blackjack: two policies judged from one set of games.

Blackjack has no transition table and its observations are tuples. The games are played with both
actions tried everywhere; any policy can then be evaluated from them.
"""

import revar


def stick_from(total):
    """Take cards below that total."""
    return lambda hand: [1.0, 0.0] if hand[0] >= total else [0.0, 1.0]


games = revar.evaluate("Blackjack-v1", "uniform", strategy="uniform", episodes=8_000, seed=0)
print(f"{len(games.dataset):,} games, {games.task.states} kinds of hands")
for total in (12, 14, 16, 17, 18, 20):
    result = revar.evaluate_data(games.dataset, stick_from(total), horizon=games.task.horizon)
    low, high = result.interval
    print(f"stick from {total}: {result.value:+.3f}, 95% interval [{low:+.3f}, {high:+.3f}]")

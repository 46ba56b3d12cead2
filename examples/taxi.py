"""Taxi-v4: how many episodes would a narrow interval take? Ask before collecting them.

A pilot of on-policy episodes estimates what every state and action costs, and from that the number
of episodes a wanted half-width needs, on-policy and with the best collection.
"""

import revar


def wander(observation):
    """Mostly drive (actions 0 to 3), now and then try to pick up (4) or drop off (5)."""
    return [0.22, 0.22, 0.22, 0.22, 0.06, 0.06]


advice = revar.advise("Taxi-v4", wander, half_width=0.1, pilot=400, discount=0.95, seed=0)
print(advice)
print()
result = revar.evaluate("Taxi-v4", wander, episodes=100, discount=0.95, seed=1)
print(result)
print("what it met:", result.task.states, "of Taxi's 500 states, none of them named in advance")

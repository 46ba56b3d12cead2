"""CartPole: continuous observations through explicit bins, and a check whether they are too coarse.

Observations that share all bins become one state. That can bias the estimate; the check plays the
policy itself and compares its mean return. Coarse bins fail it, finer ones come closer.
"""

import revar


def lean(observation):
    """Push towards the side to which the pole turns, now and then the other way."""
    return [0.1, 0.9] if observation[3] > 0 else [0.9, 0.1]


low, high = [-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0]
for counts in ([1, 1, 2, 2], [1, 8, 24, 16]):
    bins = revar.Bins.uniform(low, high, counts)
    result = revar.evaluate(
        "CartPole-v1", lean, episodes=800, horizon=60, discount=0.98, bins=bins, seed=0
    )
    check = revar.check_aggregation(result, "CartPole-v1", lean, episodes=400, seed=1)
    print(f"bins {counts}: {result.task.states} states met")
    print(f"  {result}")
    print(f"  {check}")

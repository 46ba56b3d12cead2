"""What collection adds to the steps of a real environment."""

from typing import Any

import gymnasium

import revar
from benchmarks.registry import Cost, Ratio, benchmark
from benchmarks.timing import best_per_unit

EPISODES = 1000


def _played(actions: Any) -> int:
    """Gymnasium's own loop over those actions, episode by episode; how many steps it took."""
    env = gymnasium.make("FrozenLake-v1")
    env.reset(seed=0)
    steps = 0
    for action in actions:
        steps += 1
        if any(env.step(action)[2:4]):
            env.reset()
    return steps


def _overhead(strategy: str) -> Ratio:
    first = revar.evaluate("FrozenLake-v1", "uniform", strategy=strategy, episodes=EPISODES, seed=0)
    # Both are given the same actions: an episode is as long in one as in the other.
    actions = first.dataset.actions.tolist()

    def evaluated(runs: int) -> None:
        for _ in range(runs):
            revar.evaluate("FrozenLake-v1", "uniform", strategy=strategy, episodes=EPISODES, seed=0)

    def stepped(runs: int) -> None:
        for _ in range(runs):
            _played(actions)

    whole, own = (seconds / len(actions) for seconds in best_per_unit(evaluated, stepped))
    return Ratio(
        Cost(f"what {strategy} adds", whole - own, "step"),
        Cost("env.step of FrozenLake", own, "step"),
        f"`revar.evaluate` of {EPISODES:,} episodes, plans, checkpoints and dataset included, less "
        f"Gymnasium's own loop over the same actions",
    )


@benchmark("collection with flow / env.step of FrozenLake", at_most=2.5)
def flow_beside_a_step() -> Ratio:
    """What a user pays for flow in a cheap environment."""
    return _overhead("flow")


@benchmark("collection on-policy / env.step of FrozenLake", at_most=2.5)
def on_policy_beside_a_step() -> Ratio:
    """What bookkeeping alone costs."""
    return _overhead("on-policy")

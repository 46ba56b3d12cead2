"""from_gymnasium: the model of an environment that has a transition table."""

from typing import Any

import numpy as np
from scipy import sparse

from revar.environments.opening import horizon_of, open_environment
from revar.errors import InputError
from revar.model.mdp import TabularMDP


def from_gymnasium(
    env: Any,
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    initial: Any = None,
    env_options: dict[str, Any] | None = None,
) -> TabularMDP:
    """The model of an environment that has a transition table `P`, as FrozenLake and Taxi do.

    `P[s][a]` lists (probability, successor, reward, terminated); entries of one successor are
    summed, and whatever terminates becomes the end of the episode.

    Parameters
    ----------
    env
        An environment, or its name.
    horizon
        By default the time limit.
    discount
        Of later rewards.
    initial
        The distribution of the first state; by default the environment's `initial_state_distrib`.
    env_options
        For opening an environment that is given by name.
    """
    env = open_environment(env, env_options)
    base = getattr(env, "unwrapped", env)
    table = getattr(base, "P", None)
    if not isinstance(table, dict):
        raise InputError(f"{type(base).__name__} has no transition table P; evaluate it instead")
    if getattr(base, "fickle_passenger", False):
        # Taxi's step changes the destination by itself, once an episode.
        raise InputError(
            f"{type(base).__name__} has a fickle passenger, of whom its transition table P does "
            f"not know; evaluate it instead"
        )
    start = getattr(base, "initial_state_distrib", None) if initial is None else initial
    if start is None:
        raise InputError(
            f"{type(base).__name__} does not state the distribution of its first state; give "
            f"initial=..."
        )
    states, actions = len(table), len(table[0])
    sums = _OutcomeSums()
    for state in range(states):
        for action in range(actions):
            for probability, successor, reward, terminated in table[state][action]:
                outcome = states if terminated else int(successor)
                pair = state * actions + action
                sums.add(pair, outcome, float(probability), float(reward))
    return sums.model(states, actions, start, horizon_of(env, horizon), discount)


class _OutcomeSums:
    """Probability and reward moments of every (pair, outcome), summed over its entries."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, int], list[float]] = {}
        self.rewards: set[float] = set()

    def add(self, pair: int, outcome: int, probability: float, reward: float) -> None:
        if probability == 0.0:
            return
        entry = self.sums.setdefault((pair, outcome), [0.0, 0.0, 0.0])
        entry[0] += probability
        entry[1] += probability * reward
        entry[2] += probability * reward**2
        self.rewards.add(reward)

    def model(
        self, states: int, actions: int, initial: Any, horizon: int, discount: float
    ) -> TabularMDP:
        rows, columns = np.array(list(self.sums), dtype=np.int64).T
        chance, first, second = np.array(list(self.sums.values())).T
        mean = first / chance
        spread = np.sqrt(np.clip(second / chance - mean**2, 0.0, None))
        spread[spread < 1e-7 * (1.0 + np.abs(mean))] = 0.0  # what rounding leaves
        law = "normal" if np.any(spread > 0) else "deterministic"
        if law == "normal" and self.rewards <= {0.0, 1.0}:
            law, spread = "bernoulli", np.sqrt(mean * (1.0 - mean))
        goes_on = columns < states
        shape = (states * actions, states + 1)
        return TabularMDP(
            sparse.csr_array(
                (chance[goes_on], (rows[goes_on], columns[goes_on])),
                shape=(states * actions, states),
            ),
            sparse.csr_array((mean, (rows, columns)), shape=shape),
            sparse.csr_array((spread, (rows, columns)), shape=shape),
            initial,
            horizon,
            discount,
            reward_law=law,
        )

"""RiverSwim (Strehl and Littman 2008): a chain whose current pushes back to the left bank."""

import numpy as np

from revar.errors import InputError
from revar.model.mdp import TabularMDP
from revar.model.validation import checked_count, checked_share
from revar.problems.problem import Problem, problems


@problems.register("riverswim")
def riverswim(
    states: int = 6,
    *,
    horizon: int = 20,
    swim: float = 0.8,
    noise: float = 0.5,
    discount: float = 1.0,
    reward_law: str = "normal",
) -> Problem:
    """Action 0 drifts left for sure; action 1 swims right against the current.

    Rewards of mean 0.005 on the left bank (action 0) and 1 on the right bank (action 1), each
    with standard deviation `noise` times its mean, and none elsewhere. The target policy swims
    with probability `swim`; episodes start next to the left bank.
    """
    if checked_count(states, "states") == 1:
        raise InputError("states is 1; a river has two banks")
    checked_share(swim, "swim")
    transitions = np.zeros((states, 2, states))
    last = states - 1
    for s in range(states):
        transitions[s, 0, max(s - 1, 0)] = 1.0
        transitions[s, 1, max(s - 1, 0)] += 0.05
        transitions[s, 1, s] += 0.6
        transitions[s, 1, min(s + 1, last)] += 0.35
    transitions[0, 1] = 0.0
    transitions[0, 1, :2] = 0.4, 0.6
    transitions[last, 1] = 0.0
    transitions[last, 1, last - 1 :] = 0.4, 0.6
    means = np.zeros((states, 2))
    means[0, 0], means[last, 1] = 0.005, 1.0
    initial = np.zeros(states)
    initial[1] = 1.0
    mdp = TabularMDP(
        transitions, means, noise * means, initial, horizon, discount, reward_law=reward_law
    )
    return Problem("riverswim", mdp, np.tile([1.0 - swim, swim], (states, 1)))

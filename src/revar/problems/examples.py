"""The paper's Examples 1 and 2: two-level trees worked out by hand in its text."""

import numpy as np

from revar.model.mdp import TabularMDP
from revar.problems.problem import Problem, problems


@problems.register("example-1")
def example_1(*, reward_law: str = "normal") -> Problem:
    """Child variance matters: the quieter root action leads to the noisier child.

    The root (state 0) leads to state 1 by action 0 and to state 2 by action 1; the target policy
    is uniform. The paper's prose calls the sub-tree of the first action the right one. Assumed:
    means of zero, normal rewards.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    variances = np.array([[400.0, 600.0], [400.0, 400.0], [4.0, 4.0]])
    mdp = TabularMDP(
        transitions, 0.0, np.sqrt(variances), [1.0, 0.0, 0.0], 2, reward_law=reward_law
    )
    return Problem("example-1", mdp, np.full((3, 2), 0.5))


@problems.register("example-2")
def example_2(likely: float = 0.9, *, spread: float = 10.0, reward_law: str = "normal") -> Problem:
    """The transition model matters: noise behind an unlikely transition counts for little.

    Action 0 leads to state 1 with probability `likely`, else to state 2; action 1 to state 3,
    else to state 4. The paper leaves the variances open; here the likely child of action 0 and
    the unlikely child of action 1 are the noisy ones, with standard deviation `spread` against 1,
    so that the two actions differ by the transition model alone.
    """
    transitions = np.zeros((5, 2, 5))
    transitions[0, 0, 1], transitions[0, 0, 2] = likely, 1.0 - likely
    transitions[0, 1, 3], transitions[0, 1, 4] = likely, 1.0 - likely
    deviations = np.ones((5, 2))
    deviations[[1, 4]] = spread
    mdp = TabularMDP(
        transitions, 0.0, deviations, [1.0, 0.0, 0.0, 0.0, 0.0], 2, reward_law=reward_law
    )
    return Problem("example-2", mdp, np.full((5, 2), 0.5))

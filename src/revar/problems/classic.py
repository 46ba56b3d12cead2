"""Problems of the field: RiverSwim and FrozenLake, and a failure that rare actions lead to."""

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.mdp import TabularMDP
from revar.model.validation import check_count, check_share
from revar.problems import Problem, problems


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
    """RiverSwim (Strehl and Littman 2008): a chain whose current pushes back to the left bank.

    Action 0 drifts left for sure; action 1 swims right against the current.

    Rewards of mean 0.005 on the left bank (action 0) and 1 on the right bank (action 1), each
    with standard deviation `noise` times its mean, and none elsewhere. The target policy swims
    with probability `swim`; episodes start next to the left bank.
    """
    if check_count(states, "states") == 1:
        raise InputError("states is 1; a river has two banks")
    check_share(swim, "swim")
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


@problems.register("rare-failure")
def rare_failure(
    actions: int = 4,
    *,
    rare: float = 0.1,
    works: float = 0.9,
    horizon: int = 20,
    reward_law: str = "bernoulli",
) -> Problem:
    """A failure that needs `actions` rare actions in a row; the value is its probability.

    State s has seen s of them. Action 0 leads back to state 0. Action 1, which the target policy
    takes with probability `rare`, leads one up with probability `works`, else back to state 0. In
    the last state it ends the episode, with the failure, of reward 1, as often as it works.
    """
    check_count(actions, "actions")
    check_share(rare, "rare")
    check_share(works, "works")
    transitions = np.zeros((actions, 2, actions))
    transitions[:, 0, 0] = 1.0
    transitions[:-1, 1, 0] = 1.0 - works
    for s in range(actions - 1):
        transitions[s, 1, s + 1] = works
    means = np.zeros((actions, 2))
    means[-1, 1] = works
    deviations = np.sqrt(means * (1.0 - means))
    first = np.eye(actions)[0]
    mdp = TabularMDP(transitions, means, deviations, first, horizon, reward_law=reward_law)
    return Problem("rare-failure", mdp, np.tile([1.0 - rare, rare], (actions, 1)))


# Left, down, right, up as (row, column) steps: neighbours in this order are at right angles.
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
# The holes of the two standard lakes as (row, column), and the steps after which a walk is cut.
HOLES = {
    4: ((1, 1), (1, 3), (2, 3), (3, 0)),
    8: ((2, 3), (3, 5), (4, 3), (5, 1), (5, 2), (5, 6), (6, 1), (6, 4), (6, 6), (7, 3)),
}
HORIZONS = {4: 100, 8: 200}


@problems.register("frozenlake")
def frozen_lake(
    size: int = 4,
    *,
    slippery: bool = True,
    epsilon: float = 0.2,
    horizon: int | None = None,
    discount: float = 0.99,
    reward_law: str = "deterministic",
) -> Problem:
    """FrozenLake, 4 x 4 or 8 x 8: reaching the goal pays 1, and an epsilon-soft optimal policy.

    The lake of Gymnasium's FrozenLake-v1, built from its rules: actions are left, down, right, up;
    on slippery ice a move goes as meant or to either side with probability 1/3 each; moves off
    the lake stay. The reward depends on the successor. Holes and goal are states in which the
    next step, whatever it is, ends the episode.

    The target policy takes the best action when the whole horizon is still ahead (the first of
    equally good ones) with probability 1 - epsilon, else any action. At this discount that is the
    optimal action of an endless walk too. In holes and at the goal it takes action 0.
    """
    if size not in HOLES:
        raise InputError(f"size is {size!r}; there are lakes of size 4 and 8")
    check_share(epsilon, "epsilon")
    steps = HORIZONS[size] if horizon is None else check_count(horizon, "horizon")
    states = size * size
    goal = states - 1
    over = [row * size + column for row, column in HOLES[size]] + [goal]
    transitions = np.zeros((states, 4, states))
    for state in np.setdiff1d(np.arange(states), over).tolist():
        for action in range(4):
            moves = (action - 1, action, action + 1) if slippery else (action,)
            for move in moves:
                down, right = MOVES[move % 4]
                row = min(max(state // size + down, 0), size - 1)
                column = min(max(state % size + right, 0), size - 1)
                transitions[state, action, row * size + column] += 1.0 / len(moves)
    rewards = np.zeros((states, 4, states + 1))
    rewards[..., goal] = 1.0
    mdp = TabularMDP(
        transitions,
        rewards,
        0.0,
        np.eye(states)[0],
        steps,
        discount,
        reward_law=reward_law,
    )
    greedy = np.eye(4)[_best_actions(transitions, mdp.reward_mean, steps, discount)]
    policy = (1.0 - epsilon) * greedy + epsilon / 4
    policy[over] = np.eye(4)[0]
    return Problem("frozenlake", mdp, policy, MOVES)


def _best_actions(
    transitions: FloatArray, reward_mean: FloatArray, horizon: int, discount: float
) -> IntArray:
    """The first optimal action of every state with `horizon` steps to go, [S]."""
    values = np.zeros(len(transitions))
    action_values = np.zeros(reward_mean.shape)
    for _ in range(horizon):
        action_values = reward_mean + discount * transitions @ values
        values = action_values.max(axis=1)
    # Values that differ by rounding alone are equal.
    return np.asarray(np.argmax(action_values >= values[:, None] - 1e-12, axis=1))

"""FrozenLake against Gymnasium's own transition table, and against a solver of its own."""

from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

from revar import optimal_flow, return_variance
from revar.errors import InputError
from revar.problems import Problem, problems

SIZES = [4, 8]


@cache
def lake(size: int, **options: Any) -> Problem:
    return problems.find("frozenlake")(size, **options)


@pytest.mark.parametrize("slippery", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_it_is_gymnasium_s_lake(size: int, slippery: bool) -> None:
    env = gymnasium.make("FrozenLake-v1", map_name=f"{size}x{size}", is_slippery=slippery)
    table: Any = env.unwrapped
    mdp = lake(size, slippery=slippery).mdp
    assert (mdp.states, mdp.actions) == (table.observation_space.n, table.action_space.n)
    assert env.spec is not None
    names = {4: "FrozenLake-v1", 8: "FrozenLake8x8-v1"}
    assert mdp.horizon == gymnasium.spec(names[size]).max_episode_steps
    chance = np.zeros((mdp.states, mdp.actions, mdp.states))
    reward = np.zeros_like(chance)
    over = set()
    for state, action in np.ndindex(mdp.states, mdp.actions):
        for probability, successor, paid, ends in table.P[state][action]:
            chance[state, action, successor] += probability  # successors repeat
            reward[state, action, successor] = paid
            if ends:
                over.add(successor)
    chance[sorted(over)] = 0.0  # staying for ever is Gymnasium's way to say that it is over
    found = mdp.transitions.toarray().reshape(chance.shape)
    np.testing.assert_allclose(found, chance, atol=1e-15)
    paying = np.zeros((mdp.states * mdp.actions, mdp.states + 1))
    pairs = np.repeat(np.arange(len(paying)), np.diff(mdp.outcomes.row_start))
    paying[pairs, mdp.outcomes.successor] = mdp.outcome_reward_mean
    np.testing.assert_array_equal(paying[:, :-1].reshape(chance.shape), reward * (chance > 0))
    assert not paying[:, -1].any()
    assert mdp.initial.tolist() == table.initial_state_distrib.tolist()
    env.close()


def test_a_walk_in_gymnasium_pays_what_a_walk_in_the_model_does() -> None:
    """Without slipping: the same moves, the same cells, one prize, and the end one step later."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    state, _ = env.reset(seed=0)
    mdp = lake(4, slippery=False).mdp
    dense = mdp.transitions.toarray().reshape(16, 4, 16)
    for action in (1, 1, 2, 2, 1, 2):
        expected = int(np.argmax(dense[state, action]))
        state, reward, ended, _, _ = env.step(action)
        assert state == expected
        assert reward == (state == 15)
    assert ended
    assert not dense[15].any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_policy_is_optimal_for_an_endless_walk(size: int, epsilon: float) -> None:
    """By a linear program's optimality condition: no action is better than the greedy one."""
    problem = lake(size, epsilon=epsilon)
    mdp, policy = problem.mdp, problem.policy
    dense = mdp.transitions.toarray().reshape(mdp.states, 4, mdp.states)
    walking = np.flatnonzero(dense.sum(axis=(1, 2)) > 0)
    greedy = policy.argmax(axis=1)
    chosen = dense[np.arange(mdp.states), greedy]
    paid = mdp.reward_mean[np.arange(mdp.states), greedy]
    values = np.linalg.solve(np.eye(mdp.states) - mdp.discount * chosen, paid)
    advantage = mdp.reward_mean + mdp.discount * dense @ values - values[:, None]
    assert advantage[walking].max() < 1e-9
    assert values[0] > 0.4
    np.testing.assert_allclose(policy[walking].min(axis=1), epsilon / 4, atol=1e-15)
    np.testing.assert_allclose(policy[walking].max(axis=1), 1 - 0.75 * epsilon)


# Monte Carlo's variance over the limit: what there is to gain on this problem.
@pytest.mark.parametrize(
    ("size", "epsilon", "gain"),
    [(4, 0.05, 1.59), (4, 0.2, 1.73), (4, 0.5, 2.79), (8, 0.2, 1.49), (8, 0.5, 3.11)],
)
def test_what_there_is_to_gain(size: int, epsilon: float, gain: float) -> None:
    problem = lake(size, epsilon=epsilon)
    limit = optimal_flow(problem.mdp, problem.policy, tolerance=5e-3).limit
    assert return_variance(problem.mdp, problem.policy) / limit == pytest.approx(gain, rel=0.01)


def test_options() -> None:
    problem = lake(4, epsilon=1.0, horizon=7, discount=0.9)
    assert (problem.mdp.horizon, problem.mdp.discount) == (7, 0.9)
    assert np.all(problem.policy[0] == 0.25)
    assert problem.policy[15].tolist() == [1.0, 0.0, 0.0, 0.0]
    with pytest.raises(InputError, match="size is 5; there are lakes of size 4 and 8"):
        lake(5)
    with pytest.raises(InputError, match="epsilon is 2"):
        lake(4, epsilon=2)
    with pytest.raises(InputError, match="horizon is 0"):
        lake(4, horizon=0)

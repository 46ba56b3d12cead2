"""Models read from Gymnasium's tables, and played as environments, against Gymnasium itself."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import revar
from revar.errors import InputError


def value_from_the_table(env: Any, policy: Any, horizon: int, discount: float) -> float:
    """The value by the plainest recursion on Gymnasium's own table."""
    table = env.unwrapped.P
    values = np.zeros(len(table))
    for _ in range(horizon):
        values = np.array(
            [
                sum(
                    policy[s][a] * p * (reward + discount * values[successor] * (not ended))
                    for a in table[s]
                    for p, successor, reward, ended in table[s][a]
                )
                for s in table
            ]
        )
    return float(env.unwrapped.initial_state_distrib @ values)


@pytest.mark.parametrize(
    ("name", "options", "horizon"),
    [
        ("FrozenLake-v1", {}, None),
        ("FrozenLake-v1", {"map_name": "8x8"}, 50),
        ("CliffWalking-v1", {}, 30),
        ("Taxi-v4", {}, 20),
    ],
)
def test_the_value_is_that_of_gymnasiums_table(
    name: str, options: dict[str, Any], horizon: int | None
) -> None:
    env = gymnasium.make(name, **options)
    mdp = revar.from_gymnasium(env, horizon=horizon, discount=0.97)
    assert mdp.horizon == (horizon or 100)
    assert mdp.rewards_depend_on_outcome
    policy = np.random.default_rng(0).dirichlet(np.ones(mdp.actions), mdp.states)
    expected = value_from_the_table(env, policy, mdp.horizon, 0.97)
    assert revar.policy_value(mdp, policy) == pytest.approx(expected, rel=1e-10)


def test_ends_with_different_rewards_keep_their_law() -> None:
    """Beside the goal of the 8x8 lake lies a hole: the end pays 1 or 0."""
    mdp = revar.from_gymnasium(gymnasium.make("FrozenLake8x8-v1"))
    assert mdp.reward_law == "bernoulli"
    assert mdp.horizon == 200
    four = revar.from_gymnasium("FrozenLake-v1")
    assert four.reward_law == "deterministic"


def test_repeated_successors_are_summed() -> None:
    mdp = revar.from_gymnasium("FrozenLake-v1")
    # In the top left corner, moving left slips up, left or down: two of three stay.
    row = mdp.transitions[[0], :].toarray()[0]
    assert row[0] == pytest.approx(2 / 3)
    assert row[4] == pytest.approx(1 / 3)


@pytest.mark.parametrize("problem_id", ["tree", "gridworld", "bandit", "riverswim"])
def test_models_pass_gymnasiums_own_check(problem_id: str) -> None:
    check_env(revar.to_gymnasium(revar.find_problem(problem_id).mdp), skip_render_check=True)


def test_a_model_that_is_played_has_the_models_value() -> None:
    grid = revar.find_problem("gridworld")
    env = revar.to_gymnasium(grid.mdp)
    rng = np.random.default_rng(0)
    returns = []
    state, _ = env.reset(seed=4)
    for _ in range(4000):
        total = 0.0
        while True:
            state, reward, terminated, truncated, _ = env.step(rng.choice(4, p=grid.policy[state]))
            total += reward
            if terminated or truncated:
                break
        returns.append(total)
        state, _ = env.reset()
    error = np.std(returns) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - revar.policy_value(grid.mdp, grid.policy)) < 4 * error


@pytest.mark.parametrize("action", [-1, 4, 99])
def test_a_played_model_refuses_actions_that_it_does_not_have(action: int) -> None:
    env = revar.to_gymnasium(revar.from_gymnasium("FrozenLake-v1"))
    env.reset(seed=0)
    with pytest.raises(InputError, match=f"action {action} does not exist; there are 4"):
        env.step(action)


def test_options_and_what_the_table_does_not_know() -> None:
    large = revar.from_gymnasium("FrozenLake-v1", env_options={"map_name": "8x8"})
    assert large.states == 64
    with pytest.raises(InputError, match="has a fickle passenger, of whom its transition table"):
        revar.from_gymnasium(gymnasium.make("Taxi-v4", fickle_passenger=True))
    rainy = revar.from_gymnasium("Taxi-v4", env_options={"is_rainy": True})
    assert rainy.states == 500


def test_what_has_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="CartPoleEnv has no transition table P"):
        revar.from_gymnasium(gymnasium.make("CartPole-v1"))
    with pytest.raises(InputError, match=r"CliffWalking-v1 has no time limit.*give horizon="):
        revar.from_gymnasium(gymnasium.make("CliffWalking-v1"))
    env = gymnasium.make("FrozenLake-v1").unwrapped
    del env.initial_state_distrib  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="does not state the distribution of its first state"):
        revar.from_gymnasium(env, horizon=5)
    uniform = np.full(16, 1 / 16)
    assert revar.from_gymnasium(env, horizon=5, initial=uniform).initial.tolist() == [1 / 16] * 16

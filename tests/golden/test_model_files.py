"""Files written by the first release stay readable, to the last bit, for ever."""

from pathlib import Path

import numpy as np

from revar import load_mdp

HERE = Path(__file__).parent

# Row s*2 + a. What is missing to 1 ends the episode; a row of zeros ends it for sure.
TRANSITIONS = [
    [0.0, 0.25, 0.5],
    [0.0, 0.0, 1 / 3],
    [0.1, 0.2, 0.7],
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0],
]


def test_format_1_with_rewards_by_pair() -> None:
    mdp = load_mdp(HERE / "model_format_1.npz")
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.discount) == (3, 2, 5, 0.9)
    assert mdp.reward_law == "uniform"
    assert mdp.transitions.toarray().tolist() == TRANSITIONS
    assert mdp.initial.tolist() == [0.75, 0.25, 0.0]
    assert not mdp.rewards_depend_on_outcome
    assert mdp.reward_mean.tolist() == [[0.1, -2.0], [1e9, 3.0], [0.0, 1 / 3]]
    assert mdp.reward_std.tolist() == [[0.5, 0.0], [1e-3, 2.0], [1.0, 7.0]]


def test_format_1_with_rewards_by_outcome() -> None:
    mdp = load_mdp(HERE / "model_format_1_outcome_rewards.npz")
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.discount) == (3, 2, 5, 0.9)
    assert mdp.reward_law == "two-point"
    assert mdp.transitions.toarray().tolist() == TRANSITIONS
    assert mdp.initial.tolist() == [0.75, 0.25, 0.0]
    assert mdp.rewards_depend_on_outcome
    assert mdp.outcomes.row_start.tolist() == [0, 3, 5, 8, 9, 10, 11]
    assert mdp.outcomes.successor.tolist() == [1, 2, 3, 2, 3, 0, 1, 2, 3, 3, 3]
    assert mdp.outcomes.probability.tolist() == [
        *(0.25, 0.5, 0.25),
        *(1 / 3, 1 - 1 / 3),
        *(0.1, 0.2, 0.7),
        *(1.0, 1.0, 1.0),
    ]
    assert mdp.outcome_reward_mean.tolist() == [
        *(1.0, -1.0, 0.1),
        *(2.5, 1 / 3),
        *(4.0, 5.0, 6.0),
        *(-0.7, 8.0, -8.0),
    ]
    assert mdp.outcome_reward_std.tolist() == [
        *(0.25, 0.5, 2.0),
        *(0.0, 0.0),
        *(1e-3, 0.0, 3.0),
        *(0.0, 0.0, 0.1),
    ]
    # Moments of a pair follow from its outcomes: 0.1*4 + 0.2*5 + 0.7*6 and so on.
    np.testing.assert_allclose(
        mdp.reward_mean,
        [[-0.225, 2.5 / 3 + (1 - 1 / 3) / 3], [5.6, -0.7], [8.0, -8.0]],
        rtol=1e-15,
    )

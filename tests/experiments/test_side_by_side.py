"""Episodes played at once in NumPy follow Gymnasium's dynamics."""

import gymnasium
import numpy as np
import pytest
from benchmarks.side_by_side import SYSTEMS, play_side_by_side

from revar.experiments.critics import load_critic_study


@pytest.mark.parametrize("name", SYSTEMS)
def test_steps_are_those_of_gymnasium(name: str) -> None:
    system, env = SYSTEMS[name], gymnasium.make(name).unwrapped
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    states = 4.0 * system.first(40, rng)
    actions = rng.integers(2, size=40) if name == "CartPole-v1" else rng.uniform(-3, 3, 40)
    after, rewards, over = system.step(states, actions)
    for i in range(40):
        env.state = states[i].copy()  # type: ignore[attr-defined]
        taken = int(actions[i]) if name == "CartPole-v1" else actions[i : i + 1]
        seen, reward, terminated, _, _ = env.step(taken)
        assert system.observe(after)[i] == pytest.approx(seen, abs=1e-6)
        assert rewards[i] == pytest.approx(float(reward), abs=1e-12)
        assert over[i] == terminated
        if terminated:
            env.reset()


@pytest.mark.parametrize("number", [0, 5, 6])
def test_episodes_are_whole(number: int) -> None:
    problem = load_critic_study().problems[number]
    played = play_side_by_side(problem, 12, 30, np.random.default_rng(1))
    assert played.start.size == 13 and played.resets.shape[0] == 30
    assert played.rewards.size == played.start[-1] == played.elapsed.size
    assert np.diff(played.start).max() <= problem.horizon
    assert np.all(played.elapsed[played.start[:-1]] == 0.0)
    assert played.scores.shape[1] == played.law.score_width

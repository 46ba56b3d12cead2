"""Policies that are asked once for all episodes that run side by side."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.environments.spaces import layout_of
from revar.errors import InputError
from revar.policies.sampled import sampled_policy
from tests.evaluation.returns import worlds

SEEN = spaces.Box(-1.0, 1.0, (2,), np.float64)
OBSERVATIONS = [np.array([0.2, -0.4]), np.array([0.9, 0.1]), np.array([-0.5, 0.5])]


def row(observation: Any, count: int) -> Any:
    weights = np.exp(np.outer(observation[..., 0], np.arange(count)))
    return (weights / weights.sum(axis=-1, keepdims=True)).reshape(*observation.shape[:-1], count)


def one_of_three(observation: Any) -> Any:
    return row(observation, 3)


def two_numbers(observation: Any) -> Any:
    return [row(observation, 2), row(observation, 3)]


def bits(observation: Any) -> Any:
    return np.stack([0.5 + observation[..., 0] / 3, 0.5 - observation[..., 1] / 3], axis=-1)


def named(observation: Any) -> Any:
    return {"gear": row(observation, 4), "lights": bits(observation)}


def both(observation: Any) -> Any:
    return one_of_three(observation), two_numbers(observation)


SPACES = {
    one_of_three: spaces.Discrete(3, start=5),
    two_numbers: spaces.MultiDiscrete([2, 3]),
    bits: spaces.MultiBinary(2),
    named: spaces.Dict({"gear": spaces.Discrete(4), "lights": spaces.MultiBinary(2)}),
    both: spaces.Tuple([spaces.Discrete(3), spaces.MultiDiscrete([2, 3])]),
}


class Batched:
    """A function that says that it takes observations side by side, and counts."""

    batched = True

    def __init__(self, function: Any) -> None:
        self.function = function
        self.asked = 0

    def __call__(self, observations: Any) -> Any:
        self.asked += 1
        return self.function(observations)


def draw(policy: Any, actions: Any) -> Any:
    made = sampled_policy(policy, layout_of(SEEN), layout_of(actions, "action"))
    return made.draw(OBSERVATIONS, [np.random.default_rng(i) for i in range(3)])


@pytest.mark.parametrize("function", SPACES)
def test_probabilities_side_by_side_are_those_one_by_one(function: Any) -> None:
    batched = Batched(function)
    alone, together = draw(function, SPACES[function]), draw(batched, SPACES[function])
    assert batched.asked == 1
    assert np.allclose(np.array(alone.noise), np.array(together.noise), rtol=0, atol=1e-12)
    assert np.array_equal(np.array(alone.rows), np.array(together.rows))
    for action in together.actions:
        assert SPACES[function].contains(action) or isinstance(action, int)


@pytest.mark.parametrize("parts", [2, 3, 4])  # there are 3 observations
def test_actions_with_parts_are_read_by_rows(parts: int) -> None:
    actions = spaces.MultiDiscrete([5] * parts)

    def take(seen: Any) -> Any:
        return (10 * (seen[..., :1] + 0.6)).astype(int) % (2 + np.arange(parts))

    found = draw(Batched(take), actions)
    assert np.array_equal(found.rows, [take(seen) for seen in OBSERVATIONS])
    for answer in (lambda seen: take(seen).T, lambda seen: list(take(seen).T)):
        if parts != 3 or isinstance(answer(np.array(OBSERVATIONS)), list):
            with pytest.raises(InputError, match=rf"are an array of shape \(3, {parts}\)"):
                draw(Batched(answer), actions)


def test_best_actions_and_samples() -> None:
    box = spaces.Box(-1.0, 1.0, (1,), np.float64)
    pushes = Batched(lambda seen: -seen[..., :1])
    found = draw(revar.DeterministicPolicy(pushes, batched=True), box)
    assert pushes.asked == 1
    assert np.allclose(np.concatenate(found.actions), [-0.2, -0.9, 0.5])

    class Drawn:
        asked = 0

        def sample_batch(self, seen: Any, rngs: Any) -> Any:
            self.asked += 1
            noise = np.array([rng.standard_normal(1) for rng in rngs])
            return np.clip(0.1 * noise - seen[:, :1], -1, 1), noise

    drawn = Drawn()
    again = draw(drawn, box)
    assert drawn.asked == 1 and len(again.noise) == 3
    first = np.random.default_rng(1).standard_normal(1)
    assert again.noise[1] == first and again.actions[1] == np.clip(0.1 * first - 0.9, -1, 1)

    class Model:
        batched = True

        def predict(self, seen: Any, deterministic: bool = False) -> Any:
            return (seen[:, 0] > 0).astype(int), None

    assert draw(Model(), spaces.Discrete(2)).actions == [1, 1, 0]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda seen: row(seen, 3)[0], "the policy gives 3 probabilities|no row of prob"),
        (lambda seen: row(seen, 3)[:2], "the policy gives 2 rows for 3 observations side by side"),
        (lambda seen: 0.5, "the policy gives 0.5 for 3 observations side by side"),
        (lambda seen: 1 / 0, "the policy raised ZeroDivisionError"),
    ],
)
def test_answers_of_another_length_are_refused(function: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        draw(Batched(function), spaces.Discrete(3))


def test_an_evaluation_asks_once_a_step_and_gives_the_same() -> None:
    def steer(seen: Any) -> Any:
        right = 1.0 / (1.0 + np.exp(3.0 * seen[..., 0]))
        return np.stack([1.0 - right, right], axis=-1)

    batched = Batched(steer)
    options: dict[str, Any] = {"episodes": 12, "seed": 3, "method": "mean"}
    alone = revar.evaluate(worlds.make, worlds.steer, **options)
    together = revar.evaluate(worlds.make, batched, **options, environments=4)
    assert together.value == pytest.approx(alone.value)
    assert batched.asked < alone.steps / 3 + worlds.HORIZON


def test_a_table_asks_one_by_one() -> None:
    def right(seen: Any) -> Any:
        return np.tile([0.1, 0.3, 0.5, 0.1], (len(seen), 1))

    lake = gymnasium.make("FrozenLake-v1")
    alone = revar.evaluate(lake, lambda seen: [0.1, 0.3, 0.5, 0.1], episodes=20, seed=0)
    assert revar.evaluate(lake, Batched(right), episodes=20, seed=0).value == alone.value

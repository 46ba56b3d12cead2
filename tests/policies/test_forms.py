"""Target policies in all their forms."""

import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.environments.observations import make_encoding
from revar.errors import InputError
from revar.evaluation.target_policies import TargetPolicy
from revar.policies.forms import load_policy
from tests.environments.custom import Corridor
from tests.evaluation.returns import worlds

TABLE = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])


def table_policy(observation: Any) -> Any:
    return TABLE[observation]


class Predictor:
    """What a trained model of Stable-Baselines3 looks like from outside."""

    class policy:  # noqa: N801 - an attribute of that name
        @staticmethod
        def obs_to_tensor(observation: Any) -> tuple[Any, bool]:
            return np.asarray(observation), False

        @staticmethod
        def get_distribution(tensor: Any) -> Any:
            class Found:
                class distribution:  # noqa: N801
                    probs = TABLE[int(tensor)][None].astype(np.float32)

            return Found

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        assert deterministic
        return np.array([int(np.argmax(TABLE[observation]))]), None


def target(policy: Any) -> TargetPolicy:
    return TargetPolicy(policy, make_encoding(Corridor(3).observation_space), 2)


def test_tables_functions_and_files_are_the_same_policy(tmp_path: Path) -> None:
    np.save(tmp_path / "policy.npy", TABLE)
    np.savez(tmp_path / "policy.npz", policy=TABLE, other=np.zeros(2))
    np.savez(tmp_path / "single.npz", TABLE)
    forms: list[Any] = [
        TABLE,
        TABLE.tolist(),
        table_policy,
        str(tmp_path / "policy.npy"),
        tmp_path / "policy.npz",
        tmp_path / "single.npz",
        "tests.policies.test_forms:table_policy",
        "tests.policies.test_forms:TABLE",
    ]
    for form in forms:
        asked = target(form)
        assert [asked(state).tolist() for state in range(3)] == TABLE.tolist()


def test_a_policy_is_asked_once_for_every_state() -> None:
    asked = []

    def policy(observation: Any) -> Any:
        asked.append(observation)
        return [0.5, 0.5]

    revar.evaluate(Corridor(3), policy, episodes=40, horizon=9, seed=0)
    assert sorted(asked) == [0, 1, 2]


def test_uniform_and_epsilon_greedy() -> None:
    assert target("uniform")(0).tolist() == [0.5, 0.5]
    assert np.asarray(revar.uniform_policy(4)(None)).tolist() == [0.25] * 4
    forms: list[Any] = [TABLE, table_policy, lambda seen: int(np.argmax(TABLE[seen]))]
    for form in forms:
        greedy = revar.epsilon_greedy(form, 0.1, 2)
        rows = np.array([greedy(state) for state in range(3)])
        assert np.allclose(rows, [[0.05, 0.95], [0.95, 0.05], [0.95, 0.05]])
    with pytest.raises(InputError, match=r"epsilon is 1\.5"):
        revar.epsilon_greedy(TABLE, 1.5, 2)
    with pytest.raises(InputError, match="the greedy action is 7; there are 2 actions"):
        revar.epsilon_greedy(lambda seen: 7, 0.1, 2)(0)


def test_an_answer_may_be_overwritten_by_the_next_one() -> None:
    room = np.zeros(2)

    def reused(observation: Any) -> Any:
        room[:] = TABLE[observation]
        return room

    asked = target(reused)
    for _ in range(2):
        assert [asked(state).tolist() for state in range(3)] == TABLE.tolist()


@pytest.mark.parametrize(
    ("space", "first"),
    [
        (spaces.Discrete(3, start=-1), (-1, 0, 1)),
        (spaces.Discrete(3, start=1), (1, 2, 3)),
        (spaces.MultiDiscrete([3]), ((0,), (1,), (2,))),
        (spaces.Dict({"a": spaces.Discrete(3)}), ((0,), (1,), (2,))),
    ],
)
def test_softened_arrays_are_looked_up_as_arrays_are(
    space: gymnasium.Space[Any], first: tuple[Any, ...]
) -> None:
    observations = make_encoding(space)
    for form in (TABLE, TABLE.tolist(), np.array([1, 0, 0])):
        soft = TargetPolicy(revar.epsilon_greedy(form, 0.1, 2), observations, 2)
        rows = np.array([soft(state) for state in first])
        assert np.allclose(rows, [[0.05, 0.95], [0.95, 0.05], [0.95, 0.05]])


def test_what_cannot_be_softened_is_refused() -> None:
    assert revar.epsilon_greedy(lambda seen: [3.0], 0.1, 1)(0).tolist() == [1.0]
    for answer, message in [
        ([np.nan, 0.5], "the policy gives NaN at observation 0"),
        (np.nan, "the policy gives NaN at observation 0"),
        (1.7, "the greedy action is 1.7; there are 2 actions"),
        ([0.1, 0.2, 0.7], "gives 3 numbers at observation 0; there are 2 actions"),
        ("left", "what the policy answers is not an array of numbers"),
    ]:
        with pytest.raises(InputError, match=message):
            revar.epsilon_greedy(lambda seen, answer=answer: answer, 0.1, 2)(0)
    for table, place in (([[0.5, np.nan]], "[0, 1]"), ([0.0, np.nan], "[1]")):
        with pytest.raises(InputError, match=re.escape(f"policy{place} is NaN")):
            revar.epsilon_greedy(table, 0.1, 2)
    with pytest.raises(InputError, match="the greedy action is 2"):
        revar.epsilon_greedy([0, 2], 0.1, 2)


def test_a_trained_model() -> None:
    asked = target(Predictor())
    assert [asked(state).tolist() for state in range(3)] == [[0, 1], [1, 0], [1, 0]]
    soft = target(revar.policy_from_predictor(Predictor(), 2, epsilon=0.2))
    assert soft(0).tolist() == pytest.approx([0.1, 0.9])
    drawn = target(revar.policy_from_predictor(Predictor(), 2, deterministic=False))
    assert drawn(0).tolist() == pytest.approx([0.2, 0.8])
    both = target(revar.policy_from_predictor(Predictor(), 2, epsilon=0.5, deterministic=False))
    assert both(0).tolist() == pytest.approx([0.35, 0.65])
    with pytest.raises(InputError, match="has no method predict"):
        revar.policy_from_predictor(3, 2)


def test_policies_by_name_are_checked(tmp_path: Path) -> None:
    (tmp_path / "bad.npy").write_text("no array")
    np.savez(tmp_path / "many.npz", a=TABLE, b=TABLE)
    for name, message in [
        ("none", "policy 'none' is not known"),
        (str(tmp_path / "missing.npy"), "no such file"),
        (str(tmp_path / "bad.npy"), "holds no array"),
        (str(tmp_path / "many.npz"), "the policy must be called 'policy'"),
        ("no.module:policy", "cannot import"),
    ]:
        with pytest.raises(InputError, match=message):
            load_policy(name)
    assert np.asarray(load_policy(str_of_table(), 0.5, 2)(0)).tolist() == [0.25, 0.75]
    with pytest.raises(InputError, match="epsilon= needs a policy that prefers an action"):
        load_policy("uniform", 0.5, 2)


def str_of_table() -> str:
    return "tests.policies.test_forms:TABLE"


class Remembering:
    """Its actions depend on how often it was asked, as its state tells."""

    def predict(self, observation: Any, state: Any = None, deterministic: bool = False) -> Any:
        count = 0 if state is None else state
        return np.int64(count % 2), count + 1


def test_a_model_that_keeps_a_state_is_refused() -> None:
    sentence = "predict of Remembering gives an int as its state: it is recurrent"
    with pytest.raises(InputError, match=sentence) as refused:
        worlds.evaluate(policy=Remembering(), method="mean")
    assert isinstance(refused.value, revar.EvaluationError) and refused.value.result is None
    with pytest.raises(InputError, match=sentence):
        target(revar.policy_from_predictor(Remembering(), 2))(0)

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from revar import TabularMDP, load_mdp, save_mdp
from revar.errors import InputError
from revar.problems import problems
from tests.model.test_mdp import same_model
from tests.plain_model import MODELS


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_mdp(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def saved_content(mdp: TabularMDP, path: Path) -> dict[str, Any]:
    """The arrays of a saved model, to be changed and written again."""
    save_mdp(mdp, path)
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000), st.booleans())
def test_models_come_back_exactly(tmp_path: Path, kind: str, seed: int, by_outcome: bool) -> None:
    mdp = MODELS[kind](seed, by_outcome=by_outcome).mdp()
    save_mdp(mdp, tmp_path / "model.npz")
    assert same_model(load_mdp(tmp_path / "model.npz"), mdp)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_extreme_numbers_come_back_exactly(tmp_path: Path, data: st.DataObject) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False)
    by_outcome = data.draw(st.booleans())
    size = 6 if by_outcome else 2
    mean = data.draw(st.lists(finite, min_size=size, max_size=size))
    chance = data.draw(st.lists(st.floats(0.0, 0.5), min_size=4, max_size=4))
    shape = (2, 1, 3) if by_outcome else (2, 1)
    if by_outcome:  # squares of deviations from the pair's mean must stay finite
        mean = [x / 1e160 for x in mean]
    mdp = TabularMDP(
        np.reshape(chance, (2, 1, 2)),
        np.reshape(mean, shape),
        0.0,
        [1 / 3, 2 / 3],
        data.draw(st.integers(1, 10**12)),
        data.draw(st.floats(0.0, 1.0)),
        reward_law="deterministic",
    )
    save_mdp(mdp, tmp_path / "model.npz")
    assert same_model(load_mdp(tmp_path / "model.npz"), mdp)


@pytest.mark.parametrize("problem_id", problems.ids())
@pytest.mark.parametrize("law", ["normal", "two-point", "uniform"])
def test_every_problem_comes_back_exactly(tmp_path: Path, problem_id: str, law: str) -> None:
    mdp = problems.find(problem_id)(reward_law=law).mdp
    save_mdp(mdp, str(tmp_path / "model.npz"))
    assert same_model(load_mdp(str(tmp_path / "model.npz")), mdp)


def test_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.npz") == f"{tmp_path / 'none.npz'}: no such file"


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 neither"])
def test_files_that_are_no_archives(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    assert "is not a model saved by revar" in refusal(path)


def test_files_of_other_programs(tmp_path: Path) -> None:
    array = tmp_path / "array.npy"
    np.save(array, np.ones(3))
    assert "is not a model saved by revar" in refusal(array)
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, initial=np.ones(1))
    assert refusal(arrays).endswith("is not a model saved by revar (its format field is missing)")
    pickled = tmp_path / "model.pickle"
    pickled.write_bytes(pickle.dumps({"format": "revar.TabularMDP", "version": 1}))
    assert "is not a model saved by revar" in refusal(pickled)
    assert "is not a model saved by revar" in refusal(tmp_path)


@pytest.mark.parametrize("version", [0, 2, "one"])
def test_other_versions_are_named(tmp_path: Path, version: Any) -> None:
    path = tmp_path / "model.npz"
    content = saved_content(problems.find("bandit")().mdp, path)
    np.savez(path, **{**content, "version": version})
    assert refusal(path) == f"{path} has model format {version}; this revar reads format 1"


class Bomb:
    """Unpickling this would run code of the file's choosing."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("a pickle was loaded",)


@pytest.mark.parametrize("field", ["format", "reward_mean", "extra"])
def test_pickled_objects_are_never_loaded(tmp_path: Path, field: str) -> None:
    path = tmp_path / "model.npz"
    content = saved_content(problems.find("bandit")().mdp, path)
    content[field] = np.array([Bomb()], dtype=object)
    np.savez(path, **content)
    assert "Object arrays cannot be loaded" in refusal(path)


def model_with_outcome_rewards() -> TabularMDP:
    return MODELS["general"](1, by_outcome=True).mdp()


@pytest.mark.parametrize("by_outcome", [False, True])
def test_missing_fields_are_named(tmp_path: Path, by_outcome: bool) -> None:
    path = tmp_path / "model.npz"
    mdp = MODELS["general"](1, by_outcome=by_outcome).mdp()
    content = saved_content(mdp, path)
    for field in content:
        if field in ("format", "version"):
            continue
        np.savez(path, **{name: array for name, array in content.items() if name != field})
        message = refusal(path)
        if field != "reward_mean":  # without it the other form of rewards is expected
            assert message == f"{path} is incomplete: it has no '{field}'"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("successor", np.array([99, 99, 99])),
        ("successor", np.array([-1, 0, 0])),
        ("successor", np.array([0])),
        ("row_start", np.array([0, 2, 1, 3, 3])),
        ("row_start", np.array([0])),
        ("probability", np.array([2.0, 0.5, 0.5])),
        ("probability", np.array([0.5, np.nan, 0.5])),
        ("initial", np.array([0.5, 0.25])),
        ("initial", np.array(1.0)),
        ("horizon", 0),
        ("horizon", np.array([1, 2])),
        ("discount", 1.5),
        ("reward_law", "cauchy"),
        ("reward_mean", np.zeros(3)),
        ("reward_std", np.full((2, 2), -1.0)),
    ],
)
def test_contents_are_checked_like_any_other_input(tmp_path: Path, field: str, value: Any) -> None:
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 0.5
    transitions[1, 0, 0] = 0.5
    path = tmp_path / "model.npz"
    content = saved_content(TabularMDP(transitions, 0.0, 1.0, [1.0, 0.0], 3), path)
    assert content["probability"].size == 3
    np.savez(path, **{**content, field: value})
    assert refusal(path).startswith(f"{path} does not hold a valid model: ")


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_mdp(model_with_outcome_rewards(), path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        assert "is not a model saved by revar" in refusal(path)


def test_damage_never_changes_a_model_silently(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    mdp = problems.find("tree")(2).mdp
    save_mdp(mdp, path)
    whole = path.read_bytes()
    outcomes: Counter[str] = Counter()
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            loaded = load_mdp(path)
        except InputError:
            outcomes["refused"] += 1
        else:  # dates and the like, which carry nothing of the model
            assert same_model(loaded, mdp)
            outcomes["unharmed"] += 1
    assert outcomes["refused"] > outcomes["unharmed"] > 0

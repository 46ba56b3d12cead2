"""Episodes of any observations on disk."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.datasets import Conditions, load_collected
from revar.datasets import episodes as files
from revar.errors import InputError
from revar.model.episodes import Episodes
from revar.model.law import Categorical, Law, Normal
from tests.evaluation.returns import worlds

SUFFIXES = [".npz", ".parquet"]


def some_episodes(count: int = 5, kind: str = "f4", law: Law | None = None) -> Episodes:
    rng = np.random.default_rng(0)
    law = Law((Categorical(2), Normal(1))) if law is None else law
    lengths = rng.integers(1, 6, size=count)
    steps = int(lengths.sum())
    return Episodes(
        start=np.concatenate([[0], np.cumsum(lengths)]),
        observations=(100 * rng.random((steps, 3))).astype(kind),
        final_observations=(100 * rng.random((count, 3))).astype(kind),
        actions=rng.integers(2, size=(steps, 2)),
        rewards=rng.standard_normal(steps),
        terminated=rng.random(count) < 0.5,
        noise=rng.random((steps, law.noise_width)),
        law=law,
        observation_space='{"box": [3]}',
        numbers=np.arange(count) + 7,
        features=rng.random((steps, 4)),
        amounts={"cost of fuel": rng.random(steps)},
    )


def same(one: Any, other: Any) -> bool:
    for name in vars(one):
        first, second = getattr(one, name), getattr(other, name)
        if isinstance(first, np.ndarray):
            if first.dtype != second.dtype or not np.array_equal(first, second):
                return False
        elif name == "amounts":
            if list(first) != list(second):
                return False
            if not all(np.array_equal(first[key], second[key]) for key in first):
                return False
        elif first != second:
            return False
    return True


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["f4", "f8", "u1", "i8"])
def test_saved_and_loaded_to_the_bit(
    suffix: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE_BYTES", 60)  # several row groups
    path = tmp_path / f"data{suffix}"
    terms = Conditions("pole", "flow", 9, 0.9, 3, 50, method="critic")
    revar.save_dataset(some_episodes(kind=kind), path, conditions=terms)
    loaded, conditions = load_collected(path)
    assert same(loaded, some_episodes(kind=kind))
    assert conditions == terms
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [0, 1])
def test_little_is_stored_as_well(suffix: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    bare = replace(
        some_episodes(count, law=Law()), numbers=None, features=None, amounts={}, law=Law()
    )
    revar.save_dataset(bare, path)
    assert same(revar.load_dataset(path), bare)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_appended(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    revar.append_dataset(some_episodes().part(0, 2), path)
    every = revar.append_dataset(some_episodes().part(2, 5), path)
    assert same(every, some_episodes())
    assert same(revar.load_dataset(path), some_episodes())


def test_states_and_observations_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    states = revar.Dataset.of([revar.Trajectory.of([0], [0], [1.0])])
    revar.save_dataset(states, path)
    with pytest.raises(InputError, match="cannot be merged"):
        revar.append_dataset(some_episodes(), path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    revar.save_dataset(some_episodes(), path)
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    content["rewards"][3] = np.nan
    np.savez(path, **content)
    with pytest.raises(InputError, match=r"data\.npz does not hold a valid dataset: .*step 3"):
        revar.load_dataset(path)
    np.savez(path, **{**content, "version": "9"})
    with pytest.raises(InputError, match="has dataset format 9; this revar reads format 1"):
        revar.load_dataset(path)


@pytest.mark.parametrize("pushes", [False, True])
def test_through_minari(pushes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = worlds.make(pushes=pushes)
    policy = worlds.gaussian() if pushes else worlds.steer
    found = revar.evaluate(env, policy, episodes=4, method="mean", seed=0).dataset
    revar.to_minari(found, "drift/steer-v0", env)
    again = revar.from_minari("drift/steer-v0")
    assert same(replace(found, numbers=None), again)
    with pytest.raises(InputError, match="actions of the episodes are"):
        revar.to_minari(found, "drift/other-v0", worlds.make(pushes=not pushes))


class _Unsorted(gymnasium.Env[Any, Any]):
    """Parts that were not named in the order of the alphabet."""

    observation_space = spaces.Dict(place=spaces.Box(0.0, 1.0, (2,)), kind=spaces.Discrete(4))
    action_space = spaces.Dict(turn=spaces.Discrete(3), go=spaces.MultiBinary(1))

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        super().reset(**options)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._seen(), float(action["turn"] - action["go"][0]), False, False, {}

    def _seen(self) -> Any:
        place = self.np_random.random(2).astype(np.float32)
        return {"place": place, "kind": int(self.np_random.integers(4))}


def test_parts_in_any_order_are_the_same_in_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))

    def policy(seen: Any) -> Any:
        return {"turn": [0.2, 0.3, 0.5], "go": [0.5 + 0.1 * seen["kind"]]}

    options: Any = {"episodes": 8, "horizon": 3, "resets": 16, "critics": ["linear"], "seed": 0}
    found = revar.evaluate(_Unsorted(), policy, **options)
    for suffix in SUFFIXES:
        revar.save_dataset(found.dataset, tmp_path / f"data{suffix}")
        assert same(revar.load_dataset(tmp_path / f"data{suffix}"), found.dataset)
    revar.to_minari(found.dataset, "drift/parts-v0", _Unsorted())
    again = revar.from_minari("drift/parts-v0")
    assert same(replace(found.dataset, numbers=None), again)
    seen = [
        [*place, kind == 0, kind == 1, kind == 2, kind == 3] for kind, *place in again.observations
    ]
    inputs = found.return_findings.experience.inputs
    assert np.array_equal(np.roll(inputs, 2, axis=1), seen)
    revar.evaluate(_Unsorted(), policy, prior=again, **{**options, "seed": 1})


def test_keys_that_minari_cannot_hold_are_refused_before_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    space = spaces.Dict({"arm": spaces.Dict({"left/speed": spaces.Discrete(3)})})
    env = worlds.make()
    env.observation_space = space  # type: ignore[assignment]
    with pytest.raises(InputError, match="key 'left/speed' has a '/'"):
        revar.to_minari(some_episodes(), "drift/arm-v0", env)
    amounts = {"m/s": np.zeros(some_episodes().steps)}
    with pytest.raises(InputError, match="amount 'm/s' has a '/'"):
        revar.to_minari(replace(some_episodes(), amounts=amounts), "drift/arm-v0", worlds.make())
    assert not list(tmp_path.iterdir())

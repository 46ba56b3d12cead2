from pathlib import Path

import numpy as np
import pytest

from revar.experiments.shards import ShardResult, play_shard, shards_of
from revar.experiments.store import ShardStore
from tests.experiments.test_shards import CELL

(SHARD,) = shards_of(CELL, 3)


@pytest.fixture(scope="module")
def result() -> ShardResult:
    return play_shard(SHARD, threads=1)


def assert_same(found: tuple[ShardResult, float] | None, result: ShardResult) -> None:
    assert found is not None
    assert found[1] == 1.5
    for field in ShardResult.__struct_fields__:
        one, other = getattr(found[0], field), getattr(result, field)
        np.testing.assert_array_equal(one, other, strict=True)


def test_what_is_stored_comes_back(tmp_path: Path, result: ShardResult) -> None:
    store = ShardStore(tmp_path / "shards")
    assert store.read(SHARD) is None
    store.write(SHARD, result, 1.5)
    assert_same(store.read(SHARD), result)
    assert [path.name for path in store.directory.iterdir()] == [SHARD.file_name()]


def test_whatever_is_cut_off_is_noticed(tmp_path: Path, result: ShardResult) -> None:
    store = ShardStore(tmp_path)
    store.write(SHARD, result, 1.5)
    path = tmp_path / SHARD.file_name()
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert store.read(SHARD) is None


def test_whatever_is_changed_is_noticed_or_without_effect(
    tmp_path: Path, result: ShardResult
) -> None:
    store = ShardStore(tmp_path)
    store.write(SHARD, result, 1.5)
    path = tmp_path / SHARD.file_name()
    whole = path.read_bytes()
    noticed = []
    for place in range(0, len(whole), 3):
        changed = whole[place] ^ (0x01 if place % 2 else 0xFF)
        path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
        found = store.read(SHARD)
        noticed.append(found is None)
        if found is not None:
            assert_same(found, result)
    assert np.mean(noticed) > 0.5


def test_other_arrays_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / SHARD.file_name()
    with path.open("wb") as file:
        np.savez_compressed(file, seconds=1.0, estimates=np.zeros(3))
    assert ShardStore(tmp_path).read(SHARD) is None


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    tmp_path: Path, result: ShardResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ShardStore(tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write(SHARD, result, 1.5)
    assert list(tmp_path.iterdir()) == []

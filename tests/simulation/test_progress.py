import threading

import pytest

from revar import simulate
from revar.problems import problems
from revar.strategies import ReducedVariance

TREE = problems.find("tree")()


@pytest.mark.parametrize(
    ("episodes", "runs", "threads", "compiled"),
    [
        (1, 1, 1, None),  # over before anyone looks
        (2000, 400, 1, None),
        (2000, 400, 2, None),
        (300, 8, 1, False),
    ],
)
def test_counts_grow_up_to_the_total(
    episodes: int, runs: int, threads: int, compiled: bool | None
) -> None:
    calls: list[tuple[int, int]] = []
    simulate(
        TREE.mdp,
        TREE.policy,
        "revar",
        episodes=episodes,
        runs=runs,
        checkpoints=[episodes],
        threads=threads,
        compiled=compiled,
        progress=lambda done, total: calls.append((done, total)),
    )
    done = [count for count, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (episodes * runs, episodes * runs)
    assert {total for _, total in calls} == {episodes * runs}


def test_progress_is_seen_on_the_way() -> None:
    calls: list[int] = []
    simulate(
        TREE.mdp,
        TREE.policy,
        ReducedVariance(),
        episodes=20_000,
        runs=200,
        checkpoints=[1],
        threads=1,
        progress=lambda done, total: calls.append(done),
    )
    between = [done for done in calls if 0 < done < 20_000 * 200]
    assert len(set(between)) >= 2


@pytest.mark.parametrize("compiled", [None, False])
def test_an_error_of_the_display_stops_the_runs(compiled: bool | None) -> None:
    def broken(done: int, total: int) -> None:
        raise RuntimeError("the display is gone")

    with pytest.raises(RuntimeError, match="the display is gone"):
        simulate(
            TREE.mdp,
            TREE.policy,
            "revar",
            episodes=100_000,
            runs=10_000,
            progress=broken,
            compiled=compiled,
        )
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("revar-")]

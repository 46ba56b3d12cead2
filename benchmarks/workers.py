"""What several workers gain with an environment that takes its time."""

import time
from typing import Any

import gymnasium

import revar
from benchmarks.registry import Cost, Ratio, benchmark

PAUSE = 0.005  # seconds a step
STEPS = 10
WORKERS = 8
REPEATS = 3


class Sleeping(gymnasium.Env[Any, Any]):
    """Episodes of STEPS steps, each of which blocks for PAUSE seconds."""

    observation_space = gymnasium.spaces.Discrete(STEPS + 1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin."""
        super().reset(seed=seed, options=options)
        self.place = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        """Sleep, and go on."""
        time.sleep(PAUSE)
        self.place += 1
        return self.place, float(action) + self.np_random.normal(), self.place == STEPS, False, {}


def seconds_per_step(episodes: int, **options: Any) -> float:
    """Elapsed seconds, without those before a quarter of the episodes was added: the start."""
    times: list[tuple[int, float]] = []
    revar.evaluate(
        Sleeping,
        "uniform",
        episodes=episodes,
        horizon=STEPS,
        seed=0,
        progress=lambda done, _: times.append((done, time.perf_counter())),
        **options,
    )
    first, began = next(entry for entry in times if entry[0] >= episodes // 4)
    last, ended = times[-1]
    return (ended - began) / ((last - first) * STEPS)


def _gain(engine: str) -> Ratio:
    # In turns, the best of each: a busy machine makes sleepers wait for their core.
    turns = [
        (seconds_per_step(60), seconds_per_step(480, workers=WORKERS, engine=engine))
        for _ in range(REPEATS)
    ]
    one, several = (min(column) for column in zip(*turns, strict=True))
    return Ratio(
        Cost("this process alone", one, "step"),
        Cost(f"{WORKERS} workers ({engine})", several, "step"),
        f"`revar.evaluate` with flow, {1000 * PAUSE:g} ms of sleep a step, {STEPS} steps an "
        f"episode; start-up not counted",
    )


@benchmark("one / 8 processes, steps of 5 ms", at_least=6.0)
def processes_beside_one() -> Ratio:
    """What processes gain where the environment blocks."""
    return _gain("processes")


@benchmark("one / 8 Ray actors, steps of 5 ms", at_least=6.0)
def actors_beside_one() -> Ratio:
    """What Ray gains where the environment blocks."""
    return _gain("ray")

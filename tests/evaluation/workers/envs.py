"""Environments that workers open: slow ones, ones that end their process, ones that raise."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from tests.environments.custom import Corridor

NAME = "tests.evaluation.workers.envs:"


class Sleepy(Corridor):
    """Sleeps in every step for as long as it likes; leaves a note that this process plays."""

    def __init__(self, notes: str | None = None) -> None:
        super().__init__(4)
        self.seconds = float(os.environ.get("SLEEPS", "0.004"))
        if notes is not None:
            (Path(notes) / str(os.getpid())).touch()

    def step(self, action: Any) -> Any:
        time.sleep(2.0 * random.random() * self.seconds)
        return super().step(action)


class Mortal(Corridor):
    """Kills its process in the episode of a seed: once, as the marker tells, or whenever."""

    def __init__(self, fatal: int, marker: str | None = None) -> None:
        super().__init__(4)
        self.fatal = fatal
        self.marker = None if marker is None else Path(marker)
        self.seeded: int | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.seeded = seed
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        if self.seeded == self.fatal and not (self.marker is not None and self.marker.exists()):
            if self.marker is not None:
                self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Raising(Mortal):
    """Raises in the episode of a seed, in its second step."""

    def step(self, action: Any) -> Any:
        if self.seeded == self.fatal and self.place > 0:
            raise RuntimeError("the simulator crashed")
        return Corridor.step(self, action)

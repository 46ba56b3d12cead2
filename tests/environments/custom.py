"""Small environments that tests shape to their needs."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Corridor(gymnasium.Env[Any, Any]):
    """Walk right (1) to the end, which pays 1; 0 stays. Every step costs a random amount."""

    def __init__(self, length: int = 3) -> None:
        self.observation_space = spaces.Discrete(length)
        self.action_space = spaces.Discrete(2)
        self.length = length
        self.place = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place += int(action)
        ended = self.place == self.length
        reward = float(ended) - float(self.np_random.random())
        return min(self.place, self.length - 1), reward, ended, False, {}


HALF = np.array([0.5, 0.5])


OBSERVED = ("observation", "between", "beyond")  # faults of what is observed


class Faulty(Corridor):
    """A corridor that does something wrong in step `when`, counted over all episodes."""

    def __init__(self, fault: str, when: int = 40) -> None:
        super().__init__()
        self.fault = fault
        self.when = when
        self.steps = 0
        self.resets: list[int | None] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        self.resets.append(seed)
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        seen, reward, ended, cut, info = super().step(action)
        if self.steps == self.when and ended and self.fault in OBSERVED:
            self.when += 1  # nobody looks at what is observed after the end
        elif self.steps == self.when:
            if self.fault == "nan":
                reward = float("nan")
            elif self.fault == "raise":
                raise RuntimeError("the simulator crashed")
            elif self.fault == "actions":
                self.action_space = spaces.Discrete(3)
            elif self.fault == "interrupt":
                raise KeyboardInterrupt
            elif self.fault == "observation":
                return "nowhere", reward, ended, cut, info  # type: ignore[return-value]
            elif self.fault == "between":
                return 1.5, reward, ended, cut, info  # type: ignore[return-value]
            elif self.fault == "beyond":
                return 99, reward, ended, cut, info
            elif self.fault == "huge":
                reward = 1e80
        return seen, reward, ended, cut, info


def energy(place: Any, action: Any) -> float:
    """What a step of `Priced` costs: more at the far end, and more to walk than to stay."""
    return 1.0 + 0.5 * float(place) + float(action)


class Priced(Corridor):
    """A corridor that reports what a step cost, but for step `silent`, and what it endangers."""

    def __init__(self, length: int = 3, silent: int = -1, odd: float | None = None) -> None:
        super().__init__(length)
        self.silent = silent
        self.odd = odd
        self.steps = 0

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        info = {"energy": energy(self.place, action), "risk": float(self.np_random.random() < 0.1)}
        seen, reward, ended, cut, _ = super().step(action)
        if self.steps == self.silent:
            info.pop("energy")
            if self.odd is not None:
                info["energy"] = self.odd
        return seen, reward, ended, cut, info

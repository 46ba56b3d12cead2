"""The little of Gymnasium that models are played with, for where it is not installed."""

import importlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import numpy as np

from revar.errors import require_extra

Observation = TypeVar("Observation")
Action = TypeVar("Action")


def known_spaces() -> Any:
    """Gymnasium's spaces; without it, the one that models have."""
    try:
        return importlib.import_module("gymnasium.spaces")
    except ImportError:
        return SPACES


@dataclass(frozen=True)
class Discrete:
    """The whole numbers from `start` on, `n` of them."""

    n: int
    start: int = 0

    def __repr__(self) -> str:
        return f"Discrete({self.n})"


class _Missing:
    """A space that only Gymnasium has."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        require_extra("gymnasium", "gym")


SPACES = SimpleNamespace(
    Discrete=Discrete,
    **{
        name: type(name, (_Missing,), {})
        for name in ("Box", "MultiDiscrete", "MultiBinary", "Tuple", "Dict")
    },
)


class Env(Generic[Observation, Action]):
    """An environment with a stream of its own, seeded as Gymnasium seeds it."""

    spec = None
    np_random: np.random.Generator

    @property
    def unwrapped(self) -> Any:
        """Itself: there are no wrappers."""
        return self

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Seed the stream, where a seed is given or there is none yet."""
        del options
        if seed is not None or not hasattr(self, "np_random"):
            self.np_random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))

    def close(self) -> None:
        """Nothing is open."""

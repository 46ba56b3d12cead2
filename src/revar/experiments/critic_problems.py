"""Policies in continuous environments, for the study of critics.

Softmax policies of a line through the observation, and networks and linear maps that were trained
once and are kept in `policies/`. All episodes are cut at a horizon of 200 steps or so, so that the
mean return of on-policy episodes is not already exact.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import msgspec
import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.policies.continuous import DeterministicPolicy, GaussianPolicy


class CriticProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An environment with a target policy, by name, and the value if it is known."""

    name: str
    environment: str  # Gymnasium's id
    policy: str  # one of POLICIES, with a file or a number after a colon
    horizon: int
    value: float | None = None  # from many episodes; None: the mean of all episodes of the study
    value_error: float = 0.0  # its standard error
    needs: str = ""  # the module that the environment is made with, where it is an extra

    @property
    def available(self) -> bool:
        """Whether the environment can be made here."""
        return not self.needs or find_spec(self.needs) is not None

    def build_policy(self) -> Any:
        """The target policy, as `evaluate` takes it."""
        kind, _, detail = self.policy.partition(":")
        if kind not in POLICIES:
            raise InputError(
                f"problem {self.name!r} has the policy {self.policy!r}; known are "
                f"{', '.join(POLICIES)}"
            )
        return POLICIES[kind](detail)


@dataclass(frozen=True)
class CartPoleLine:
    """Right with a probability that grows with how far the pole leans and falls to the right."""

    steepness: float

    def __call__(self, observation: FloatArray) -> FloatArray:
        """The probabilities of left and right."""
        place, speed, angle, turning = observation
        lean = angle + 0.5 * turning + 0.05 * place + 0.1 * speed
        right = 1.0 / (1.0 + np.exp(-self.steepness * lean))
        return np.array([1.0 - right, right])


@dataclass(frozen=True)
class AcrobotSwing:
    """Pushes the way the lower link turns, more often than not."""

    def __call__(self, observation: FloatArray) -> FloatArray:
        """The probabilities of the three torques."""
        return _softmax(0.6 * np.array([-1.0, 0.0, 1.0]) * np.tanh(observation[5]))


@dataclass(frozen=True)
class Network:
    """A trained network of two tanh layers; its outputs."""

    file: str

    def __call__(self, observation: FloatArray) -> FloatArray:
        """The outputs for an observation."""
        weights = _read(self.file)
        hidden = np.tanh(weights["W0"] @ observation + weights["b0"])
        hidden = np.tanh(weights["W1"] @ hidden + weights["b1"])
        return np.asarray(weights["W2"] @ hidden + weights["b2"])


@dataclass(frozen=True)
class SoftmaxNetwork:
    """A network whose outputs are the logarithms of probabilities, but for a constant."""

    network: Network

    def __call__(self, observation: FloatArray) -> FloatArray:
        """The probabilities of all actions."""
        return _softmax(self.network(observation))


@dataclass(frozen=True)
class LinearMap:
    """A linear map of the scaled observation."""

    file: str

    def __call__(self, observation: FloatArray) -> FloatArray:
        """The mean action."""
        weights = _read(self.file)
        return np.asarray(weights["W"] @ ((observation - weights["mu"]) / weights["sd"]))


@cache
def _read(file: str) -> dict[str, FloatArray]:
    source = files("revar.experiments").joinpath("policies", f"{file}.npz")
    with source.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float64) for name in stored.files}


def _linear(detail: str) -> GaussianPolicy:
    file, _, deviation = detail.partition(",")
    return GaussianPolicy(LinearMap(file), float(deviation))


POLICIES: dict[str, Any] = {
    "cartpole-line": lambda detail: CartPoleLine(float(detail)),
    "acrobot-swing": lambda _: AcrobotSwing(),
    "softmax-network": lambda file: SoftmaxNetwork(Network(file)),
    "normal-network": lambda file: GaussianPolicy(
        Network(file), np.exp(_read(file)["ls"].astype(np.float64))
    ),
    "network": lambda file: DeterministicPolicy(Network(file)),
    "linear": _linear,
}


def _softmax(numbers: FloatArray) -> FloatArray:
    powers = np.exp(numbers - numbers.max())
    return np.asarray(powers / powers.sum())

"""Models with the interface of Stable-Baselines3, and no PyTorch."""

from types import SimpleNamespace
from typing import Any

import numpy as np


class Tensor:
    """An array that has to be asked for in the way of tensors."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values, dtype=np.float32)

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> Any:
        return self._values


class Networks:
    """What `model.policy` offers; every network is linear in the flat observation."""

    def __init__(self, kind: str, space: Any) -> None:
        self.kind = kind
        self.space = space
        self.training = True
        self.asked: list[int] = []  # observations of each call

    def set_training_mode(self, mode: bool) -> None:
        self.training = mode

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        assert not self.training
        rows = np.asarray(observation, dtype=np.float64)
        self.asked.append(len(rows))
        return Tensor(rows.reshape(len(rows), -1)), True

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        assert deterministic
        sums = self.obs_to_tensor(observation)[0].numpy().sum(axis=1)
        if hasattr(self.space, "n"):
            return (sums > 0).astype(np.int64), None
        return np.stack([np.tanh(sums)] * self.space.shape[0], axis=1), None


class OnPolicy(Networks):
    """PPO and A2C: a distribution."""

    def get_distribution(self, tensor: Any) -> Any:
        sums = tensor.numpy().sum(axis=1)
        chance = 1.0 / (1.0 + np.exp(-sums))
        two = Tensor(np.stack([1.0 - chance, chance], axis=1))
        if self.kind == "categorical":
            return SimpleNamespace(distribution=SimpleNamespace(probs=two))
        if self.kind == "multi":
            uniform = Tensor(np.full((len(sums), 3), 1.0 / 3.0))
            parts = [SimpleNamespace(probs=two), SimpleNamespace(probs=uniform)]
            return SimpleNamespace(distribution=parts)
        if self.kind == "bernoulli":
            probs = Tensor(np.stack([chance, np.full(len(sums), 0.25)], axis=1))
            return SimpleNamespace(distribution=SimpleNamespace(probs=probs))
        mean = Tensor(np.stack([sums, -sums], axis=1))
        stddev = Tensor(np.full((len(sums), 2), 0.5))
        return SimpleNamespace(distribution=SimpleNamespace(mean=mean, stddev=stddev))


class Squashing(Networks):
    """SAC: an actor with a mean and the logarithm of a standard deviation."""

    @property
    def actor(self) -> Any:
        def parameters(tensor: Any) -> Any:
            sums = tensor.numpy().sum(axis=1)
            mean = np.stack([sums, -sums], axis=1)
            return Tensor(mean), Tensor(np.full_like(mean, np.log(0.5))), {}

        return SimpleNamespace(get_action_dist_params=parameters)


class Halved:
    """What VecNormalize does to observations."""

    def normalize_obs(self, observation: Any) -> Any:
        return np.asarray(observation) / 2.0


class Model:
    """A trained model."""

    def __init__(self, policy: Any, normalized: bool = False, **more: Any) -> None:
        self.policy = policy
        self._normalized = normalized
        for name, value in more.items():
            setattr(self, name, value)

    def get_vec_normalize_env(self) -> Any:
        return Halved() if self._normalized else None

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        action, _ = self.policy.predict(np.asarray(observation)[None], deterministic)
        return action[0], None

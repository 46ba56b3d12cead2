"""Trained models of Stable-Baselines3 as policies, with the laws that their actions have."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.environments.opening import first_line
from revar.environments.spaces import ArrayLayout, Layout, NumberLayout, NumbersLayout
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.law import Categorical, Law, Normal
from revar.policies.categorical import draw_from, read_row, value_counts
from revar.policies.continuous import read_numbers, to_actions
from revar.policies.interface import Draw, SampledPolicy, predict_best, stack


def policy_from_sb3(
    model: Any, deterministic: bool = False, *, vec_normalize: Any = None
) -> "StableBaselinesPolicy":
    """A trained model of Stable-Baselines3 as a policy.

    PPO and A2C draw from their own distributions, clipped to the action space; SAC from its
    squashed normal one; DQN takes any action with probability `model.exploration_rate`; others,
    such as TD3, take the action that they hold best. Episodes side by side ask the model once for
    all.

    Parameters
    ----------
    model
        As `load` or training gives it.
    deterministic
        Whether the action that the model holds best is always taken.
    vec_normalize
        How observations are normalised; by default by the model's own VecNormalize, if it has one.
    """
    policy = getattr(model, "policy", None)
    if not callable(getattr(policy, "predict", None)):
        raise InputError(
            f"{type(model).__name__} is no model of Stable-Baselines3: it has no policy"
        )
    if hasattr(policy, "lstm_actor"):
        raise InputError(
            f"{type(model).__name__} is recurrent: its actions depend on more than the observation"
        )
    if not deterministic and getattr(model, "use_sde", False):
        raise InputError(
            f"{type(model).__name__} explores with noise that is kept over steps (use_sde); give "
            f"deterministic=True"
        )
    if vec_normalize is None and callable(getattr(model, "get_vec_normalize_env", None)):
        vec_normalize = model.get_vec_normalize_env()
    rate = getattr(model, "exploration_rate", None)
    return StableBaselinesPolicy(
        policy, bool(deterministic), None if rate is None else float(rate), vec_normalize
    )


@dataclass(frozen=True, eq=False)
class StableBaselinesPolicy:
    """The networks of a model without its environment, so that they can be sent to workers."""

    policy: Any
    deterministic: bool
    exploration_rate: float | None
    vec_normalize: Any

    def for_spaces(self, observations: Layout, actions: Layout) -> SampledPolicy:
        """The policy in an environment."""
        del observations
        if callable(getattr(self.policy, "set_training_mode", None)):
            self.policy.set_training_mode(False)
        if self.deterministic:
            return _Best(self, actions)
        if callable(getattr(getattr(self.policy, "actor", None), "get_action_dist_params", None)):
            return _Squashed(self, _box(actions))
        if callable(getattr(self.policy, "get_distribution", None)):
            if isinstance(actions, ArrayLayout):
                return _Clipped(self, actions)
            return _Chances(self, actions)
        if self.exploration_rate is not None:
            return _Exploring(self, actions)
        return _Best(self, actions)

    def best(self, observations: list[Any]) -> Any:
        """The best actions, [n, ...]."""
        return np.asarray(predict_best(self.policy, self._normalize(stack(observations))))

    def tensor(self, observations: list[Any]) -> Any:
        """What the networks take: one for all observations."""
        return self.policy.obs_to_tensor(self._normalize(stack(observations)))[0]

    def values(self, observations: Any) -> FloatArray:
        """What its value function says of observations [n, ...], in units of rewards, [n]."""
        tensor = self.policy.obs_to_tensor(self._normalize(observations))[0]
        found = read_tensor(self.policy.predict_values(tensor)).ravel()
        if self.vec_normalize is None:
            return found
        return np.asarray(self.vec_normalize.unnormalize_reward(found), dtype=np.float64)

    def _normalize(self, seen: Any) -> Any:
        return seen if self.vec_normalize is None else self.vec_normalize.normalize_obs(seen)


class _Asked:
    """A model that knows its actions, and says in a sentence what it stumbles over."""

    def __init__(self, model: StableBaselinesPolicy, actions: Any) -> None:
        self._model = model
        self._actions = actions

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        """An action at each observation; the model is asked once for all."""
        torch = sys.modules.get("torch")
        try:
            with nullcontext() if torch is None else torch.no_grad():
                return self._draw(observations, rngs)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the policy raised {type(error).__name__} at observation {observations[0]!r}: "
                f"{first_line(error)}"
            ) from error

    def _draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        raise NotImplementedError


class _Best(_Asked):
    """The action that a model holds best."""

    law = Law()

    def _draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        found = self._model.best(observations)
        noise: list[list[float]] = [[] for _ in rngs]
        if isinstance(self._actions, ArrayLayout):
            rows = [
                read_numbers(row, "the policy", seen)
                for row, seen in zip(found, observations, strict=True)
            ]
            return to_actions(rows, noise, self._actions, clip=True)
        start = self._actions.start if isinstance(self._actions, NumberLayout) else None
        rows = [
            self._actions.row(row if start is None else row.item() + start) for row in found
        ]  # models count from 0
        return Draw([self._actions.value(row) for row in rows], rows, noise)


class _Exploring(_Asked):
    """The best of discrete actions, or any with the probability of exploring."""

    def __init__(self, model: StableBaselinesPolicy, actions: Layout) -> None:
        super().__init__(model, actions)
        (self._count,) = value_counts(actions)
        self.law = Law((Categorical(self._count),))

    def _draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        rate = self._model.exploration_rate or 0.0
        best = np.ravel(self._model.best(observations)).astype(int)
        chances = (1.0 - rate) * np.eye(self._count)[best] + rate / self._count
        return _draw_all([chances], observations, rngs, self._actions)


class _Chances(_Asked):
    """Discrete actions from the probabilities that the model gives."""

    def __init__(self, model: StableBaselinesPolicy, actions: Layout) -> None:
        super().__init__(model, actions)
        self.law = Law(tuple(Categorical(count) for count in value_counts(actions)))

    def _draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        found = self._model.policy.get_distribution(self._model.tensor(observations)).distribution
        if isinstance(self._actions, NumbersLayout) and self._actions.binary:
            ones = read_tensor(found.probs).reshape(len(rngs), -1)
            chances = [np.stack([1.0 - part, part], axis=1) for part in ones.T]
        else:
            each = found if isinstance(found, list | tuple) else [found]
            chances = [read_tensor(part.probs) for part in each]
        return _draw_all(chances, observations, rngs, self._actions)


class _Clipped(_Asked):
    """Normal actions, clipped to the space."""

    def __init__(self, model: StableBaselinesPolicy, actions: ArrayLayout) -> None:
        super().__init__(model, actions)
        self.law = Law((Normal(actions.width),))

    def _draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        found = self._model.policy.get_distribution(self._model.tensor(observations)).distribution
        noise = [rng.standard_normal(self._actions.width) for rng in rngs]
        raw = read_tensor(found.mean) + read_tensor(found.stddev) * np.array(noise)
        rows = [
            read_numbers(row, "the policy", seen)
            for row, seen in zip(raw, observations, strict=True)
        ]
        return to_actions(rows, noise, self._actions, clip=True)


class _Squashed(_Asked):
    """Normal actions, squashed by tanh into the bounds of the space."""

    def __init__(self, model: StableBaselinesPolicy, actions: ArrayLayout) -> None:
        super().__init__(model, actions)
        self.law = Law((Normal(actions.width),))
        self._low = actions.low.astype(np.float64)
        self._range = actions.high.astype(np.float64) - self._low

    def _draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        mean, log_std, _ = self._model.policy.actor.get_action_dist_params(
            self._model.tensor(observations)
        )
        noise = [rng.standard_normal(self._actions.width) for rng in rngs]
        raw = read_tensor(mean) + np.exp(read_tensor(log_std)) * np.array(noise)
        scaled = self._low + 0.5 * (np.tanh(raw) + 1.0) * self._range
        rows = [
            read_numbers(row, "the policy", seen)
            for row, seen in zip(scaled, observations, strict=True)
        ]
        return to_actions(rows, noise, self._actions, clip=True)


def read_tensor(tensor: Any) -> FloatArray:
    """A tensor as an array."""
    for method in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, method)() if hasattr(tensor, method) else tensor
    return np.asarray(tensor, dtype=np.float64)


def _draw_all(
    chances: list[FloatArray],
    observations: list[Any],
    rngs: list[np.random.Generator],
    actions: Layout,
) -> Draw:
    """Draw every number of an action, each from its rows of probabilities, [n, values]."""
    told, wanted = [part.shape[1] for part in chances], value_counts(actions)
    if told != wanted:
        raise InputError(
            f"the model gives probabilities of {told} values; the actions {actions.space} have "
            f"{wanted}"
        )
    parts = [part / part.sum(axis=1, keepdims=True) for part in chances]  # single precision
    rows, noise = [], []
    for i, (seen, rng) in enumerate(zip(observations, rngs, strict=True)):
        every = [read_row(part[i], part.shape[1], seen) for part in parts]
        rows.append([draw_from(row, rng) for row in every])
        noise.append([chance for row in every for chance in row])
    return Draw([actions.value(row) for row in rows], rows, noise)


def _box(actions: Layout) -> ArrayLayout:
    if not isinstance(actions, ArrayLayout):
        raise InputError(f"actions are {actions.space}; the model's are a Box")
    return actions

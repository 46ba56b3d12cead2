"""Any policy that a user has as one that actions can be drawn from, and their noise told."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammainccinv, gammaincinv, ndtri

from revar.environments.observations import make_encoding
from revar.environments.spaces import ArrayLayout, Layout, NumberLayout
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.law import Law, Normal
from revar.policies.categorical import ProbabilityPolicy, TablePolicy
from revar.policies.continuous import Deterministic, DeterministicPolicy, UniformPolicy
from revar.policies.forms import SoftTable, fit_table, load_policy
from revar.policies.interface import (
    Draw,
    SampledPolicy,
    ask_policy,
    check_predictor,
    check_rows,
    has_any,
    is_batched,
    predict_best,
    read_action,
    read_table,
    refuse_class,
    split_batch,
    stack,
)
from revar.policies.stable_baselines import policy_from_sb3

# Noise is looked at after so many draws, and each time that they are so many times as many. All
# looks together refuse one in a million policies whose noise is what it should be.
FIRST_LOOK = 32
NEXT_LOOK = 1.25
FALSE_ALARMS = 1e-6


def sampled_policy(policy: Any, observations: Layout, actions: Layout) -> SampledPolicy:
    """The policy in an environment with these observations and actions.

    A model with `predict` takes the action that it holds best, as in `policy_from_predictor`;
    `policy_from_sb3` makes it draw.
    """
    if isinstance(policy, str | Path):
        policy = load_policy(str(policy))
    if isinstance(policy, str):
        return UniformPolicy(actions)
    refuse_class(policy)
    if _is_stable_baselines(policy):
        policy = policy_from_sb3(policy, deterministic=True)
    if callable(getattr(policy, "for_spaces", None)):
        made: SampledPolicy = policy.for_spaces(observations, actions)
        return made
    if callable(getattr(policy, "draw", None)) and isinstance(getattr(policy, "law", None), Law):
        given: SampledPolicy = policy
        return given
    if has_any(policy, "sample", "sample_batch"):
        return _FromSample(policy, actions)
    if callable(getattr(policy, "predict", None)):
        best = _Predict(check_predictor(policy))
        return Deterministic(DeterministicPolicy(best, batched=is_batched(policy)), actions)
    if isinstance(policy, SoftTable):
        policy = policy.table
    if not callable(policy):
        policy = _table(policy, observations, actions)
    return ProbabilityPolicy(policy, actions)


def _is_stable_baselines(policy: Any) -> bool:
    """Whether this is a model of Stable-Baselines3 itself, and not what was made of it."""
    networks = getattr(policy, "policy", None)
    asked = callable(getattr(policy, "predict", None))
    return asked and callable(getattr(networks, "obs_to_tensor", None))


@dataclass(frozen=True, eq=False)
class _Predict:
    """The best action of a model with `predict`, as Stable-Baselines3 has it."""

    model: Any

    def __call__(self, observation: Any) -> Any:
        return predict_best(self.model, observation)


def known_law(policy: Any) -> Law | None:
    """How a policy draws; None of an object with `sample` that has not told yet."""
    return policy.told_law if isinstance(policy, _FromSample) else policy.law


def on_trial(policy: SampledPolicy) -> SampledPolicy:
    """The same policy, whose draws do not count where noise is checked: they may be repeated."""
    return _FromSample(policy.asked, policy.actions) if isinstance(policy, _FromSample) else policy


class _FromSample:
    """An object with sample(observation, rng) that gives an action and its standard normal noise.

    One with sample_batch(observations, rngs) is asked once for all episodes that run side by side:
    observations are stacked along a first axis, and actions and noise have as many rows.
    How much noise there is is known from its first answer, or from `law` where it has one. An
    estimate is unbiased only if the noise is what it is said to be: that is checked as draws come
    in, so that at least noise of another scale is found out.
    """

    def __init__(self, policy: Any, actions: Layout) -> None:
        self.asked = policy
        self.actions = actions
        known = getattr(policy, "law", None)
        self.told_law = known if isinstance(known, Law) else None
        self._count = 0
        self._sum: Any = 0.0
        self._squares: Any = 0.0
        self._looks = 0
        self._next_look = FIRST_LOOK

    @property
    def law(self) -> Law:
        if self.told_law is None:
            raise InputError("the policy's noise is not known before it has acted")
        return self.told_law

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        taken, rows, noise = [], [], []
        answers = self._ask(observations, rngs)
        for (action, drawn), observation in zip(answers, observations, strict=True):
            noise.append(self._read(drawn, observation))
            rows.append(read_action(action, self.actions, observation))
            taken.append(action)
        return Draw(taken, rows, noise)

    def _ask(
        self, observations: list[Any], rngs: list[np.random.Generator]
    ) -> Iterable[tuple[Any, Any]]:
        """Actions and their noise; all at once of an object with `sample_batch`."""
        batch = getattr(self.asked, "sample_batch", None)
        if not callable(batch):
            for seen, rng in zip(observations, rngs, strict=True):
                yield _pair(ask_policy(self.asked.sample, seen, rng), "sample", seen)
            return
        stacked = stack(observations)
        actions, noise = _pair(ask_policy(batch, stacked, rngs), "sample_batch", stacked)
        check_rows(noise, len(rngs), "sample_batch")
        yield from zip(split_batch(actions, self.actions, len(rngs)), noise, strict=True)

    def _read(self, drawn: Any, observation: Any) -> Any:
        try:
            row = np.array(() if drawn is None else drawn, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise InputError(f"sample gives the noise {drawn!r}, which are no numbers") from None
        if self.told_law is None:
            self.told_law = Law((Normal(row.size),)) if row.size else Law()
        if row.size != self.told_law.noise_width or not np.isfinite(row).all():
            raise InputError(
                f"sample gives the noise {drawn!r} at observation {observation!r}; it must be "
                f"{self.told_law.noise_width} finite numbers"
            )
        if row.size and all(isinstance(part, Normal) for part in self.told_law.parts):
            self._check_normal(row)
        return row

    def _check_normal(self, row: FloatArray) -> None:
        """Refuse noise whose mean or mean square cannot be that of standard normal numbers.

        The mean of n of them is normal with standard error 1/sqrt(n), and the sum of their squares
        has the chi-squared distribution with n degrees of freedom.
        """
        self._count += 1
        self._sum += row
        self._squares += row**2
        if self._count < self._next_look:
            return
        self._looks += 1
        self._next_look = ceil(NEXT_LOOK * self._count)
        mean, square = self._sum / self._count, self._squares / self._count
        # The shares 1 / (k (k + 1)) of all looks k sum to 1; two sides of two sums of every number.
        share = FALSE_ALARMS / (self._looks * (self._looks + 1)) / (4 * row.size)
        most = -ndtri(share) / sqrt(self._count)
        low, high = (
            2.0 * inverse(self._count / 2, share) / self._count
            for inverse in (gammaincinv, gammainccinv)
        )
        bad = (np.abs(mean) > most) | (square < low) | (square > high)
        if bad.any():
            number = int(np.argmax(bad))
            raise InputError(
                f"number {number} of the noise that sample gives has mean {mean[number]:.3g} and "
                f"mean square {square[number]:.3g} in {self._count} draws; it must be standard "
                f"normal"
            )


def _pair(answer: Any, method: str, observation: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(
            f"{method} gives {answer!r} at observation {observation!r}; it must be an action and "
            f"its noise"
        )
    return answer


def _table(policy: Any, observations: Layout, actions: Layout) -> TablePolicy:
    table = read_table(policy)
    if not isinstance(actions, NumberLayout):
        raise InputError(f"policy is an array; actions must then be Discrete, not {actions.space}")
    if isinstance(observations, ArrayLayout):
        raise InputError(
            f"policy is an array; observations must then be discrete, not {observations.space}"
        )
    encoding = make_encoding(observations.space)
    return TablePolicy(
        fit_table(policy, table, encoding.shape, actions.count, actions.start), encoding
    )

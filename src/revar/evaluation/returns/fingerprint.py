"""Whether stored episodes are those of a policy, as far as its answers at some of them tell."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revar.datasets.files import Conditions
from revar.environments.descriptions import read_space
from revar.environments.spaces import Layout, layout_of
from revar.errors import InputError
from revar.evaluation.identity import environment_parts, find_changes, plain_parts, same_parts
from revar.model.arrays import FloatArray, IntArray
from revar.model.episodes import Episodes
from revar.model.law import Categorical, Law
from revar.policies.forms import load_policy
from revar.policies.interface import Draw, SampledPolicy
from revar.policies.sampled import known_law, on_trial, sampled_policy

ASKED = 256  # steps, from the first to the last, at whose observations the policy is asked
SAME = 1e-6  # probabilities that differ by no more are the same
SAME_ACTIONS = 1e-4  # actions, as a share of the largest: networks have single precision


def policy_digest(policy: SampledPolicy, observations: Layout, episodes: Episodes) -> str | None:
    """A fingerprint of the policy at some observations; None if it draws on its own.

    None, too, of a policy that cannot be asked any more, which may be why a run has ended.
    """

    def ask() -> str:
        drawn = _ask(policy, observations, episodes)
        told = np.concatenate(
            [np.ravel(np.asarray(each, dtype=np.float64)) for each in (drawn.rows, drawn.noise)]
        )
        # Rounded, without negative zeros: other machines may differ in the last bit.
        return hashlib.sha256((np.round(told, 6) + 0.0).tobytes()).hexdigest()

    try:
        found = ask()
        return found if found == ask() else None
    except InputError:
        return None


class Identity:
    """Who plays, and where: what a file remembers, so that a run can go on from it.

    `env` is an environment that was not opened by its id.
    """

    def __init__(self, player: Any, policies: Mapping[str, Any], env: Any) -> None:
        self._settings = getattr(player, "settings", None) or [player.setting]
        self._policies = policies
        self._env = env
        self.changes = ""  # in the environment, since a file that the run goes on from
        self._attributes = {} if env is None else environment_parts(env)

    def answers(self, episodes: Episodes) -> str | None:
        """A fingerprint of all policies at some observations; None where one draws on its own."""
        found = [policy_digest(each.policy, each.observations, episodes) for each in self._settings]
        known = [each for each in found if each is not None]
        return "+".join(known) if len(known) == len(found) else None

    def noted(self, episodes: Episodes) -> dict[str, Any]:
        """What is stored beside the episodes."""
        answers = self.answers(episodes)
        now = {} if self._env is None else environment_parts(self._env)
        self._attributes = same_parts(self._attributes, now)
        return {
            "policy": answers,
            "policy_parts": self._parts(episodes) if answers is None else None,
            "attributes": None if self._env is None else self._attributes,
        }

    def check(self, stored: Episodes, earlier: Conditions) -> None:
        """Refuse a file of another policy; note what has changed in the environment."""
        if earlier.policy is not None:
            if earlier.policy != self.answers(stored):
                raise InputError("the file was collected for another policy")
        elif earlier.policy_parts is not None:
            check_parts(earlier.policy_parts, self._parts(stored) or {})
        self.changes = find_changes(earlier.attributes or {}, self._attributes)

    def _parts(self, episodes: Episodes) -> dict[str, str] | None:
        """What the policies are made of, less what changes when they are asked.

        None if one cannot be asked any more: it may have to be mended before the run goes on.
        """
        before = self._made_of()
        try:
            for each in self._settings:
                if each.observation_space is not None:
                    _ask(each.policy, each.observations, episodes)
        except InputError:
            return None
        return same_parts(before, self._made_of())

    def _made_of(self) -> dict[str, str]:
        return {
            f"{name}: {part}" if name else part: text
            for name, policy in self._policies.items()
            for part, text in policy_parts(policy).items()
        }


def policy_parts(policy: Any) -> dict[str, str]:
    """What a policy is made of: what tells one that draws on its own from another."""
    if isinstance(policy, str | Path):
        policy = load_policy(str(policy))
    return plain_parts(policy)


def check_parts(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse a policy that is made of something else."""
    changed = find_changes(before, now)
    if changed:
        raise InputError(f"the file was collected for another policy: its {changed}")


def check_policy(policy: object, episodes: Episodes, known: Conditions | None) -> None:
    """Refuse episodes that another policy has played, as far as that can be told.

    By the fingerprint that was stored with them, what the policy is made of, the probabilities of
    their actions, or what it does with their noise.
    """
    digest = None if known is None else known.policy
    if known is not None and known.policy_parts is not None:
        check_parts(known.policy_parts, policy_parts(policy))
    if episodes.observation_space is None or episodes.action_space is None:
        return
    observations = layout_of(read_space(episodes.observation_space))
    actions = layout_of(read_space(episodes.action_space), "action")
    target = sampled_policy(policy, observations, actions)
    if digest is not None:
        same = policy_digest(target, observations, episodes) in (None, digest)
    else:
        same = _plays_alike(target, observations, episodes)
    if not same:
        raise InputError(
            "the episodes were played by another policy; whole episodes tell the value of the "
            "policy that played them"
        )


def _plays_alike(policy: SampledPolicy, observations: Layout, episodes: Episodes) -> bool:
    """Whether the policy has the law of the episodes, and gives what they have, where it can tell.

    That is the probabilities of actions; and actions, if it makes them of the noise that is stored
    or of none, and the same each time.
    """
    steps, parts = asked_steps(episodes), episodes.law.parts
    noise, actions = episodes.noise[steps], np.asarray(episodes.actions[steps], dtype=np.float64)
    chances = np.array([isinstance(part, Categorical) for part in parts], dtype=bool)
    probable = np.repeat(chances, np.array([part.noise_width for part in parts], dtype=np.int64))

    def ask(seed: int) -> tuple[Law, Any, Any]:
        trial = on_trial(policy)
        rngs = [StoredNoise(row[~probable], (seed, place)) for place, row in enumerate(noise)]
        drawn = trial.draw(_seen(observations, episodes), list(rngs))
        rows, told = (np.asarray(each, dtype=np.float64) for each in (drawn.rows, drawn.noise))
        return trial.law, rows, told

    law, rows, told = ask(0)
    if law != episodes.law or np.any(np.abs(told - noise)[:, probable] > SAME):
        return False
    replayed = np.array_equal(told[:, ~probable], noise[:, ~probable])
    silent = not parts and known_law(policy) is None  # an object with `sample` draws on its own
    if chances.any() or silent or not replayed or not np.array_equal(rows, ask(1)[1]):
        return True
    return bool(np.all(np.abs(rows - actions) <= SAME_ACTIONS * np.abs(actions).max(axis=0)))


class StoredNoise(np.random.Generator):
    """Draws standard normal numbers that were drawn before, and then others."""

    def __init__(self, numbers: FloatArray, seed: tuple[int, int]) -> None:
        super().__init__(np.random.PCG64(seed))
        self._numbers = numbers

    def standard_normal(self, size: Any = None, *options: Any, **named: Any) -> Any:
        """The next of them, as long as there are enough."""
        count = 1 if size is None else int(np.prod(size))
        if count > self._numbers.size:
            return super().standard_normal(size, *options, **named)
        drawn, self._numbers = np.split(self._numbers, [count])
        return float(drawn[0]) if size is None else drawn.reshape(size)


def asked_steps(episodes: Episodes, most: int = ASKED) -> IntArray:
    """Steps at which the policy is asked: those of the first observations may all be alike."""
    return np.unique(np.linspace(0, episodes.steps - 1, most).astype(np.int64))


def _seen(observations: Layout, episodes: Episodes) -> list[Any]:
    """What the policy is asked at."""
    return [observations.value(row) for row in episodes.observations[asked_steps(episodes)]]


def _ask(policy: SampledPolicy, observations: Layout, episodes: Episodes) -> Draw:
    seen = _seen(observations, episodes)
    return on_trial(policy).draw(seen, [np.random.default_rng(place) for place in range(len(seen))])

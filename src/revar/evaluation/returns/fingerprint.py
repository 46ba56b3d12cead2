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
from revar.model.arrays import IntArray
from revar.model.episodes import Episodes
from revar.model.law import Categorical
from revar.policies.forms import load_policy
from revar.policies.interface import Draw, SampledPolicy
from revar.policies.sampled import on_trial, sampled_policy

ASKED = 256  # steps, from the first to the last, at whose observations the policy is asked
SAME = 1e-6  # probabilities that differ by no more are the same


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

    By the fingerprint that was stored with them, what the policy is made of, or the probabilities
    of their actions.
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
        drawn = _ask(target, observations, episodes)
        same = target.law == episodes.law
        if same and all(isinstance(part, Categorical) for part in episodes.law.parts):
            noise = episodes.noise[asked_steps(episodes)]
            same = bool(np.allclose(np.asarray(drawn.noise), noise, rtol=0.0, atol=SAME))
    if not same:
        raise InputError(
            "the episodes were played by another policy; whole episodes tell the value of the "
            "policy that played them"
        )


def asked_steps(episodes: Episodes, most: int = ASKED) -> IntArray:
    """Steps at which the policy is asked: those of the first observations may all be alike."""
    return np.unique(np.linspace(0, episodes.steps - 1, most).astype(np.int64))


def _ask(policy: SampledPolicy, observations: Layout, episodes: Episodes) -> Draw:
    seen = [observations.value(row) for row in episodes.observations[asked_steps(episodes)]]
    return on_trial(policy).draw(seen, [np.random.default_rng(place) for place in range(len(seen))])

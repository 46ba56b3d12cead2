"""Whether stored episodes are those of a policy, as far as its answers at some of them tell."""

import hashlib

import numpy as np

from revar.environments.descriptions import read_space
from revar.environments.spaces import Layout, layout_of
from revar.errors import InputError
from revar.model.arrays import IntArray
from revar.model.episodes import Episodes
from revar.model.law import Categorical
from revar.policies.interface import Draw, SampledPolicy
from revar.policies.sampled import sampled_policy

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


def check_policy(policy: object, episodes: Episodes, digest: str | None) -> None:
    """Refuse episodes that another policy has played, as far as that can be told.

    By the fingerprint that was stored with them, or by the probabilities of their actions.
    """
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
            noise = episodes.noise[_asked(episodes)]
            same = bool(np.allclose(np.asarray(drawn.noise), noise, rtol=0.0, atol=SAME))
    if not same:
        raise InputError(
            "the episodes were played by another policy; whole episodes tell the value of the "
            "policy that played them"
        )


def _asked(episodes: Episodes) -> IntArray:
    """Steps at which the policy is asked: those of the first observations may all be alike."""
    return np.unique(np.linspace(0, episodes.steps - 1, ASKED).astype(np.int64))


def _ask(policy: SampledPolicy, observations: Layout, episodes: Episodes) -> Draw:
    seen = [observations.value(row) for row in episodes.observations[_asked(episodes)]]
    return policy.draw(seen, [np.random.default_rng(place) for place in range(len(seen))])

"""Collecting data in plain NumPy, many episodes side by side, independent of the library's loop.

A run is a number of episodes from which one estimate is made.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from revar import Dataset, TabularMDP
from revar.model.trajectory import ENDED
from tests.plain_model import Floats, PlainModel

Integers = NDArray[np.int64]


def plain(mdp: TabularMDP, policy: Floats) -> PlainModel:
    """A library model as dense arrays."""
    shape = (mdp.states * mdp.actions, mdp.states + 1)
    place = (
        np.repeat(np.arange(shape[0]), np.diff(mdp.outcomes.row_start)),
        mdp.outcomes.successor,
    )

    def dense(values: Any) -> Floats:
        table = np.zeros(shape)
        table[place] = values
        return table.reshape(mdp.states, mdp.actions, -1)

    return PlainModel(
        dense(mdp.outcomes.probability),
        dense(mdp.outcome_reward_mean),
        dense(mdp.outcome_reward_std),
        mdp.initial,
        mdp.horizon,
        mdp.discount,
        policy,
    )


@dataclass(frozen=True)
class Step:
    """One step of all episodes that are still being played."""

    episode: Integers
    state: Integers
    action: Integers
    reward: Floats
    outcome: Integers  # `states` where the episode ends


def drawn(cumulative: Floats, rng: np.random.Generator) -> Integers:
    """One index from each row of cumulative probabilities."""
    uniform = rng.random(len(cumulative))[:, None]
    # The last column counts as 1 even where rounding left it a little below.
    return np.asarray((uniform >= cumulative[:, :-1]).sum(axis=1))


def play(
    model: PlainModel, behavior: Floats, episodes: int, rng: np.random.Generator
) -> Iterator[Step]:
    """Play episodes under behavior [S, A] with normal rewards, step by step."""
    of_actions = np.cumsum(behavior, axis=1)
    of_outcomes = np.cumsum(model.chance, axis=2)
    start = np.cumsum(model.initial)[None]
    state = drawn(np.broadcast_to(start, (episodes, model.states)), rng)
    episode = np.arange(episodes)
    for _ in range(model.horizon):
        action = drawn(of_actions[state], rng)
        outcome = drawn(of_outcomes[state, action], rng)
        reward = rng.normal(model.mean[state, action, outcome], model.std[state, action, outcome])
        yield Step(episode, state, action, reward, outcome)
        going = outcome < model.states
        episode, state = episode[going], outcome[going]


def dataset(
    model: PlainModel, behavior: Floats, episodes: int, rng: np.random.Generator
) -> Dataset:
    """Episodes with propensities, as the library's estimators take them."""
    steps = list(play(model, behavior, episodes, rng))
    episode = np.concatenate([step.episode for step in steps])
    order = np.argsort(episode, kind="stable")

    def joined(name: str) -> Any:
        return np.concatenate([getattr(step, name) for step in steps])[order]

    states, actions, outcomes = joined("state"), joined("action"), joined("outcome")
    start = np.concatenate([[0], np.cumsum(np.bincount(episode, minlength=episodes))])
    return Dataset(
        start,
        states,
        actions,
        joined("reward"),
        np.where(outcomes == model.states, ENDED, outcomes),
        behavior[states, actions],
    )


@dataclass(frozen=True)
class Counts:
    """What many runs have seen."""

    outcomes: Integers  # [run, S, A, S+1]
    reward_mean: Floats  # [run, S, A], 0 where there are no visits

    @property
    def visits(self) -> Integers:
        return np.asarray(self.outcomes.sum(axis=3))

    def values(self, model: PlainModel, *, known_transitions: bool) -> Floats:
        """Certainty equivalence of every run: the value recursion with estimates plugged in."""
        chance: Floats = self.outcomes / np.maximum(self.visits, 1)[..., None]
        if known_transitions:
            chance = np.broadcast_to(model.chance, chance.shape)
        value = np.zeros((len(chance), model.states + 1))
        for _ in range(model.horizon):
            ahead = np.einsum("rsap,rp->rsa", chance, value)
            action_value = self.reward_mean + model.discount * ahead
            value[:, :-1] = (model.policy * action_value).sum(axis=2)
        return np.asarray(value[:, :-1] @ model.initial)


def counts(
    model: PlainModel, behavior: Floats, episodes: int, runs: int, rng: np.random.Generator
) -> Counts:
    """Play `runs` times `episodes` episodes and count."""
    shape = (runs, model.states, model.actions, model.states + 1)
    seen = np.zeros(shape, dtype=np.int64)
    total = np.zeros(shape)
    together = max(1, 100_000 // episodes)  # runs side by side, as memory allows
    for first in range(0, runs, together):
        part = seen[first : first + together]
        rewards = total[first : first + together]
        for step in play(model, behavior, len(part) * episodes, rng):
            place = np.ravel_multi_index(
                (step.episode // episodes, step.state, step.action, step.outcome), part.shape
            )
            part += np.bincount(place, minlength=part.size).reshape(part.shape)
            rewards += np.bincount(place, step.reward, minlength=part.size).reshape(part.shape)
    visits = seen.sum(axis=3)
    return Counts(seen, total.sum(axis=3) / np.maximum(visits, 1))


def split(data: Dataset, episodes: int) -> Iterator[Dataset]:
    """Runs of that many episodes each, in order."""
    for first in range(0, len(data), episodes):
        start = data.start[first : first + episodes + 1]
        steps = slice(start[0], start[-1])
        yield Dataset(
            start - start[0],
            data.states[steps],
            data.actions[steps],
            data.rewards[steps],
            data.successors[steps],
            data.propensities[steps],
        )

"""Systems that ask a campaign what to do: each answer depends on episode and step alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.campaigns import CampaignEpisode
from revar.model.arrays import FloatArray
from revar.problems import Problem, problems


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


def policy_of(row: list[float]) -> FloatArray:
    """The same probabilities in each of the gridworld's states."""
    return np.tile(np.array(row), (16, 1))


@dataclass(frozen=True)
class World:
    """A problem's model whose draws for (episode, step) do not depend on who asks when."""

    problem: Problem
    seed: int = 0

    @classmethod
    def named(cls, name: str, seed: int = 0) -> "World":
        return cls(problems.find(name)(), seed)

    @property
    def policy(self) -> Any:
        return self.problem.policy

    @property
    def horizon(self) -> int:
        return self.problem.mdp.horizon

    def first(self, number: int) -> int:
        initial = self.problem.mdp.initial
        return int(np.searchsorted(np.cumsum(initial), self._draws(number, -1)[0], side="right"))

    def outcome(self, number: int, step: int, state: int, action: int) -> tuple[float, int | None]:
        """Reward and successor, None at the end of the episode."""
        mdp = self.problem.mdp
        uniform, normal = self._draws(number, step)
        pair = state * mdp.actions + action
        first, end = mdp.outcomes.row_start[pair : pair + 2]
        reached = np.cumsum(mdp.outcomes.probability[first:end])
        slot = first + min(int(np.searchsorted(reached, uniform, side="right")), end - first - 1)
        successor = int(mdp.outcomes.successor[slot])
        reward = float(mdp.reward_mean[state, action] + mdp.reward_std[state, action] * normal)
        return reward, None if successor == mdp.states else successor

    def _draws(self, number: int, step: int) -> tuple[float, float]:
        stream = np.random.default_rng((self.seed, number, step + 1))
        return float(stream.random()), float(stream.standard_normal())

    def play(self, episode: CampaignEpisode) -> list[int]:
        """Play an episode to its end; the actions it took."""
        state: int | None = self.first(episode.number)
        actions = []
        while not episode.over:
            action = episode.act(state)
            reward, state = self.outcome(episode.number, episode.steps, _known(state), action)
            episode.reward(reward, state)
            actions.append(action)
        episode.finish()
        return actions

    def play_paid(self, episode: CampaignEpisode, names: tuple[str, ...]) -> None:
        """Steps cost 0.5 and their action's number, and every tenth adds 1 to each named sum."""
        state: int | None = self.first(episode.number)
        while not episode.over:
            action = episode.act(state)
            reward, state = self.outcome(episode.number, episode.steps, _known(state), action)
            amounts = dict.fromkeys(names, float(episode.steps % 10 == 0))
            episode.reward(reward, state, cost=0.5 + action, amounts=amounts)


def _known(state: int | None) -> int:
    assert state is not None
    return state

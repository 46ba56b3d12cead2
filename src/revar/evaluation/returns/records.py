"""What is noted of episodes while they are played, and laid out when they are over."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from revar.environments.descriptions import describe_space
from revar.environments.features import Features, FeaturesOnly, observation_layout
from revar.environments.opening import environment_seed
from revar.environments.spaces import Layout, action_layout, check_finite
from revar.errors import InputError, kind_of
from revar.evaluation.amounts import Reported, ask_amount
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.model.amounts import COST, STEPS, check_amount
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes
from revar.policies.interface import SampledPolicy
from revar.policies.sampled import sampled_policy

RESETS = 2**30  # numbers from here on are those of resets that are not played
CostOfStep = Callable[[Any, Any, Any], float]  # from the row of an observation, action and info


class Setting:
    """What players of any kind know of the environment, the policy and the run."""

    def __init__(
        self, env: Any, policy: Any, horizon: int, seed: int, features: Any, cost: Any
    ) -> None:
        self.observations: Layout = observation_layout(env, features is not None)
        self.actions: Layout = action_layout(env)
        self.policy: SampledPolicy = sampled_policy(policy, self.observations, self.actions)
        self.horizon = horizon
        self.features = None if features is None else Features(features)
        self.cost = None if cost is None else _cost_of_step(cost, self.observations)
        self.cost_keys = (cost,) if isinstance(cost, str) else ()
        kept = not isinstance(self.observations, FeaturesOnly)
        self.observation_space = describe_space(self.observations.space) if kept else None
        self.action_space = describe_space(self.actions.space)
        self._seed = seed

    def environment_seed(self, number: int) -> int:
        """What the environment is seeded with for an episode, or a reset."""
        return environment_seed(self._seed, number)

    def generator(self, number: int) -> np.random.Generator:
        """Where the policy draws the noise of an episode from."""
        return np.random.default_rng(np.random.SeedSequence((self._seed, number, 1)))

    def inputs(self, observations: Iterable[Any]) -> FloatArray:
        """What critics look at, [n, inputs]; each observation is read before the next is made."""
        if self.features is not None:
            return np.array([self.features.row(seen) for seen in observations])
        rows = np.array([self.observations.row(seen) for seen in observations])
        check_finite(rows, "observation", "reset")
        return self.observations.inputs(rows)


class EpisodeRecord:
    """An episode: while it is under way lists of what was seen, done and drawn."""

    def __init__(self, setting: Setting, number: int) -> None:
        self.number = number
        self.rng = setting.generator(number)
        self.over = self.terminated = False
        self.observations: Any = []  # one more than there are steps
        self.actions: Any = []
        self.noise: Any = []
        self.rewards: Any = []
        self.features: Any = []
        self.costs: Any = []
        self._setting = setting
        self._row, self._features = setting.observations.row, setting.features

    def see(self, observation: Any) -> None:
        """Note what is observed before a step, or after the last."""
        self.observations.append(self._row(observation))
        if self._features is not None and not self.over:
            # Where observations are not kept, features cannot be asked for again later.
            twice = not self.features and self._setting.observation_space is None
            ask = self._features.steady_row if twice else self._features.row
            self.features.append(ask(observation))

    def note(self, action: Any, noise: Any, reward: float) -> None:
        """Note what was done, from which noise, and what came of it."""
        self.actions.append(action)
        self.noise.append(noise)
        self.rewards.append(reward)

    def charge(self, action: Any, info: Any) -> None:
        """Note what the step costs that followed the last observation noted."""
        assert self._setting.cost is not None
        self.costs.append(self._setting.cost(self.observations[-1], action, info))

    def check(self) -> None:
        """Refuse what was observed if it is not finite."""
        if len(self.observations):
            check_finite(np.asarray(self.observations), "observation", "step")

    def finish(self) -> None:
        """Turn lists into arrays, which take less room."""
        if not isinstance(self.observations, list):
            return
        setting, steps = self._setting, len(self.rewards)
        self.observations = np.concatenate(self.observations).reshape(
            steps + 1, setting.observations.width
        )
        self.check()
        self.actions = np.array(self.actions, dtype=setting.actions.dtype)
        self.actions = self.actions.reshape(steps, setting.actions.width)
        self.noise = np.array(self.noise, dtype=np.float64)
        self.noise = self.noise.reshape(steps, setting.policy.law.noise_width)
        self.rewards = np.array(self.rewards)
        if setting.features is not None:
            self.features = np.array(self.features)
        self.costs = np.array(self.costs)


def lay_out(setting: Setting, records: list[EpisodeRecord]) -> Episodes | None:
    """Finished episodes end to end; None for none."""
    if not records:
        return None

    def laid(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(record, name) for record in records])

    return Episodes(
        start=np.concatenate([[0], np.cumsum([record.rewards.size for record in records])]),
        observations=np.concatenate([record.observations[:-1] for record in records]),
        final_observations=np.array([record.observations[-1] for record in records]),
        actions=laid("actions"),
        rewards=laid("rewards"),
        terminated=np.array([record.terminated for record in records]),
        noise=laid("noise"),
        law=setting.policy.law,
        observation_space=setting.observation_space,
        action_space=setting.action_space,
        numbers=np.array([record.number for record in records], dtype=np.int64),
        features=None if setting.features is None else laid("features"),
        amounts={} if setting.cost is None else {COST: laid("costs")},
    )


def play_rounds(
    setting: Setting,
    play: Callable[[list[EpisodeRecord]], None],
    first: int,
    count: int,
    width: int,
) -> Episodes:
    """Play so many episodes, `width` at a time.

    Where something goes wrong, episodes are kept up to the first that is not complete: which of
    the later ones are complete depends on how long they are. They come out the same if they are
    played again.
    """
    done: list[EpisodeRecord] = []
    for begin in range(first, first + count, width):
        records = [
            EpisodeRecord(setting, i) for i in range(begin, min(begin + width, first + count))
        ]
        try:
            play(records)
            for record in records:
                record.finish()
        except (InputError, Stopped) as error:
            trouble = _find_trouble(error, records)
            for record in records:
                if not record.over or getattr(trouble, "episode", None) == record.number:
                    break
                record.finish()
                done.append(record)
            trouble.complete = lay_out(setting, done)
            raise trouble from error
        done.extend(records)
    episodes = lay_out(setting, done)
    assert episodes is not None
    return episodes


def _find_trouble(
    error: InputError | Stopped, records: list[EpisodeRecord]
) -> EpisodeError | Stopped:
    """What went wrong, and where: a bad observation explains what became of it."""
    for record in records:
        try:
            record.check()
        except InputError as bad:
            return EpisodeError(str(bad), record.number)
    if isinstance(error, EpisodeError | Stopped):
        return error
    waiting = next((record for record in records if not record.over), records[-1])
    return EpisodeError(str(error), waiting.number)


def _cost_of_step(cost: Any, observations: Layout) -> CostOfStep:
    """The cost of every step: a function's, an entry of `info`, or 1."""
    if isinstance(cost, str):
        return (lambda _seen, _action, _info: 1.0) if cost == STEPS else Reported(COST, cost)
    if not callable(cost):
        raise InputError(
            f"cost is {kind_of(cost)}; with returns of episodes it must be a function of "
            f"observation and action, or the name of an entry of info"
        )

    def ask(row: Any, action: Any, info: Any) -> float:
        del info
        # Made anew: some environments write the next observation over the last.
        observation = observations.value(row)
        amount = ask_amount(cost, COST, observation, action)
        return check_amount(amount, COST, f"action {action} at observation {observation!r}")

    return ask

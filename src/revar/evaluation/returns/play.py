"""Whole episodes of a policy in any environment: one at a time, or several side by side."""

from typing import Any, Protocol

import numpy as np

from revar.environments.opening import blame_environment, check_actions, horizon_of, read_reward
from revar.errors import InputError, require_extra
from revar.evaluation.returns.records import RESETS, EpisodeRecord, Setting, play_rounds
from revar.evaluation.returns.vector import VectorEpisodes
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.interrupts import Interrupt
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes
from revar.model.validation import LARGEST_REWARD


class EpisodePlayer(Protocol):
    """Who plays episodes: what each does follows from the seed and its number alone."""

    width: int  # episodes that are played side by side

    def play(self, first: int, count: int) -> Episodes:
        """The episodes number `first` to `first + count - 1`.

        What goes wrong is raised as EpisodeError, and a wish to stop as Stopped; either brings
        the episodes before it as `complete`.
        """

    def resets(self, first: int, count: int) -> FloatArray:
        """What critics look at in first observations that are not played, [count, inputs]."""

    def first_observation(self, number: int = 0) -> Any:
        """That of an episode, whose reset is made again for it."""


def make_player(
    env: Any,
    policy: Any,
    *,
    horizon: int | None = None,
    seed: int,
    features: Any = None,
    cost: Any = None,
    interrupt: Interrupt | None = None,
) -> EpisodePlayer:
    """A player for an open environment, or for a vector environment.

    `cost` is a function of observation and action, the name of an entry of `info`, or "steps".
    """
    setting = Setting(env, policy, horizon_of(env, horizon), seed, features, cost)
    interrupt = interrupt or Interrupt()
    if not hasattr(env, "num_envs"):
        return LocalEpisodes([env], setting, interrupt)
    if type(env) is require_extra("gymnasium.vector", "gym").SyncVectorEnv:  # no wrapper of one
        return LocalEpisodes(list(env.envs), setting, interrupt)
    return VectorEpisodes(env, setting, interrupt)


class LocalEpisodes:
    """One environment, or several in this process: where one is done, the next episode begins."""

    def __init__(self, envs: list[Any], setting: Setting, interrupt: Interrupt) -> None:
        self.width = len(envs)
        self.setting = setting
        self.interrupt = interrupt
        self._seats = [_Seat(env, setting) for env in envs]

    def play(self, first: int, count: int) -> Episodes:
        """The episodes, `width` of them under way at any time."""
        return play_rounds(self.setting, self._play, first, count, count)

    def _play(self, records: list[EpisodeRecord]) -> None:
        draw, interrupt = self.setting.policy.draw, self.interrupt
        waiting = iter(records)
        going = [
            seat for seat, record in zip(self._seats, waiting, strict=False) if seat.begin(record)
        ]
        while going:
            if interrupt.asked:
                raise Stopped
            taken, rows, noise = draw(
                [seat.observation for seat in going], [seat.rng for seat in going]
            )
            ended = False
            for seat, action, row, drawn in zip(going, taken, rows, noise, strict=True):
                seat.step(action, row, drawn)
                if seat.record.over:
                    seat.begin(next(waiting, None))
                    ended = True
            if ended:
                going = [seat for seat in going if not seat.record.over]

    def resets(self, first: int, count: int) -> FloatArray:
        """First observations, one after the other."""
        seat = self._seats[0]
        return self.setting.inputs(seat.reset(RESETS + first + i) for i in range(count))

    def first_observation(self, number: int = 0) -> Any:
        """That of an episode."""
        return self._seats[0].reset(number)


class _Seat:
    """An environment, and the episode in it."""

    record: EpisodeRecord
    rng: np.random.Generator

    def __init__(self, env: Any, setting: Setting) -> None:
        self.env = env
        self.observation: Any = None
        self._setting = setting
        self._actions = env.action_space
        self._step, self._cost, self._horizon = env.step, setting.cost, setting.horizon

    def reset(self, number: int) -> Any:
        """The first observation of an episode."""
        try:
            observation, _ = self.env.reset(seed=self._setting.environment_seed(number))
        except Exception as error:
            raise blame_environment(error, "reset") from error
        return observation

    def begin(self, record: EpisodeRecord | None) -> bool:
        """Begin an episode, if there is another."""
        if record is None:
            return False
        self.record, self.rng = record, record.rng
        try:
            self.observation = self.reset(record.number)
            record.see(self.observation)
        except InputError as error:
            raise EpisodeError(str(error), record.number) from error
        return True

    def step(self, action: Any, row: Any, noise: Any) -> None:
        """Take a step, and note all of it."""
        record = self.record
        try:
            seen, reward, terminated, truncated, info = self._step(action)
        except Exception as error:
            raise EpisodeError(str(blame_environment(error, "step")), record.number) from error
        try:
            if reward.__class__ is not float or not abs(reward) <= LARGEST_REWARD:
                reward = read_reward(reward)
            record.note(row, noise, reward)
            if self._cost is not None:
                record.charge(action, info)
            if terminated or truncated or len(record.rewards) == self._horizon:
                record.over, record.terminated = True, bool(terminated)
                check_actions(self.env, self._actions)
            self.observation = seen
            record.see(seen)
            if record.over:
                record.finish()
        except InputError as error:
            raise EpisodeError(str(error), record.number) from error

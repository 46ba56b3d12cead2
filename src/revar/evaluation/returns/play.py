"""Whole episodes of a policy in any environment: one at a time, or several side by side."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from revar.environments.opening import blame_environment, check_actions, horizon_of, read_reward
from revar.errors import InputError, require_extra
from revar.evaluation.amounts import part_of_infos
from revar.evaluation.returns.records import EpisodeRecord, Setting, lay_out
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.interrupts import Interrupt
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes
from revar.model.validation import LARGEST_REWARD

RESETS = 2**30  # numbers from here on are those of resets that are not played


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
        return _play_rounds(self.setting, self._play, first, count, count)

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


class VectorEpisodes:
    """A vector environment: `width` episodes at a time, all begun together.

    Those that are done wait for the longest one.
    """

    def __init__(self, env: Any, setting: Setting, interrupt: Interrupt) -> None:
        self.env = env
        self.width = int(env.num_envs)
        self.setting = setting
        self.interrupt = interrupt
        utils = require_extra("gymnasium.vector.utils", "gym")
        self._iterate, self._concatenate = utils.iterate, utils.concatenate
        self._room = utils.create_empty_array(env.single_action_space, self.width)
        mode = getattr(env, "metadata", {}).get("autoreset_mode")
        if mode is not None and getattr(mode, "name", "") != "NEXT_STEP":
            raise InputError(f"the vector environment resets in mode {mode}; it must be NEXT_STEP")

    def play(self, first: int, count: int) -> Episodes:
        """The episodes, `width` at a time."""
        return _play_rounds(self.setting, self._play, first, count, self.width)

    def _play(self, records: list[EpisodeRecord]) -> None:
        setting = self.setting
        seen = self._reset(records[0].number)
        actions: list[Any] = [setting.actions.value(np.zeros(setting.actions.width))] * self.width
        going = list(enumerate(records))
        for place, record in going:
            record.see(seen[place])
        while going:
            if self.interrupt.asked:
                raise Stopped
            drawn = setting.policy.draw(
                [seen[place] for place, _ in going], [record.rng for _, record in going]
            )
            for (place, _), action in zip(going, drawn.actions, strict=True):
                actions[place] = action
            try:
                after, rewards, terminated, truncated, infos = self.env.step(self._join(actions))
            except Exception as error:
                raise blame_environment(error, "step") from error
            seen = self._split(after)
            for i, (place, record) in enumerate(going):
                cut = bool(truncated[place]) or len(record.rewards) + 1 == setting.horizon
                record.terminated = bool(terminated[place])
                record.over = record.terminated or cut
                try:
                    record.note(drawn.rows[i], drawn.noise[i], read_reward(rewards[place]))
                    if setting.cost is not None:
                        part = part_of_infos(infos, setting.cost_keys, place)
                        record.charge(actions[place], part)
                    record.see(seen[place])
                except InputError as error:
                    raise EpisodeError(str(error), record.number) from error
            going = [(place, record) for place, record in going if not record.over]
        for env in getattr(self.env, "envs", []):  # others are in processes of their own
            check_actions(env, self.env.single_action_space)

    def resets(self, first: int, count: int) -> FloatArray:
        """First observations, `width` at a time."""
        seen: list[Any] = []
        while len(seen) < count:
            seen.extend(self._reset(RESETS + first + len(seen)))
        return self.setting.inputs(seen[:count])

    def _reset(self, number: int) -> list[Any]:
        seeds = [self.setting.environment_seed(number + i) for i in range(self.width)]
        try:
            seen, _ = self.env.reset(seed=seeds)
        except Exception as error:
            raise blame_environment(error, "reset") from error
        return self._split(seen)

    def _split(self, seen: Any) -> list[Any]:
        return list(self._iterate(self.env.observation_space, seen))

    def _join(self, actions: list[Any]) -> Any:
        return self._concatenate(self.env.single_action_space, actions, self._room)


def _play_rounds(
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

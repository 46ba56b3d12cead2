"""Whole episodes of a policy in any environment: one at a time, or several side by side."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from revar.environments.opening import blame_environment, check_actions, horizon_of, read_reward
from revar.errors import InputError, require_extra
from revar.evaluation.amounts import part_of_infos
from revar.evaluation.interrupts import EpisodeError, Interrupt, Stopped
from revar.evaluation.returns.records import EpisodeRecord, Setting, lay_out
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
    if hasattr(env, "num_envs"):
        return VectorEpisodes(env, setting, interrupt or Interrupt())
    return SerialEpisodes(env, setting, interrupt or Interrupt())


class SerialEpisodes:
    """One environment: an episode at a time."""

    width = 1

    def __init__(self, env: Any, setting: Setting, interrupt: Interrupt) -> None:
        self.env = env
        self.setting = setting
        self.interrupt = interrupt
        self._actions = env.action_space

    def play(self, first: int, count: int) -> Episodes:
        """The episodes, one after the other."""
        return _play_rounds(self.setting, self._play, first, count, 1)

    def _play(self, records: list[EpisodeRecord]) -> None:
        (record,) = records
        see, draw, step, interrupt = (
            record.see,
            self.setting.policy.draw,
            self.env.step,
            self.interrupt,
        )
        rngs, rewards, actions, noise = [record.rng], record.rewards, record.actions, record.noise
        charge = None if self.setting.cost is None else record.charge
        horizon = self.setting.horizon
        observation = self._reset(record.number)
        while True:
            if interrupt.asked:
                raise Stopped
            see(observation)
            (action,), rows, drawn = draw([observation], rngs)
            actions.append(rows[0])
            noise.append(drawn[0])
            try:
                observation, reward, terminated, truncated, info = step(action)
            except Exception as error:
                raise blame_environment(error, "step") from error
            if reward.__class__ is not float or not abs(reward) <= LARGEST_REWARD:
                reward = read_reward(reward)
            rewards.append(reward)
            if charge is not None:
                charge(action, info)
            if terminated or truncated or len(rewards) == horizon:
                break
        record.over, record.terminated = True, bool(terminated)
        see(observation)
        check_actions(self.env, self._actions)

    def resets(self, first: int, count: int) -> FloatArray:
        """First observations, one after the other."""
        return self.setting.inputs(self._reset(RESETS + first + i) for i in range(count))

    def _reset(self, number: int) -> Any:
        try:
            observation, _ = self.env.reset(seed=self.setting.environment_seed(number))
        except Exception as error:
            raise blame_environment(error, "reset") from error
        return observation


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
            for i, (place, record) in enumerate(going):
                actions[place] = drawn.actions[i]
                record.actions.append(drawn.rows[i])
                record.noise.append(drawn.noise[i])
            try:
                after, rewards, terminated, truncated, infos = self.env.step(self._join(actions))
            except Exception as error:
                raise blame_environment(error, "step") from error
            seen = self._split(after)
            for place, record in going:
                cut = bool(truncated[place]) or len(record.rewards) + 1 == setting.horizon
                record.terminated = bool(terminated[place])
                record.over = record.terminated or cut
                try:
                    record.rewards.append(read_reward(rewards[place]))
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

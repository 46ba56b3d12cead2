"""Whole episodes of a policy in a vector environment, all begun together."""

from functools import cached_property
from typing import Any

import numpy as np

from revar.environments.opening import blame_environment, check_actions, read_reward
from revar.errors import InputError, require_extra
from revar.evaluation.amounts import part_of_infos
from revar.evaluation.returns.records import RESETS, EpisodeRecord, Setting, play_rounds
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.interrupts import Interrupt
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes


class VectorEpisodes:
    """A vector environment: `width` episodes at a time, all begun together.

    Those that are done wait for the longest one. Some take one seed for all, and draw from one
    stream: then blocks of `width` episodes are played whole, and what one does follows from the
    seed, its number and `width`.
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

    @cached_property
    def _one_seed(self) -> bool:
        """Whether it takes one seed for all, and not a list of them."""
        first = self.setting.environment_seed(0)
        try:
            self.env.reset(seed=[first] * self.width)
        except Exception as error:
            try:
                self.env.reset(seed=first)
            except Exception:
                raise blame_environment(error, "reset") from error
            return True
        return False

    def play(self, first: int, count: int) -> Episodes:
        """The episodes, `width` at a time."""
        if not self._one_seed:
            return play_rounds(self.setting, self._play, first, count, self.width)
        before = first % self.width  # episodes of the block that are not asked for
        end = before + count
        blocks = -(-end // self.width) * self.width
        try:
            played = play_rounds(self.setting, self._play, first - before, blocks, self.width)
        except (EpisodeError, Stopped) as error:
            complete = 0 if error.complete is None else len(error.complete)
            if error.complete is None or complete <= before:
                error.complete = None
                raise
            if complete < end:
                error.complete = error.complete.part(before, complete)
                raise
            played = error.complete
        return played.part(before, end)

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
        before = first % self.width if self._one_seed else 0
        seen: list[Any] = []
        while len(seen) < before + count:
            seen.extend(self._reset(RESETS + first - before + len(seen)))
        return self.setting.inputs(seen[before : before + count])

    def first_observation(self, number: int = 0) -> Any:
        """That of an episode; where one seed is for all, its whole block is reset."""
        before = number % self.width if self._one_seed else 0
        return self._reset(number - before)[before]

    def _reset(self, number: int) -> list[Any]:
        seeds = [self.setting.environment_seed(number + i) for i in range(self.width)]
        try:
            seen, _ = self.env.reset(seed=seeds[0] if self._one_seed else seeds)
        except Exception as error:
            raise blame_environment(error, "reset") from error
        return self._split(seen)

    def _split(self, seen: Any) -> list[Any]:
        return list(self._iterate(self.env.observation_space, seen))

    def _join(self, actions: list[Any]) -> Any:
        return self._concatenate(self.env.single_action_space, actions, self._room)

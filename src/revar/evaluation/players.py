"""Who plays the episodes: one environment, or several side by side in step."""

import json
from typing import Any

import numpy as np

from revar.collection import Collection, Episode
from revar.collection.collection import Policy
from revar.environments.observations import StateEncoding
from revar.environments.opening import blame_environment, check_actions, read_reward
from revar.errors import InputError, require_extra
from revar.evaluation.amounts import StepAmounts
from revar.evaluation.stopping import Stopped
from revar.interrupts import Interrupt
from revar.model.trajectory import Dataset
from revar.model.validation import LARGEST_REWARD


class Player:
    """One environment: an episode at a time. Only the first reset is seeded."""

    width = 1

    def __init__(
        self,
        env: Any,
        observations: StateEncoding,
        policy: Policy,
        amounts: StepAmounts,
        seed: int,
        interrupt: Interrupt,
    ) -> None:
        self.env = env
        self.observations = observations
        self.policy = policy
        self.amounts = amounts
        self.interrupt = interrupt
        self._seed: int | None = seed
        self._actions = env.action_space

    def seed(self, seed: int) -> None:
        """Seed the next reset."""
        self._seed = seed

    def play(self, collection: Collection, number: int, count: int) -> None:  # noqa: ARG002
        """Play and finish episode `number`; raises InputError where something is wrong."""
        episode = collection.start(number)
        key, policy, step, interrupt = (
            self.observations.key,
            self.policy,
            self.env.step,
            self.interrupt,
        )
        act, observe = episode.act, episode.observe
        measure = self.amounts.of if self.amounts.names else None
        first = int(self._actions.start)
        state = self._state(self._reset())
        while True:
            if interrupt.asked:
                raise Stopped
            before = state
            action, _ = act(state, policy(state))
            try:
                observation, reward, terminated, truncated, info = step(action + first)
            except Exception as error:
                raise blame_environment(error, "step") from error
            try:
                state = None if terminated else key(observation)
            except Exception:
                state = self._state(observation)  # says what is wrong
            if reward.__class__ is not float or not abs(reward) <= LARGEST_REWARD:
                reward = read_reward(reward)
            if measure is None:
                observe(reward, state)
            else:
                observe(reward, state, measure(before, action, info))
            if truncated or episode.over:
                break
        check_actions(self.env, self._actions)
        episode.finish()

    def stride(self, collection: Collection) -> int:  # noqa: ARG002
        """How many episodes are played at once."""
        return 1

    def replay(self, collection: Collection, stored: Dataset) -> None:
        """Take a stored episode instead of playing one."""
        collection.replay(stored, self.policy)

    def generators(self) -> tuple[str, ...] | None:
        """The state of the environment's random stream, where it can be read."""
        if self._seed is not None:
            return ()  # not begun: the seed tells everything
        stream = _stream(self.env)
        return None if stream is None else (json.dumps(stream.bit_generator.state),)

    def restore(self, generators: tuple[str, ...] | None) -> None:
        """Go on from that state of the stream."""
        states = _known(generators)
        self._reset()
        _stream(self.env).bit_generator.state = json.loads(states[0])

    def _reset(self) -> Any:
        options = {} if self._seed is None else {"seed": self._seed}
        try:
            observation, _ = self.env.reset(**options)
        except Exception as error:
            raise blame_environment(error, "reset") from error
        self._seed = None
        return observation

    def _state(self, observation: Any) -> Any:
        try:
            return self.observations.key(observation)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"observation {observation!r} does not belong to {self.env.observation_space}"
            ) from error


class VectorPlayer:
    """A vector environment: `width` episodes at a time, all begun together.

    In every step the sub-environments come in their order, so that statistics grow in a fixed
    order. Those that are done wait for the longest episode.
    """

    def __init__(
        self,
        env: Any,
        observations: StateEncoding,
        policy: Policy,
        amounts: StepAmounts,
        seed: int,
        interrupt: Interrupt,
    ) -> None:
        self.env = env
        self.width = int(env.num_envs)
        self.observations = observations
        self.policy = policy
        self.amounts = amounts
        self.interrupt = interrupt
        self._seed: int | None = seed
        self._iterate = require_extra("gymnasium.vector.utils", "gym").iterate
        mode = getattr(env, "metadata", {}).get("autoreset_mode")
        if mode is not None and getattr(mode, "name", "") != "NEXT_STEP":
            raise InputError(f"the vector environment resets in mode {mode}; it must be NEXT_STEP")

    def play(self, collection: Collection, number: int, count: int) -> None:
        """Play the episodes from `number` on, at most `count` of them, and finish them in order."""
        episodes = [collection.start(number + i) for i in range(min(self.width, count))]
        done = [False] * len(episodes)
        try:
            self._play(episodes, done)
        except (InputError, Stopped):
            # Episodes that came to their end are complete, whatever became of the others.
            for episode, ended in zip(episodes, done, strict=True):
                if ended:
                    episode.finish()
            raise
        for env in getattr(self.env, "envs", []):  # others are in processes of their own
            check_actions(env, self.env.single_action_space)
        for episode in episodes:
            episode.finish()

    def _play(self, episodes: list[Episode], done: list[bool]) -> None:
        actions = np.full(self.width, self.env.single_action_space.start, dtype=np.int64)
        first = int(self.env.single_action_space.start)
        states = [self.observations.key(seen) for seen in self._split(self._reset())]
        while not all(done):
            if self.interrupt.asked:
                raise Stopped
            for i, episode in enumerate(episodes):
                if not done[i]:
                    action, _ = episode.act(states[i], self.policy(states[i]))
                    actions[i] = action + first
            try:
                seen, rewards, terminated, truncated, infos = self.env.step(actions)
            except Exception as error:
                raise blame_environment(error, "step") from error
            after = self._split(seen)
            for i, episode in enumerate(episodes):
                if not done[i]:
                    spent = self.amounts.of_one(states[i], int(actions[i]) - first, infos, i)
                    states[i] = None if terminated[i] else self.observations.key(after[i])
                    episode.observe(read_reward(rewards[i]), states[i], spent)
                    done[i] = bool(truncated[i]) or episode.over

    def stride(self, collection: Collection) -> int:
        """How many episodes are played at once: those that surely fit into what is left."""
        return max(1, min(self.width, collection.affordable()))

    def replay(self, collection: Collection, stored: Dataset) -> None:
        """Take so many stored episodes in step, instead of playing them."""
        collection.replay(stored, self.policy, width=self.width)

    def generators(self) -> tuple[str, ...] | None:
        """The states of the sub-environments' streams, where they can be read."""
        if self._seed is not None:
            return ()
        streams = [_stream(env) for env in getattr(self.env, "envs", [])]
        if not streams or any(stream is None for stream in streams):
            return None
        return tuple(json.dumps(stream.bit_generator.state) for stream in streams)

    def restore(self, generators: tuple[str, ...] | None) -> None:
        """Go on from those states of the streams."""
        states = _known(generators)
        self._reset()
        for env, state in zip(self.env.envs, states, strict=True):
            _stream(env).bit_generator.state = json.loads(state)

    def _reset(self) -> Any:
        options = {} if self._seed is None else {"seed": self._seed}
        try:
            seen, _ = self.env.reset(**options)
        except Exception as error:
            raise blame_environment(error, "reset") from error
        self._seed = None
        return seen

    def _split(self, seen: Any) -> list[Any]:
        return list(self._iterate(self.env.observation_space, seen))


def _known(generators: tuple[str, ...] | None) -> tuple[str, ...]:
    if not generators:
        raise InputError(
            "the environment's random stream is not known, so that the run cannot be resumed; "
            "give the file as prior instead"
        )
    return generators


def _stream(env: Any) -> Any:
    """The environment's generator; None where it has none, or one that is not NumPy's."""
    stream = getattr(getattr(env, "unwrapped", env), "np_random", None)
    return stream if isinstance(stream, np.random.Generator) else None

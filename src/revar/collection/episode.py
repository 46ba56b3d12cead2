"""One episode of a collection, step by step, and the log of finished ones."""

from array import array
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from revar.collection.plans import Decision, PlanInForce
from revar.errors import InputError
from revar.model.amounts import check_amount
from revar.model.arrays import FloatArray, IntArray
from revar.model.trajectory import ENDED, Dataset
from revar.model.validation import LARGEST_REWARD, check_reward

if TYPE_CHECKING:
    from revar.collection.collection import Collection


class Episode:
    """An episode under way, made by `Collection.start`. Several may be open at once.

    It follows the plan that was in force at its first step. Every observed step enters the
    statistics at once; an episode that is dropped counts with the steps it has completed.
    """

    def __init__(self, collection: "Collection", number: int) -> None:
        self.number = number
        self.plan: PlanInForce | None = None
        self.state: int | None = None  # where the next action is taken, if that is known
        self.action: int | None = None  # taken and not yet observed
        self.propensity = np.nan  # of that action
        self.draws = 0  # random numbers that its actions took
        self.states: list[int] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.propensities: list[float] = []
        self.amounts: list[tuple[float, ...]] = []  # of each step, where there are any
        self.last_successor = ENDED
        self.terminated = False  # ended by itself
        self.over = False  # ended by itself, cut by the horizon, or finished
        self.finished = False
        self._collection = collection
        self._rng: np.random.Generator | None = None  # made when it is needed

    @property
    def rng(self) -> np.random.Generator:
        """Its own random stream, at the place where the next number is due."""
        if self._rng is None:
            seeds = np.random.SeedSequence(self._collection.seed, spawn_key=(self.number,))
            self._rng = np.random.default_rng(seeds)
            if self.draws:
                _advance(self._rng, self.draws)
        return self._rng

    @rng.setter
    def rng(self, stream: np.random.Generator) -> None:
        self._rng = stream

    @property
    def steps(self) -> int:
        """How many steps have been observed."""
        return len(self.rewards)

    @property
    def amount_names(self) -> tuple[str, ...]:
        """What is noted of every step besides its reward."""
        return self._collection.amounts.names

    def act(self, state: Hashable, probabilities: Any) -> tuple[int, float]:
        """Take the action that the plan asks for; its propensity is NaN if it was not sampled.

        `probabilities` [A] are the target policy's in that state; of several policies, [J, A].
        """
        number, row, plan = self._enter(state, probabilities)
        collection = self._collection
        stream = _Counted(self.rng)
        action, propensity = plan.choose_action(
            self.number,
            len(self.rewards),
            number,
            row,
            collection.statistics.visits_in(number),
            stream,
            collection.scores_without_data,
        )
        self.draws += stream.draws
        self.take(number, plan, action, propensity)
        return action, propensity

    @property
    def replaces_plan(self) -> bool:
        """Whether its next action would put another plan in the place of the one in force."""
        current, own = self._collection.plan_in_force, self.plan
        due = current is not None and current.expired
        return due and (own is None or own.plan.lasts == 0)

    def choose(
        self, state: Hashable, probabilities: Any, *, put_plan_off: bool = False
    ) -> Decision:
        """The decision that `act` would make. Nothing changes, not even the random stream.

        With `put_plan_off`, a plan that is due is waited for, and the one in force is followed.
        """
        collection = self._collection
        number = collection.states.find(state)
        self._check(state, number)
        row = collection.states.check(state, number, probabilities)
        plan = self.plan
        if put_plan_off and self.replaces_plan:
            plan = collection.plan_in_force
        elif plan is None or plan.plan.lasts == 0:
            plan = collection.plan_due(number, row)
        assert plan is not None
        place = len(collection.states) if number is None else number
        stream = _Counted(self.rng)
        action, propensity = plan.choose_action(
            self.number,
            len(self.rewards),
            place,
            row,
            collection.statistics.visits_in(place),
            stream,
            collection.scores_without_data,
            remember=False,
        )
        stream.restore()
        return Decision(action, propensity, stream.draws)

    def repeat(
        self,
        state: Hashable,
        probabilities: Any,
        action: int,
        propensity: float = np.nan,
        *,
        draws: int = 0,
        put_plan_off: bool = False,
    ) -> None:
        """Take an action that was chosen before, as if it had been chosen now.

        An episode that is to go on by itself must be told how many random numbers were drawn.
        """
        if not 0 <= action < self._collection.actions:
            raise InputError(
                f"action {action} of episode {self.number}; there are "
                f"{self._collection.actions} actions"
            )
        number, _, plan = self._enter(state, probabilities, put_plan_off)
        self.take(number, plan, action, propensity)
        self.skip_draws(draws)

    def skip_draws(self, draws: int) -> None:
        """Go on in the random stream as if so many numbers had been drawn."""
        if draws:
            self.draws += draws
            if self._rng is not None:
                _advance(self._rng, draws)

    def observe(
        self, reward: float, next_state: Hashable | None, amounts: tuple[float, ...] = ()
    ) -> None:
        """The action gave `reward` and led to `next_state`; None where the episode terminated.

        `amounts` are what the step cost and added to limited sums, as the collection names them.
        """
        collection, state, action = self._collection, self.state, self.action
        if action is None or state is None:
            raise InputError(f"episode {self.number} has taken no action that can be observed")
        if not abs(reward) <= LARGEST_REWARD:  # true of NaN, too
            key = collection.states[state]
            check_reward(reward, f"the reward of action {action} in state {key!r} is")
        if len(amounts) != len(collection.amounts.names):
            raise InputError(
                f"a step needs the amounts {', '.join(collection.amounts.names) or 'of nothing'}; "
                f"it has {len(amounts)}"
            )
        if amounts:
            place = f"action {action} in state {collection.states[state]!r}"
            names = collection.amounts.names
            amounts = tuple(map(check_amount, amounts, names, [place] * len(names)))
        successor = ENDED if next_state is None else collection.states.number(next_state)
        self.advance(state, action, float(reward), successor)
        collection.statistics.record_step(state, action, reward, successor)
        if amounts:
            collection.spend(state, action, amounts)
            self.amounts.append(amounts)

    def advance(self, state: int, action: int, reward: float, successor: int) -> None:
        """Note what the action that waits led to; the caller has statistics learn of the step."""
        rewards, collection = self.rewards, self._collection
        if not rewards:
            collection.statistics.start_episode(state)
        collection.steps += 1
        self.states.append(state)
        self.actions.append(action)
        rewards.append(reward)
        self.propensities.append(self.propensity)
        self.last_successor = self.state = successor
        self.action = None
        self.terminated = successor == ENDED
        self.over = self.terminated or len(rewards) == collection.horizon

    def finish(self) -> None:
        """The episode counts as a whole; an action that was not observed is forgotten."""
        if not self.rewards:
            raise InputError(f"episode {self.number} has no step that could be kept")
        if self.finished:
            raise InputError(f"episode {self.number} was finished before")
        self._collection.keep(self)
        self.over = self.finished = True

    def _check(self, state: Hashable, number: int | None) -> None:
        """Refuse to act out of turn, or in a state that the episode is not in."""
        if self.over:
            raise InputError(f"episode {self.number} is over after {len(self.rewards)} steps")
        if self.action is not None:
            raise InputError(f"episode {self.number} waits for what its last action led to")
        if self.state is not None and number != self.state:
            raise InputError(
                f"episode {self.number} is in state {self._collection.states[self.state]!r}, and "
                f"is asked to act in state {state!r}"
            )

    def _enter(
        self, state: Hashable, probabilities: Any, put_plan_off: bool = False
    ) -> tuple[int, FloatArray, PlanInForce]:
        """Number the state, note its row, and put the plan in force that is due, or put it off."""
        collection, plan = self._collection, self.plan
        states = collection.states
        if self.over or self.action is not None or self.state != states.find(state):
            self._check(state, states.find(state))
        number, row = states.enter(state, probabilities)
        if plan is None or plan.plan.lasts == 0:
            begin = collection.put_plan_off if put_plan_off else collection.put_plan_in_force
            plan = begin()
        return number, row, plan

    def take(self, state: int, plan: PlanInForce, action: int, propensity: float) -> None:
        """Note an action under a plan; that it is this episode's turn is the caller's to know."""
        if plan.counts_taken:
            plan.take(self.number, len(self.rewards), state, action)
        self.state, self.plan = state, plan
        self.action, self.propensity = action, propensity


class _Counted:
    """A random stream that counts what is drawn, and can be put back."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.draws = 0
        self._rng = rng

    def random(self) -> float:
        """The next number."""
        self.draws += 1
        return self._rng.random()

    def restore(self) -> None:
        """Bring the stream back to where it was."""
        if self.draws:
            _advance(self._rng, -self.draws)


def _advance(rng: np.random.Generator, draws: int) -> None:
    rng.bit_generator.advance(draws)  # type: ignore[attr-defined]  # PCG64 has it


class EpisodeLog:
    """Finished episodes in flat buffers that grow; a dataset has them by number."""

    def __init__(self, amounts: tuple[str, ...] = ()) -> None:
        self._numbers: list[int] = []
        self._start = [0]
        self._amounts = {name: array("d") for name in amounts}
        self._states = array("q")
        self._actions = array("q")
        self._rewards = array("d")
        self._successors = array("q")
        self._propensities = array("d")

    def add(self, episode: Episode) -> None:
        """Keep the steps of a finished episode."""
        self._states.extend(episode.states)
        self._actions.extend(episode.actions)
        self._rewards.extend(episode.rewards)
        self._successors.extend(episode.states[1:])
        self._successors.append(episode.last_successor)
        self._propensities.extend(episode.propensities)
        for place, column in enumerate(self._amounts.values()):
            column.extend(amounts[place] for amounts in episode.amounts)
        self._numbers.append(episode.number)
        self._start.append(len(self._states))

    def add_many(self, first: int, episodes: Dataset) -> None:
        """Keep episodes at once, number `first` and those that follow."""
        for name in ("states", "actions", "rewards", "successors", "propensities"):
            getattr(self, f"_{name}").frombytes(getattr(episodes, name).tobytes())
        for name, column in self._amounts.items():
            column.frombytes(episodes.amounts[name].tobytes())
        self._numbers.extend(range(first, first + len(episodes)))
        self._start.extend((self._start[-1] + episodes.start[1:]).tolist())

    def dataset(self, labels: tuple[Hashable, ...]) -> Dataset:
        """Everything so far, copied."""
        order = np.argsort(np.array(self._numbers, dtype=np.int64), kind="stable")
        start = np.array(self._start, dtype=np.int64)
        lengths = np.diff(start)[order]
        begin = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        steps: IntArray = np.arange(begin[-1]) + np.repeat(start[:-1][order] - begin[:-1], lengths)

        def column(values: Any, dtype: Any) -> Any:
            # A copy: a buffer that is being looked at could not grow.
            return np.array(values, dtype=dtype)[steps]

        return Dataset(
            begin,
            column(self._states, np.int64),
            column(self._actions, np.int64),
            column(self._rewards, np.float64),
            column(self._successors, np.int64),
            column(self._propensities, np.float64),
            labels,
            amounts={name: column(values, np.float64) for name, values in self._amounts.items()},
        )

"""One episode of a collection, step by step: act, observe, finish."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from revar.errors import InputError
from revar.model.trajectory import ENDED
from revar.model.validation import LARGEST_REWARD, checked_reward
from revar.simulation.standing import StandingPlan

if TYPE_CHECKING:
    from revar.collection.collection import Collection


class Episode:
    """Made by `Collection.start`. Several may be open at once.

    Follows the plan that was in force at its first step. Every observed step enters the statistics
    at once; an episode that is dropped counts with the steps it has completed.
    """

    def __init__(self, collection: "Collection", number: int, rng: np.random.Generator) -> None:
        self.number = number
        self.over = False  # ended by itself, cut by the horizon, or finished
        self.terminated = False
        self.finished = False
        self.draws = 0  # random numbers that `repeat` was told of
        self._collection = collection
        self._rng = rng
        self._standing: StandingPlan | None = None
        self._state: int | None = None  # where the next action is taken, if that is known
        self._action: int | None = None  # taken and not yet observed
        self._propensity = np.nan
        self.states: list[int] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.propensities: list[float] = []
        self.last_successor = ENDED

    @property
    def steps(self) -> int:
        """How many steps have been observed."""
        return len(self.rewards)

    def act(self, state: Hashable, probabilities: Any) -> tuple[int, float]:
        """The action to take in `state`, and its propensity (NaN if it was not sampled).

        `probabilities` [A] are the target policy's in that state.
        """
        number, standing = self._enter(state, probabilities)
        action, propensity = self._selected(number, standing)
        self._take(number, standing, action, propensity)
        return action, propensity

    def choose(self, state: Hashable, probabilities: Any) -> tuple[int, float, int]:
        """What `act` would return, and how many random numbers it would draw; nothing is taken."""
        number, standing = self._enter(state, probabilities)
        before = self._rng.bit_generator.state
        action, propensity = self._selected(number, standing)
        draws = int(self._rng.bit_generator.state != before)  # an action draws once at most
        self._rng.bit_generator.state = before
        return action, propensity, draws

    def repeat(
        self,
        state: Hashable,
        probabilities: Any,
        action: int,
        propensity: float = np.nan,
        *,
        draws: int = 0,
    ) -> None:
        """Take an action that was chosen before, as if it had been chosen now.

        An episode that is to go on by itself must be told how many random numbers were drawn.
        """
        if not 0 <= action < self._collection.actions:
            raise InputError(
                f"action {action} of episode {self.number}; there are "
                f"{self._collection.actions} actions"
            )
        self._take(*self._enter(state, probabilities), action, propensity)
        self.skip_draws(draws)

    def skip_draws(self, draws: int) -> None:
        """Go on in the random stream as if so many numbers had been drawn."""
        if draws:
            self.draws += draws
            self._rng.bit_generator.advance(draws)  # type: ignore[attr-defined]  # PCG64 has it

    def observe(self, reward: float, next_state: Hashable | None) -> None:
        """The action gave `reward` and led to `next_state`; None where the episode terminated."""
        collection = self._collection
        if self._action is None or self._state is None:
            raise InputError(f"episode {self.number} has taken no action that can be observed")
        if not abs(reward) <= LARGEST_REWARD:  # true of NaN, too
            state = collection.states[self._state]
            checked_reward(reward, f"the reward of action {self._action} in state {state!r} is")
        successor = ENDED if next_state is None else collection.states.number(next_state)
        collection.record(self._state, self._action, reward, successor, not self.rewards)
        self.states.append(self._state)
        self.actions.append(self._action)
        self.rewards.append(float(reward))
        self.propensities.append(self._propensity)
        self.last_successor = successor
        self._state, self._action = successor, None
        self.terminated = successor == ENDED
        self.over = self.terminated or len(self.rewards) == collection.horizon

    def finish(self) -> None:
        """The episode counts as a whole; an action that was not observed is forgotten."""
        if not self.rewards:
            raise InputError(f"episode {self.number} has no step that could be kept")
        if self.finished:
            raise InputError(f"episode {self.number} was finished before")
        self._collection.keep(self)
        self.over = self.finished = True

    def _enter(self, state: Hashable, probabilities: Any) -> tuple[int, StandingPlan]:
        collection = self._collection
        if self.over:
            raise InputError(f"episode {self.number} is over after {len(self.rewards)} steps")
        if self._action is not None:
            raise InputError(f"episode {self.number} waits for what its last action led to")
        number = collection.states.number(state)
        if self._state is not None and number != self._state:
            raise InputError(
                f"episode {self.number} is in state {collection.states[self._state]!r}, and is "
                f"asked to act in state {state!r}"
            )
        collection.states.tell(number, probabilities)
        standing = self._standing
        if standing is None or standing.plan.lasts == 0:
            standing = collection.plan_in_force()
        collection.cover(standing, number)
        return number, standing

    def _selected(self, state: int, standing: StandingPlan) -> tuple[int, float]:
        collection = self._collection
        return standing.action(
            len(self.rewards),
            state,
            collection.states.room,
            collection.visits,
            self._rng,
        )

    def _take(self, state: int, standing: StandingPlan, action: int, propensity: float) -> None:
        standing.note(len(self.rewards), state, action)
        self._state, self._standing = state, standing
        self._action, self._propensity = action, propensity

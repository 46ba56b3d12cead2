"""Folding a log: many events after the other, the usual ones quickly.

Those are acts and rewards of episodes that go as they should: a log consists of little else, and
opening a campaign without a snapshot takes as long as its log. What is done here with them has the
effect that `rules` and `state` give them, to the last bit; everything else is left to these. Tests
hold the two ways against each other.
"""

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import nan
from typing import Any

import msgspec

from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.events import (
    Acted,
    Event,
    Rewarded,
    Started,
    Unreadable,
    decode_events,
)
from revar.campaigns.rules import replay
from revar.campaigns.state import CampaignState
from revar.campaigns.storage.interface import StoredEvent
from revar.campaigns.verdicts import Effect
from revar.model.validation import LARGEST_REWARD

MOST_WAITING = 10_000  # steps that statistics and history have not been told of


def fold(state: CampaignState, page: Sequence[StoredEvent]) -> None:
    """Replay the next events of the log."""
    events = decode_events([stored.body for stored in page])
    folder = _Folder(state)
    take = folder.take
    try:
        for (position, time, _), event in zip(page, events, strict=True):
            take(position, time, event)
    finally:
        folder.settle()


def events_in_effect(
    definition: Definition, events: Iterable[tuple[float, Event | Unreadable]]
) -> Iterator[tuple[float, Event, CampaignState]]:
    """The events of a log that took effect: the time, the event, and the state after it.

    That does not depend on the strategy, so the state is one of a strategy that costs nothing. Its
    statistics and its history lag behind.
    """
    strategy = StrategyRecord("on-policy")
    state = CampaignState(msgspec.structs.replace(definition, strategy=strategy))
    state.history.next_point = sys.maxsize  # nobody asks for it
    folder = _Folder(state)
    for position, (time, event) in enumerate(events, 1):
        if folder.take(position, time, event) and not isinstance(event, Unreadable):
            yield time, event, state


class _Folder:
    """Takes one event after the other; what steps tell statistics and history waits.

    They are told at once by `settle`, before anything reads them.
    """

    def __init__(self, state: CampaignState) -> None:
        self._state = state
        self._latest = 0.0  # time of a usual event
        self._states: list[int] = []
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._successors: list[int] = []
        self._times: list[float] = []

    def take(self, position: int, time: float, event: Event | Unreadable) -> bool:
        """Replay the next event; whether it took effect."""
        state, kind = self._state, type(event)
        usual = _USUAL.get(kind)
        if usual is not None and position == state.position + 1 and usual(self, event, time):
            state.position = position
            if time > self._latest:
                self._latest = time
            return True
        if kind is not Started:  # whose rules ask for nothing that waits
            self.settle()
        return replay(state, position, time, event).effect is Effect.TAKEN

    def settle(self) -> None:
        """Tell statistics and history of what waits for that."""
        history = self._state.history
        if self._latest:
            history.saw_event(self._latest)
            self._latest = 0.0
        if self._times:
            columns = self._states, self._actions, self._rewards, self._successors
            self._state.collection.statistics.record_steps(*columns)
            history.saw_steps(self._times)
            for column in (*columns, self._times):
                column.clear()

    def act(self, event: Acted, time: float) -> bool:
        """Take an action that is due, in a state that is known; False where that is not so."""
        state = self._state
        record = state.leases.get(event.episode)  # one that holds its place
        if record is None or record.finished_early or record.episode is None:
            return False
        episode, collection = record.episode, state.collection
        key = bytes(event.state)
        number = state.entered.get(key)
        if (
            number is None
            or (episode.state != number and episode.state is not None)
            or episode.action is not None
            or event.step != len(episode.rewards)
            or episode.over
            or event.put_plan_off
            or not 0 <= event.action < collection.actions
            or not (
                event.probabilities is None if state.has_table else _as_before(state, event, key)
            )
        ):
            return False
        plan = episode.plan
        if plan is None or plan.plan.lasts == 0:
            plan = collection.plan_in_force
            if plan is None or plan.expired:
                self.settle()
                plan = collection.put_plan_in_force()
        propensity = event.propensity
        episode.take(number, plan, event.action, nan if propensity is None else propensity)
        if event.draws:
            episode.skip_draws(event.draws)
        record.seen = time
        return True

    def reward(self, event: Rewarded, time: float) -> bool:
        """Complete a step that waits for its reward, without amounts; False where none does."""
        state = self._state
        record = state.leases.get(event.episode)  # one that holds its place
        if record is None or record.finished_early or record.episode is None:
            return False
        episode, reward = record.episode, event.reward
        number, action = episode.state, episode.action
        if (
            action is None
            or number is None
            or event.step != len(episode.rewards)
            or state.has_amounts
            or event.cost is not None
            or event.amounts
            or not abs(reward) <= LARGEST_REWARD
        ):
            return False
        record.seen = time
        successor = episode.advance(reward, event.following)
        self._states.append(number)
        self._actions.append(action)
        self._rewards.append(reward)
        self._successors.append(successor)
        self._times.append(time)
        if episode.over:
            if len(self._times) > MOST_WAITING or state.looks_next:
                self.settle()
            state.finish(record, time)
        return True


_USUAL: dict[type, Callable[[_Folder, Any, float], bool]] = {
    Acted: _Folder.act,
    Rewarded: _Folder.reward,
}


def _as_before(state: CampaignState, event: Acted, key: bytes) -> bool:
    """Whether one target policy's row is the very one that was sent with an earlier act."""
    rows = state.policy[key]
    return len(rows) == 1 and event.probabilities == list(rows[0])


@contextmanager
def without_cycles() -> Iterator[None]:
    """Have Python not look for cycles meanwhile: all that is made here is kept."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()

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
from types import MethodType
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
from revar.model.trajectory import ENDED
from revar.model.validation import LARGEST_REWARD

MOST_WAITING = 10_000  # steps that statistics and history have not been told of


def fold(state: CampaignState, page: Sequence[StoredEvent]) -> None:
    """Replay the next events of the log."""
    if page:
        positions, times, bodies = zip(*page, strict=True)
        for _ in _replay_all(state, zip(positions, times, decode_events(bodies), strict=True)):
            pass


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
    log = ((position, time, event) for position, (time, event) in enumerate(events, 1))
    for time, event in _replay_all(state, log):
        if not isinstance(event, Unreadable):
            yield time, event, state


def _replay_all(
    state: CampaignState, log: Iterable[tuple[int, float, Event | Unreadable]]
) -> Iterator[tuple[float, Event | Unreadable]]:
    """Replay the next events; those that took effect, with their times."""
    folder, position, latest = _Folder(state), state.position, 0.0
    usual = {kind: MethodType(way, folder) for kind, way in _USUAL.items()}
    try:
        for place, time, event in log:
            kind = type(event)
            way = usual.get(kind)
            if way is not None and place == position + 1 and way(event, time):
                position = place
                latest = time if time > latest else latest
                yield time, event
                continue
            if kind is not Started:  # whose rules ask for nothing that waits
                folder.settle()
            state.position = position
            verdict = replay(state, place, time, event)
            position = state.position
            if verdict.effect is Effect.TAKEN:
                yield time, event
    finally:
        state.position = max(position, state.position)
        folder.settle()
        if latest:
            state.history.saw_event(latest)


class _Folder:
    """Takes usual events; what their steps tell statistics and history waits.

    They are told at once by `settle`, before anything reads them.
    """

    def __init__(self, state: CampaignState) -> None:
        self._state = state
        self._collection = state.collection
        self._leases, self._entered = state.leases, state.entered
        self._has_table, self._has_amounts = state.has_table, state.has_amounts
        self._numbers = {b"null": ENDED}  # of next states
        # Steps that wait: state, action, reward, next state, and when they were complete.
        self._steps: list[tuple[int, int, float, int, float]] = []

    def settle(self) -> None:
        """Tell statistics and history of the steps that wait."""
        if self._steps:
            *columns, times = zip(*self._steps, strict=True)
            self._collection.statistics.record_steps(*columns)
            self._state.history.saw_steps(times)
            self._steps.clear()

    def act(self, event: Acted, time: float) -> bool:
        """Take an action that is due, in a state that is known; False where that is not so."""
        record = self._leases.get(event.episode)  # one that holds its place
        if record is None:
            return False
        episode, action, key = record.episode, event.action, bytes(event.state)
        number = self._entered.get(key)
        if (
            episode is None
            or number is None
            or (episode.state != number and episode.state is not None)
            or episode.action is not None
            or event.step != len(episode.rewards)
            or episode.over
            or record.finished_early
            or event.put_plan_off
            or not 0 <= action < self._collection.actions
            or not (event.probabilities is None if self._has_table else self._knows(event, key))
        ):
            return False
        plan = episode.plan
        if plan is None or plan.plan.lasts == 0:
            plan = self._collection.plan_in_force
            if plan is None or plan.expired:
                self.settle()
                plan = self._collection.put_plan_in_force()
        propensity = event.propensity
        episode.take(number, plan, action, nan if propensity is None else propensity)
        if event.draws:
            episode.skip_draws(event.draws)
        record.seen = time
        return True

    def _knows(self, event: Acted, key: bytes) -> bool:
        """Whether one target policy's row is the very one that was sent with an earlier act."""
        rows = self._state.policy[key]
        return len(rows) == 1 and event.probabilities == list(rows[0])

    def reward(self, event: Rewarded, time: float) -> bool:
        """Complete a step that waits for its reward, without amounts; False where none does."""
        record = self._leases.get(event.episode)  # one that holds its place
        if record is None:
            return False
        episode, reward = record.episode, event.reward
        if (
            episode is None
            or (action := episode.action) is None
            or (number := episode.state) is None
            or event.step != len(episode.rewards)
            or record.finished_early
            or self._has_amounts
            or event.cost is not None
            or event.amounts
            or not -LARGEST_REWARD <= reward <= LARGEST_REWARD
        ):
            return False
        key = bytes(event.next_state)
        successor = self._numbers.get(key)
        if successor is None:
            successor = self._numbers[key] = self._collection.states.number(key)
        record.seen = time
        episode.advance(number, action, reward, successor)
        self._steps.append((number, action, reward, successor, time))
        if episode.over:
            if len(self._steps) > MOST_WAITING or self._state.looks_next:
                self.settle()
            self._state.finish(record, time)
        return True


_USUAL: dict[type, Callable[[_Folder, Any, float], bool]] = {
    Acted: _Folder.act,
    Rewarded: _Folder.reward,
}


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

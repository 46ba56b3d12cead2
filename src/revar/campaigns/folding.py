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
from revar.campaigns.events import Acted, Event, Rewarded, Unreadable, decode_events
from revar.campaigns.rules import replay
from revar.campaigns.state import CampaignState
from revar.campaigns.storage.interface import StoredEvent
from revar.campaigns.verdicts import Effect
from revar.model.validation import LARGEST_REWARD


def fold(state: CampaignState, page: Sequence[StoredEvent]) -> None:
    """Replay the next events of the log."""
    events = decode_events([stored.body for stored in page])
    latest = 0.0
    for (position, time, _), event in zip(page, events, strict=True):
        if _take_usual(state, position, time, event):
            latest = max(latest, time)
        else:
            replay(state, position, time, event)
    if latest:
        state.history.saw_event(latest)


def events_in_effect(
    definition: Definition, events: Iterable[tuple[float, Event | Unreadable]]
) -> Iterator[tuple[float, Event, CampaignState]]:
    """The events of a log that took effect: the time, the event, and the state after it.

    That does not depend on the strategy, so the state is one of a strategy that costs nothing.
    """
    strategy = StrategyRecord("on-policy")
    state = CampaignState(msgspec.structs.replace(definition, strategy=strategy))
    state.history.next_point = sys.maxsize  # nobody asks for it
    for position, (time, event) in enumerate(events, 1):
        taken = _take_usual(state, position, time, event)
        if not taken:
            taken = replay(state, position, time, event).effect is Effect.TAKEN
        if taken and not isinstance(event, Unreadable):
            yield time, event, state


def _take_usual(
    state: CampaignState, position: int, time: float, event: Event | Unreadable
) -> bool:
    """Let an event take effect that is as usual; False where it is not, and nothing changed."""
    usual = _USUAL.get(type(event))
    if usual is None or position != state.position + 1 or not usual(state, event, time):
        return False
    state.position = position
    return True


def _act(state: CampaignState, event: Acted, time: float) -> bool:
    """Take an action that is due, in a state that is known; False where that is not so."""
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
        or not (event.probabilities is None if state.has_table else _as_before(state, event, key))
    ):
        return False
    plan = episode.plan
    if plan is None or plan.plan.lasts == 0:
        plan = collection.put_plan_in_force()
    propensity = event.propensity
    episode.take(number, plan, event.action, nan if propensity is None else propensity)
    if event.draws:
        episode.skip_draws(event.draws)
    record.seen = time
    return True


def _as_before(state: CampaignState, event: Acted, key: bytes) -> bool:
    """Whether one target policy's row is the very one that was sent with an earlier act."""
    rows = state.policy[key]
    return len(rows) == 1 and event.probabilities == list(rows[0])


def _reward(state: CampaignState, event: Rewarded, time: float) -> bool:
    """Complete a step that waits for its reward, without amounts; False where that is not so."""
    record = state.leases.get(event.episode)  # one that holds its place
    if record is None or record.finished_early or record.episode is None:
        return False
    episode = record.episode
    if (
        episode.action is None
        or event.step != len(episode.rewards)
        or state.has_amounts
        or event.cost is not None
        or event.amounts
        or not abs(event.reward) <= LARGEST_REWARD
    ):
        return False
    record.seen = time
    episode.observe(event.reward, event.following)
    state.history.saw_step(time)
    if episode.over:
        state.finish(record, time)
    return True


_USUAL: dict[type, Callable[[CampaignState, Any, float], bool]] = {Acted: _act, Rewarded: _reward}


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

"""Merging: the episodes of one campaign into another that asks the same question."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from revar.campaigns.episode import DescribedCampaign
from revar.campaigns.events import (
    Acted,
    Event,
    Extended,
    Finished,
    Merged,
    Rewarded,
    Started,
    Unreadable,
)
from revar.campaigns.folding import events_in_effect
from revar.campaigns.rules import judge
from revar.campaigns.state import CampaignState
from revar.campaigns.verdicts import Effect, Verdict
from revar.errors import InputError

PIECE = 1_000  # events appended at a time
Read = TypeVar("Read")


class LoggedCampaign(DescribedCampaign, Protocol):
    """A campaign whose log can be read and added to, here or behind a service."""

    @property
    def name(self) -> str:
        """Its name."""

    def events(self) -> Iterator[tuple[float, Event | Unreadable]]:
        """See `Campaign.events`."""

    def read(self, reader: Callable[[CampaignState, float], Read]) -> Read:
        """See `Campaign.read`."""

    def add(self, events: Sequence[Event]) -> list[Verdict]:
        """See `Campaign.add`."""


@dataclass(frozen=True)
class MergeResult:
    """What merging changed."""

    episodes: int  # new ones
    events: int  # that took effect


def merge(target: LoggedCampaign, source: LoggedCampaign) -> MergeResult:
    """Add to `target` what `source` knows and `target` does not; `source` is not changed.

    Episodes are told apart by their ids, so that merging twice changes nothing the second time.
    A campaign of another id brings its budget along; a copy of the same campaign does not.
    """
    if target.definition.asks() != source.definition.asks():
        raise InputError(
            f"campaigns {target.name!r} and {source.name!r} do not ask the same question: "
            f"policies, horizon, discount and actions must agree"
        )
    if target.definition.keeps() != source.definition.keeps():
        raise InputError(
            f"campaigns {target.name!r} and {source.name!r} do not collect alike: the unit of the "
            f"budget and the limits must agree"
        )
    events: list[Event] = []
    if target.id != source.id:
        events.append(Merged.of(source.id, source.definition.allowance))
    for _, event, _ in events_in_effect(source.definition, source.events()):
        events += _translate(event, target, source)
    before = target.read(lambda state, _: len(state.records))
    events = target.read(lambda state, now: [e for e in events if _is_news(state, e, now)])
    taken = 0
    for first in range(0, len(events), PIECE):
        verdicts = target.add(events[first : first + PIECE])
        taken += sum(verdict.effect is Effect.TAKEN for verdict in verdicts)
    after = target.read(lambda state, _: len(state.records))
    return MergeResult(after - before, taken)


def _translate(event: Event, target: LoggedCampaign, source: LoggedCampaign) -> list[Event]:
    """The event as another campaign needs it: results count, leases do not."""
    if isinstance(event, Started):
        return [Started(event.episode, merged=True)]
    if isinstance(event, Acted):
        return [msgspec.structs.replace(event, merged=True, put_plan_off=False)]
    if isinstance(event, Rewarded | Finished | Extended):
        return [event]
    if isinstance(event, Merged) and event.campaign not in (target.id, source.id):
        return [event]
    return []


def _is_news(state: CampaignState, event: Event, now: float) -> bool:
    """Whether the event might still take effect."""
    verdict = judge(state, event, now)
    return verdict.effect is not Effect.REPEATED and verdict.code != "episode-over"

"""Routes for the log itself: to read it elsewhere, and to add what was made elsewhere."""

from collections.abc import Iterator

from starlette.requests import Request

from revar.campaigns.added import check_event
from revar.campaigns.campaign import Campaign
from revar.campaigns.events import Event
from revar.campaigns.log import PAGE
from revar.campaigns.service.messages import (
    AddEvents,
    EventMessage,
    EventsMessage,
    VerdictsMessage,
)
from revar.campaigns.service.routing import CAMPAIGN, campaigns_of, find_thread, read, route
from revar.campaigns.storage.interface import StoredEvent
from revar.errors import InputError

LARGEST_PAGE = 2**22  # bytes of events in one reply, apart from the last of them
LAST_POSITION = 2**53 - 1


@route(
    "GET",
    CAMPAIGN + "/events",
    "Events of the log, as many as fit into a reply, from behind a position on",
    gives={200: EventsMessage},
)
async def list_events(request: Request) -> EventsMessage:
    """The events behind ?after=0."""
    after = _position(request.query_params.get("after", "0"))

    def look(campaign: Campaign) -> EventsMessage:
        storage = campaign.storage
        length, now = storage.length(campaign.id), storage.now()
        found = storage.read(campaign.id, after, PAGE)
        return EventsMessage([EventMessage(*each) for each in _fitting(found)], length, now)

    return await read(request, look)


@route(
    "POST",
    CAMPAIGN + "/events",
    "Add events that were made elsewhere; told again, each counts once",
    takes=AddEvents,
    gives={200: VerdictsMessage},
)
async def add_events(request: Request, body: AddEvents) -> VerdictsMessage:
    """What each of them did."""
    thread = await find_thread(request)
    events = list(_checked(thread.campaign, body.events))
    return VerdictsMessage(
        await campaigns_of(request).write(thread, lambda campaign: campaign.add(events))
    )


def _position(given: str) -> int:
    digits = given.isascii() and given.isdecimal() and len(given) <= len(str(LAST_POSITION))
    if not digits or int(given) > LAST_POSITION:
        raise InputError(f"after is {given!r:.40}; it must be a whole number from 0")
    return int(given)


def _fitting(events: list[StoredEvent]) -> Iterator[StoredEvent]:
    room = LARGEST_PAGE
    for event in events:
        if room <= 0:
            return
        room -= len(event.body)
        yield event


def _checked(campaign: Campaign, events: list[Event]) -> Iterator[Event]:
    for number, event in enumerate(events):
        try:
            yield check_event(campaign.definition, event)
        except InputError as error:
            raise InputError(f"events[{number}]: {error}") from None

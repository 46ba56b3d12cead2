"""What a storage has of a campaign, before any of it is replayed."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from revar.campaigns.definition import Definition, check_name, check_size
from revar.campaigns.rules import CampaignError, UnknownCampaignError
from revar.campaigns.state import CampaignState
from revar.campaigns.storage import Storage
from revar.campaigns.storage.interface import Entry, MissingCampaignError


def find_entry(storage: Storage, name: str) -> Entry:
    """The campaign of that name."""
    entry = storage.find(check_name(name))
    if entry is None:
        raise UnknownCampaignError(name)
    return entry


def empty_state(entry: Entry) -> CampaignState:
    """The state before the first event; `CampaignError` where the definition is damaged."""
    try:
        definition = msgspec.json.decode(entry.definition, type=Definition)
        check_size(definition.horizon, definition.actions, 1)
        return CampaignState(definition)
    except Exception as error:  # it may be damaged in any way
        reason = f"the definition of campaign {entry.name!r} cannot be read: {error}"
        raise CampaignError("unreadable", reason) from None


@contextmanager
def refuse_damage(entry: Entry) -> Iterator[None]:
    """Raise `CampaignError` where a log cannot be replayed."""
    try:
        yield
    except (AssertionError, TypeError, ValueError, OverflowError) as error:
        reason = f"the log of campaign {entry.name!r} cannot be read: {error}"
        raise CampaignError("unreadable", reason) from error


def check_there(storage: Storage, entry: Entry, least: int) -> None:
    """Refuse to go on where others have removed the campaign: a log never becomes shorter."""
    try:
        there = storage.length(entry.id) >= least
    except MissingCampaignError:  # it names the id
        there = False
    if not there:
        raise MissingCampaignError(entry.name)

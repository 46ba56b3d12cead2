"""A webhook: another system is told when a campaign ends, or stalls.

Campaigns are looked at from time to time, off the path of requests: those whose logs have grown,
and those that were not looked at yet. What had become of one before the service began is not told.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from urllib.parse import SplitResult, urlsplit, urlunsplit

import h11
import msgspec
from msgspec.structs import replace

from revar.campaigns.campaign import Campaign
from revar.campaigns.events import Archived, Reopened, decode_events
from revar.campaigns.rules import CampaignError
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.threads import CampaignThreads
from revar.campaigns.state import CampaignState
from revar.campaigns.status import condition_of
from revar.campaigns.storage import StorageError
from revar.campaigns.storage.address import host_in_ascii
from revar.campaigns.storage.interface import Entry, MissingCampaignError, Storage
from revar.errors import InputError

EVERY = 5.0  # seconds between two looks
TIMEOUT = 5.0  # seconds for a message and the reply to it, however it comes
AT_ONCE = 4  # messages
LOOKS_AT_ONCE = 4  # at campaigns that are open, and at ends of logs
OPENED_AT_ONCE = 4  # campaigns
TAIL = 100  # events at the end of a log, among which it is seen that a campaign is archived
PIECE = 4096  # bytes of a reply that are read at a time
TRIES = 5
PAUSE = 1.0  # seconds before the second try; each further one waits twice as long
WORTH_TELLING = {"complete": "ended", "closed": "ended", "archived": "ended", "stalled": "stalled"}

_logger = logging.getLogger("revar.webhook")


class WebhookMessage(msgspec.Struct, frozen=True):
    """What is sent, as JSON."""

    event: str  # ended or stalled
    campaign: str
    id: str
    condition: str
    episodes: int
    steps: int
    time: float  # seconds since 1970, by the storage's clock


@dataclass(frozen=True)
class Seen:
    """What was found when a campaign was looked at."""

    length: int  # of its log
    message: WebhookMessage | None = None  # None of one that was archived all the time
    stalls: float = inf  # when it does, where nothing more comes
    last: float = 0.0  # time of its last event

    def at(self, now: float) -> WebhookMessage | None:
        """What there is to tell at that time, if the log has not grown."""
        if self.message is None or now < self.stalls:
            return self.message
        return replace(self.message, event="stalled", condition="stalled", time=now)

    def since(self, message: WebhookMessage) -> float:
        """Since when that is so, at most."""
        return self.stalls if message.event == "stalled" else self.last


def check_webhook(address: str) -> str:
    """An address that messages may be sent to, in ASCII as HTTP wants it."""
    try:
        parts = urlsplit(address)
        readable = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        readable = False
    if not readable or parts.scheme not in ("http", "https"):
        raise InputError("the address of the webhook must begin with http:// or https://")
    if parts.username is not None:
        raise InputError("the address of the webhook must hold no user and no password")
    try:
        host = host_in_ascii(parts.netloc)
    except InputError as error:
        raise InputError(f"the address of the webhook must name a host: {error}") from None
    behind = urlunsplit(("", "", parts.path, parts.query, ""))
    if not behind.isascii() or not behind.isprintable() or " " in behind:
        raise InputError("the address of the webhook must have other signs percent-encoded")
    return f"{parts.scheme}://{host}{behind}"


class Webhook:
    """Looks at the campaigns of a service, and tells what has become of them."""

    def __init__(
        self,
        address: str,
        campaigns: CampaignThreads,
        metrics: Metrics,
    ) -> None:
        self._address = check_webhook(address)
        self._campaigns = campaigns
        self._metrics = metrics
        self._seen: dict[str, Seen] = {}  # by the campaign's id, like all that follows
        self._told: dict[str, str] = {}  # events
        self._unreadable: dict[str, int] = {}  # lengths of logs
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._failed: set[str] = set()  # that were logged
        self._sending: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._openings = asyncio.Semaphore(OPENED_AT_ONCE)
        self._began: float | None = None  # by the storage's clock

    async def watch(self) -> None:
        """Go on until it is cancelled."""
        try:
            while True:
                try:
                    await self._look()
                except Exception:
                    _logger.exception("the campaigns could not be looked at")
                await asyncio.sleep(EVERY)
        finally:
            for task in (*self._sending, *self._looking.values()):
                task.cancel()

    async def _look(self) -> None:
        """Begin to look at all campaigns of which something new may be known; none waits here."""
        try:
            now, lengths = await self._campaigns.ask_storage(_survey)
        except StorageError:
            return  # logged elsewhere
        if self._began is None:
            self._began = now
        there = {entry.id for entry, _ in lengths}
        for kept in (self._seen, self._told, self._unreadable):
            for gone in kept.keys() - there:
                del kept[gone]
        for entry, length in lengths:
            seen = self._seen.get(entry.id)
            if seen is not None and seen.length == length:
                self._tell(entry.id, seen.at(now))
            elif entry.id not in self._looking and self._unreadable.get(entry.id) != length:
                task = asyncio.create_task(self._look_at(entry, length, self._began))
                self._looking[entry.id] = task
                task.add_done_callback(partial(self._looked_at, entry.id))

    async def _look_at(self, entry: Entry, length: int, began: float) -> None:
        try:
            async with self._looks:
                archived = await self._campaigns.ask_storage(
                    lambda storage: _archived_at(storage, entry, length)
                )
            known = self._told.get(entry.id)
            if archived is not None and (known == "ended" or (known is None and archived <= began)):
                self._told[entry.id] = "ended"
                self._seen[entry.id] = Seen(length)
                return
            # Who looks at what is open waits for no opening.
            places = self._looks if self._campaigns.is_open(entry.name) else self._openings
            async with places:
                # One that others add to is worth its memory: it is not read anew each time.
                grows = entry.id in self._seen
                seen, now = await self._campaigns.look(entry.name, _see, keep=grows)
        except CampaignError:
            self._unreadable[entry.id] = length
            return
        except StorageError:
            return  # logged elsewhere
        except Exception:  # of one campaign; the others are to be heard of
            if entry.id not in self._failed:
                _logger.exception("campaign %s could not be looked at", entry.name)
            self._failed.add(entry.id)
            return
        message = seen.at(now)
        if message is not None and entry.id not in self._told and seen.since(message) <= began:
            self._told[entry.id] = message.event
        self._seen[entry.id] = seen
        self._tell(entry.id, message)

    def _looked_at(self, campaign_id: str, task: "asyncio.Task[None]") -> None:  # noqa: ARG002 - as tasks call it
        del self._looking[campaign_id]

    def _tell(self, campaign_id: str, message: WebhookMessage | None) -> None:
        """Send what has not been told."""
        if message is None:
            return
        told = self._told.get(campaign_id, "")
        self._told[campaign_id] = message.event
        if message.event not in ("", told):
            task = asyncio.create_task(self._send(message))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, message: WebhookMessage) -> None:
        """Send it, several times if need be."""
        body = msgspec.json.encode(message)
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                async with self._places, asyncio.timeout(TIMEOUT):
                    await _post(urlsplit(self._address), body)
            except (OSError, h11.ProtocolError) as error:
                problem = error
            else:
                self._metrics.webhooks.labels("sent").inc()
                return
        self._metrics.webhooks.labels("failed").inc()
        _logger.error("%s of %s could not be told: %s", message.event, message.campaign, problem)


def _survey(storage: Storage) -> tuple[float, list[tuple[Entry, int]]]:
    """The time, and how long the log of each campaign is by then, or a little later."""
    now = storage.now()
    lengths: list[tuple[Entry, int]] = []
    for entry in storage.entries():
        with suppress(MissingCampaignError):  # removed since
            lengths.append((entry, storage.length(entry.id)))
    return now, lengths


def _archived_at(storage: Storage, entry: Entry, length: int) -> float | None:
    """When the campaign was archived, if the end of its log says that it is."""
    stored = storage.read(entry.id, max(0, length - TAIL), TAIL)
    events = decode_events([each.body for each in stored])
    for each, event in zip(reversed(stored), reversed(events), strict=True):
        if isinstance(event, Reopened):
            break
        if isinstance(event, Archived):
            return each.time
    return None


def _see(campaign: Campaign) -> tuple[Seen, float]:
    def read(state: CampaignState, now: float) -> tuple[Seen, float]:
        condition = condition_of(state, inf)  # as if all leases had run out
        before = condition_of(state, -inf)
        counts = state.finished, state.steps
        event = WORTH_TELLING.get(before, "")
        message = WebhookMessage(event, campaign.name, campaign.id, before, *counts, now)
        ends = [record.seen + state.definition.lease for record in state.leases.values()]
        stalls = max(ends) if condition == "stalled" else inf
        return Seen(state.position, message, stalls, state.history.last_event or 0.0), now

    return campaign.read(read)


async def _post(address: SplitResult, body: bytes) -> None:
    """Send it; an error where another status than a good one comes back."""
    secure = address.scheme == "https"
    port = address.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(address.hostname, port, ssl=secure or None)
    try:
        connection = h11.Connection(h11.CLIENT)
        asked = _request(address, len(body)), h11.Data(data=body), h11.EndOfMessage()
        writer.write(b"".join(connection.send(event) for event in asked))
        while not isinstance(reply := connection.next_event(), h11.Response):
            if reply is h11.NEED_DATA:
                connection.receive_data(await reader.read(PIECE))
    finally:
        writer.transport.abort()  # nothing else is of interest
    if not 200 <= reply.status_code < 300:
        raise OSError(f"it answered {reply.status_code}")


def _request(address: SplitResult, length: int) -> h11.Request:
    target = urlunsplit(("", "", address.path or "/", address.query, ""))
    headers = {
        "Host": address.netloc,
        "Content-Type": "application/json",
        "Content-Length": str(length),
        "Connection": "close",
    }
    return h11.Request(method="POST", target=target, headers=list(headers.items()))

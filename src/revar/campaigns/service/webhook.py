"""A webhook: another system is told when a campaign ends, or stalls.

Campaigns are looked at from time to time, off the path of requests. What is told first is whatever
changes after the service has begun to look.
"""

import asyncio
import logging
from urllib.parse import SplitResult, urlsplit, urlunsplit

import h11
import msgspec

from revar.campaigns.campaign import Campaign
from revar.campaigns.rules import CampaignError
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.threads import CampaignThreads
from revar.campaigns.state import CampaignState
from revar.campaigns.status import condition_of
from revar.campaigns.storage import StorageError
from revar.campaigns.storage.address import host_in_ascii
from revar.errors import InputError

EVERY = 5.0  # seconds between two looks
TIMEOUT = 5.0  # seconds for a message and the reply to it, however it comes
AT_ONCE = 4  # messages
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
        self._told: dict[str, str] = {}  # events, by the campaign's id
        self._failed: set[str] = set()  # names that were logged
        self._sending: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._looked = False

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
            for task in self._sending:
                task.cancel()

    async def _look(self) -> None:
        try:
            names = await self._campaigns.names()
        except StorageError:
            return  # logged elsewhere
        for name in names:
            try:
                found = await self._campaigns.read(name, _message)
            except (StorageError, CampaignError):
                continue
            except Exception:  # of one campaign; the others are to be heard of
                if name not in self._failed:
                    _logger.exception("campaign %s could not be looked at", name)
                self._failed.add(name)
                continue
            told = self._told.get(found.id, "")
            self._told[found.id] = found.event
            if self._looked and found.event not in ("", told):
                task = asyncio.create_task(self._send(found))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
        self._looked = True

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


def _message(campaign: Campaign) -> WebhookMessage:
    def read(state: CampaignState, now: float) -> WebhookMessage:
        condition = condition_of(state, now)
        event = WORTH_TELLING.get(condition, "")
        counts = state.finished, state.steps
        return WebhookMessage(event, campaign.name, campaign.id, condition, *counts, now)

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

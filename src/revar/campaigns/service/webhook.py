"""A webhook: another system is told when a campaign ends, or stalls.

Campaigns are looked at from time to time, off the path of requests. What is told first is whatever
changes after the service has begun to look.
"""

import asyncio
import logging
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit

import msgspec

from revar.campaigns.campaign import Campaign
from revar.campaigns.rules import CampaignError
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.threads import POOL, CampaignThreads
from revar.campaigns.state import CampaignState
from revar.campaigns.status import condition_of
from revar.campaigns.storage import StorageError
from revar.campaigns.storage.address import host_in_ascii
from revar.errors import InputError

EVERY = 5.0  # seconds between two looks
TIMEOUT = 5.0  # seconds for a reply
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
        self._pool = ThreadPoolExecutor(1, POOL + "webhook")
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
            self._pool.shutdown(wait=False, cancel_futures=True)

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
        body, loop = msgspec.json.encode(message), asyncio.get_running_loop()
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                await loop.run_in_executor(self._pool, _post, self._address, body)
            except (OSError, HTTPException) as error:
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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What was not configured gets no message."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""


_opener = urllib.request.OpenerDirector()
for _handler in (
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
    _NoRedirects,
):
    _opener.add_handler(_handler())


def _post(address: str, body: bytes) -> None:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        _opener.open(request, timeout=TIMEOUT).close()
    except HTTPError as error:
        with error:
            raise OSError(f"it answered {error.code}") from None

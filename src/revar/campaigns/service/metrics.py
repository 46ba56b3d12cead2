"""What a service counts and times, for Prometheus, and the line that it logs for a request."""

import asyncio
import logging
import time
from collections.abc import Callable, MutableMapping
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

from revar.campaigns.service.asgi import App, Message, Receive, Send
from revar.campaigns.service.logs import REQUESTS
from revar.campaigns.service.replies import reply_to_error
from revar.campaigns.storage import StorageError

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PLANNING = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "revar_requests",
            "Requests that were answered",
            ("method", "operation", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "revar_request_seconds",
            "Time from a request to the end of its reply",
            ("operation",),
            buckets=LATENCIES,
            registry=registry,
        )
        self.dropped = Counter(
            "revar_connections_dropped",
            "Connections that were refused or given up",
            ("reason",),
            registry=registry,
        )
        self.throttled = Counter(
            "revar_tokens_throttled",
            "Requests refused because of wrong tokens from their address",
            registry=registry,
        )
        self.storage_errors = Counter(
            "revar_storage_errors",
            "Calls that the storage did not carry out",
            ("access",),
            registry=registry,
        )
        self.storage_up = Gauge(
            "revar_storage_up",
            "Whether the last call of the storage was carried out",
            ("access",),
            registry=registry,
        )
        self.planning = Histogram(
            "revar_plan_seconds",
            "Time that plans took which were made in the background",
            buckets=PLANNING,
            registry=registry,
        )
        self.webhooks = Counter(
            "revar_webhooks", "Messages sent to the webhook", ("result",), registry=registry
        )

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """A number that is asked for when somebody reads the metrics."""
        Gauge(name, meaning, registry=self.registry).set_function(value)

    def reply(self) -> Response:
        """All of them in Prometheus' text format."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class RequestRecorder:
    """Counts, times and logs every request, whoever answers it."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._logger = logging.getLogger(REQUESTS)
        self._of = cache(self._find)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = None

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except asyncio.CancelledError:  # the service ends: nobody else cancels a request
            if status is None:
                ending = reply_to_error(StorageError("the service is shutting down"))
                await ending(scope, receive, note_status)
            # Else the server closes the connection, and notes in a line that the reply has no end.
        finally:
            self._note(scope, status or 500, time.perf_counter() - began)

    def _find(self, method: str, operation: str, status: int) -> tuple[Counter, Histogram]:
        """The metrics of such requests, of which there are few kinds."""
        count = self._metrics.requests.labels(method, operation, str(status))
        return count, self._metrics.seconds.labels(operation)

    def _note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        endpoint = scope.get("endpoint")
        operation = "none" if endpoint is None else getattr(endpoint, "__name__", "static")
        # A method is any word that a caller makes up; those of routes are few.
        method = scope["method"] if endpoint is not None and status != 405 else "other"
        count, timing = self._of(method, operation, status)
        count.inc()
        timing.observe(seconds)
        if self._logger.isEnabledFor(logging.INFO):
            fields = {
                "method": scope["method"],
                "path": scope["path"],
                "operation": operation,
                "status": status,
                "milliseconds": round(1e3 * seconds, 3),
                "client": (scope.get("client") or ("",))[0],
            }
            line = "%s %s %s"
            extra = {"fields": fields}
            self._logger.info(line, scope["method"], scope["path"], status, extra=extra)

"""A service in a thread of this process, and a proxy in front of one that loses messages."""

import http.client
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from revar.campaigns import Storage
from revar.campaigns.service.app import listen, make_app
from revar.campaigns.service.messages import CAMPAIGN_HEADER


@contextmanager
def running(storage: Storage, tokens: Sequence[str] = (), **settings: Any) -> Iterator[str]:
    """The address of a service that keeps its campaigns in that storage."""
    app = make_app(storage, tokens, **settings)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Proxy(ThreadingHTTPServer):
    """Hands messages on, and loses some: requests, answers, and parts of answers.

    `losses` are what happens to messages in turn, by the names below; then it loses nothing.
    """

    daemon_threads = True
    KINDS = ("request", "answer", "half", "busy", "down", "fine")

    def __init__(self, upstream: str, losses: Sequence[str], prefix: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urlsplit(upstream).netloc
        self.prefix = prefix
        self.address = f"http://127.0.0.1:{self.server_address[1]}{prefix}"
        self.acted: list[str] = []  # methods and paths of requests that reached the service
        self._losses = iter(losses)
        self._lock = threading.Lock()

    def next_loss(self) -> str:
        with self._lock:
            return next(self._losses, "fine")


class Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def do_DELETE(self) -> None:
        self.answer()

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        loss = self.server.next_loss()
        if loss in ("request", "busy", "down"):
            if loss != "request":
                self.respond(429 if loss == "busy" else 502, b"please wait", "text/plain")
            self.close_connection = True
            return
        status, answer, headers = self.forward(body)
        if loss == "fine":
            self.respond(status, answer, headers.get("Content-Type", ""), headers)
            return
        if loss == "half":
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2])
        self.close_connection = True

    def forward(self, body: bytes) -> tuple[int, bytes, http.client.HTTPMessage]:
        path = self.path.removeprefix(self.server.prefix)
        connection = http.client.HTTPConnection(self.server.upstream, timeout=20)
        kept = {
            name: value
            for name, value in self.headers.items()
            if name.lower() in ("authorization", "content-type", CAMPAIGN_HEADER.lower())
        }
        connection.request(self.command, path, body or None, kept)
        reply = connection.getresponse()
        answer = reply.read()
        connection.close()
        self.server.acted.append(f"{self.command} {path}")
        return reply.status, answer, reply.headers

    def respond(
        self, status: int, body: bytes, media: str, headers: http.client.HTTPMessage | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        if headers is not None and headers.get("Retry-After"):
            self.send_header("Retry-After", headers["Retry-After"])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def losing(upstream: str, losses: Sequence[str], prefix: str = "") -> Iterator[Proxy]:
    """A proxy that loses messages."""
    proxy = Proxy(upstream, losses, prefix)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def drawn_losses(seed: int, count: int, share: float = 0.4) -> list[str]:
    """What happens to `count` messages, a share of which is lost."""
    draw = random.Random(seed)
    kinds = [kind for kind in Proxy.KINDS if kind != "fine"]
    return [draw.choice(kinds) if draw.random() < share else "fine" for _ in range(count)]

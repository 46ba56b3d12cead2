"""A service that is told to stop ends in bounded time, though others never answer."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from revar.campaigns import Campaign, MemoryStorage, Storage
from revar.campaigns.service import app, threads, webhook
from tests.campaigns.serving import call

BOUNDS = (  # seconds, in place of those that a service has
    (app, "PATIENCE", 1),
    (app, "LAST_PATIENCE", 0.3),
    (threads, "STOPPING", 0.3),
    (threads, "CLOSING", 0.3),
    (webhook, "EVERY", 0.1),
)
SOON = 6.0  # the bounds together and what is needed besides; without them it would be 20
READY = "/ready"
START = "/api/campaigns/ads/episodes"


class Silent(MemoryStorage):
    """Gives what it has, but never answers who writes or closes."""

    def append(self, *_: Any) -> Any:
        threading.Event().wait()

    check_writable = close = append


def run_service(storage: Storage, told: str | None = None) -> None:
    """What the process does that is told to stop."""
    Campaign.create(storage, "ads", actions=2, horizon=1, episodes=5, strategy="on-policy")
    for module, bound, seconds in BOUNDS:
        setattr(module, bound, seconds)
    app.serve(
        storage,
        host="127.0.0.1",
        port=0,
        tokens=[],
        largest_request=2**20,
        started=lambda address: print(address, flush=True),
        webhook=told,
    )


def ask(port: int, method: str, path: str, answers: dict[str, Any]) -> None:
    """Ask for what never comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, "{}", {"Content-Type": "application/json"})
    reply = connection.getresponse()
    answers[path] = reply.status, json.loads(reply.read())["error"]["message"]
    connection.close()


def test_a_storage_that_never_answers_does_not_keep_the_service() -> None:
    command = f"from {__name__} import Silent, run_service; run_service(Silent())"
    with subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            answers: dict[str, Any] = {}
            asked = [
                threading.Thread(target=ask, args=(port, *each, answers), daemon=True)
                for each in (("POST", START), ("GET", READY))
            ]
            for each in asked:
                each.start()
            time.sleep(0.5)  # until both wait for the storage
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=30)
        finally:
            process.kill()
        assert time.monotonic() - began < SOON
    assert process.returncode == 1
    assert "ended while these were still at work: revar-check_0" in told
    for each in asked:
        each.join(5)
        assert not each.is_alive()
    assert answers[START] == (503, "the service is shutting down")  # to be asked again
    assert answers[READY][0] == 503
    assert "Traceback" not in told


def test_a_webhook_that_never_ends_its_answer_does_not_keep_the_service() -> None:
    with socket.create_server(("127.0.0.1", 0)) as told:
        address = f"http://127.0.0.1:{told.getsockname()[1]}/"
        command = f"from {__name__} import MemoryStorage, run_service; " + (
            f"run_service(MemoryStorage(), {address!r})"
        )
        with subprocess.Popen(
            [sys.executable, "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline().rpartition(":")[2])
                time.sleep(0.5)  # what it finds at first is not told
                call(f"http://127.0.0.1:{port}", "/api/campaigns/ads/close", {})
                told.settimeout(20)
                caller, _ = told.accept()
                trickle = threading.Thread(target=send_slowly, args=(caller,), daemon=True)
                trickle.start()
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                _, log = process.communicate(timeout=30)
            finally:
                process.kill()
        assert time.monotonic() - began < SOON
        assert log == ""
        trickle.join(5)


def test_replies_that_nobody_takes_end_without_a_traceback() -> None:
    command = f"from {__name__} import MemoryStorage, run_service; run_service(MemoryStorage())"
    asked = b"GET /api/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with (
        subprocess.Popen(
            [sys.executable, "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        socket.socket() as deaf,
    ):
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", port))
            deaf.settimeout(1.0)
            with suppress(TimeoutError):
                deaf.sendall(2000 * asked)
            time.sleep(1.0)  # until replies fill the connection
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=30)
        finally:
            process.kill()
    assert "timeout graceful shutdown exceeded" in log  # a request was under way
    assert "Traceback" not in log


def send_slowly(caller: socket.socket) -> None:
    """A reply of which a little comes all the time, until nobody listens."""
    with caller, suppress(OSError):
        caller.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            caller.sendall(b"x")
            time.sleep(0.1)

"""A service that is told to stop ends in bounded time, though its storage never answers."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.service import app, threads

BOUNDS = (  # seconds, in place of those that a service has
    (app, "PATIENCE", 1),
    (app, "LAST_PATIENCE", 0.3),
    (threads, "STOPPING", 0.3),
    (threads, "CLOSING", 0.3),
)
SOON = 6.0  # the bounds together and what is needed besides; without them it would be 20
READY = "/ready"
START = "/api/campaigns/ads/episodes"


class Silent(MemoryStorage):
    """Gives what it has, but never answers who writes or closes."""

    def append(self, *_: Any) -> Any:
        threading.Event().wait()

    check_writable = close = append


def run_service() -> None:
    """What the process does that is told to stop."""
    storage = Silent()
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
    )


def ask(port: int, method: str, path: str, answers: dict[str, Any]) -> None:
    """Ask for what never comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, "{}", {"Content-Type": "application/json"})
    reply = connection.getresponse()
    answers[path] = reply.status, json.loads(reply.read())["error"]["message"]
    connection.close()


def test_a_storage_that_never_answers_does_not_keep_the_service() -> None:
    command = f"from {__name__} import run_service; run_service()"
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

"""A simulated ad server that takes part in a campaign over HTTP, with the standard library alone.

Visitors come in three segments and see up to three pages. On every page one of four ads is shown.
The policy in use, whose value is wanted, mostly shows the first two; the campaign decides which ads
are really shown, so that the value of that policy is known from as few visitors as possible.
"""

import contextlib
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

VISITORS = int(os.environ.get("VISITORS", "1500"))
THREADS = 8
PAGES = 3
SEGMENTS = {"new": 0.5, "returning": 0.35, "loyal": 0.15}
# The target policy by page: which ad it shows with which probability.
TARGET = [[0.45, 0.45, 0.05, 0.05], [0.45, 0.45, 0.05, 0.05], [0.25, 0.25, 0.25, 0.25]]
# The mean profit of each ad by segment. The last one sells less often, but for more.
PROFIT = {
    "new": [1.0, 0.8, 0.5, 2.0],
    "returning": [1.2, 1.0, 0.9, 3.0],
    "loyal": [0.6, 1.4, 1.1, 5.0],
}
SALE = [0.5, 0.4, 0.3, 0.2]  # chance of a sale
STAYS = [0.6, 0.5, 0.7, 0.4]  # chance that the visitor goes on to the next page


class Service:
    """The few calls that an ad server makes."""

    def __init__(self, address: str) -> None:
        self._host = urlsplit(address).netloc
        self._headers = {"Content-Type": "application/json"}
        if os.environ.get("REVAR_TOKEN"):
            self._headers["Authorization"] = f"Bearer {os.environ['REVAR_TOKEN']}"
        self._connection = http.client.HTTPConnection(self._host, timeout=30)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON. A call that got no answer is made again: nothing counts twice."""
        text = None if body is None else json.dumps(body)
        while True:
            try:
                self._connection.request(method, f"/api{path}", text, self._headers)
                reply = self._connection.getresponse()
                return reply.status, json.loads(reply.read())
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = http.client.HTTPConnection(self._host, timeout=30)


def serve_visitors(address: str, campaign: str, seed: int) -> None:
    """One thread of the ad server: a visitor is an episode, a page a step."""
    service, draw = Service(address), random.Random(seed)
    while True:
        status, episode = service.call("POST", f"/campaigns/{campaign}/episodes", {})
        if status == 409:  # the budget is spent, or with the other threads
            return
        path = f"/campaigns/{campaign}/episodes/{episode['episode']}"
        segment = draw.choices(list(SEGMENTS), list(SEGMENTS.values()))[0]
        for page in range(PAGES):
            state = {"segment": segment, "page": page}
            asked = {"step": page, "state": state, "probabilities": TARGET[page]}
            ad = service.call("POST", f"{path}/act", asked)[1]["action"]
            sold = draw.random() < SALE[ad]
            profit = PROFIT[segment][ad] / SALE[ad] * draw.uniform(0.5, 1.5) if sold else 0.0
            stays = page + 1 < PAGES and draw.random() < STAYS[ad]
            following = {"segment": segment, "page": page + 1} if stays else None
            told = {"step": page, "reward": profit, "next_state": following}
            service.call("POST", f"{path}/reward", told)
            if not stays:
                break


def true_value() -> float:
    """The target policy's expected profit of a visitor: this world is known exactly."""
    value = 0.0
    for segment, share in SEGMENTS.items():
        after = 0.0
        for page in reversed(range(PAGES)):
            after = sum(
                probability * (PROFIT[segment][ad] + (STAYS[ad] * after if page + 1 < PAGES else 0))
                for ad, probability in enumerate(TARGET[page])
            )
        value += share * after
    return value


@contextlib.contextmanager
def service_address() -> Iterator[str]:
    """The service that REVAR_ADDRESS names, or one of our own, on loopback and for now."""
    if os.environ.get("REVAR_ADDRESS"):
        yield os.environ["REVAR_ADDRESS"]
        return
    command = shutil.which("revar", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if command is None:
        sys.exit("revar is not installed here; set REVAR_ADDRESS to a running service")
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [command, "serve", "--storage", f"sqlite:///{folder}/campaigns.db", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Run the campaign, and print what came of it beside the truth."""
    with service_address() as address:
        service = Service(address)
        campaign = f"ads-{random.randrange(10**6)}"
        question = {"name": campaign, "actions": 4, "horizon": PAGES, "episodes": VISITORS}
        status, reply = service.call("POST", "/campaigns", question)
        if status != 201:
            sys.exit(reply["error"]["message"])
        print(f"{VISITORS} visitors; watch them at {address}/campaigns/{campaign}")
        threads = [
            threading.Thread(target=serve_visitors, args=(address, campaign, seed))
            for seed in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = service.call("GET", f"/campaigns/{campaign}/estimate")[1]
        print(f"estimated profit of a visitor: {found['value']:.3f}")
        print(f"95% interval: {found['low']:.3f} to {found['high']:.3f}")
        print(f"the truth: {true_value():.3f}")


if __name__ == "__main__":
    main()

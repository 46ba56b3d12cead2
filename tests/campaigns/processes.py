"""Workers and services in processes of their own, forked from one that has loaded everything.

A new one is there within milliseconds. Workers write down what they are about to send, and what
was acknowledged.
"""

import http.client
import importlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from revar.campaigns import Campaign, MemoryStorage, open_storage
from revar.campaigns.service.app import make_app, serve

NAME = "campaign"
HORIZON = 4
PAUSE = 0.002  # seconds that a worker thinks about each step
POLICY = {"a": [0.7, 0.3], "b": [0.2, 0.8]}
POLICIES = {"old": POLICY, "new": {"a": [0.5, 0.5], "b": [0.1, 0.9]}}


def outcome(episode: str, step: int, action: int) -> tuple[float, str | None]:
    """What an action leads to: drawn, but the same for everybody who asks again."""
    draw = random.Random(f"{episode}/{step}/{action}")
    reward = draw.gauss(float(action), 1.0 + step)
    return reward, draw.choice(["a", "b", "a", "b", None])


class Notes:
    """Lines in a file; each is written in one piece, and survives its writer."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, kind: str, **fields: Any) -> None:
        os.write(self._file, json.dumps({"kind": kind, **fields}).encode() + b"\n")


class Caller:
    """Sends a request until it is answered: the service may be down."""

    def __init__(self, port: int, notes: Notes) -> None:
        self.port, self.notes = port, notes
        self.connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.notes.add("sent", path=path, body=body)
        while True:
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                self.connection.request(
                    "POST",
                    f"/api/campaigns/{NAME}{path}",
                    json.dumps(body),
                    {"Content-Type": "application/json"},
                )
                reply = self.connection.getresponse()
                status, answer = reply.status, json.loads(reply.read())
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                self.connection = None
                time.sleep(0.01)
                continue
            if status == 503:  # the storage is away
                time.sleep(0.05)
                continue
            kind = "acknowledged" if status < 300 else "refused"
            self.notes.add(kind, path=path, body=body, answer=answer)
            return status, answer


def play(caller: Caller, episode: dict[str, Any], left: Path | None = None) -> None:
    path = f"/episodes/{episode['id']}"
    while True:
        if left is not None:
            part = left.with_suffix(".part")
            part.write_text(json.dumps(episode))
            part.replace(left)
        step = episode["step"]
        status, answer = caller.post(f"{path}/act", {"step": step, "state": episode["state"]})
        if status == 409:  # its place has gone to another episode, or the step was taken before
            return
        assert status == 200, answer
        time.sleep(random.expovariate(1 / PAUSE))
        reward, following = outcome(episode["id"], step, answer["action"])
        status, answer = caller.post(
            f"{path}/reward", {"step": step, "reward": reward, "next_state": following}
        )
        assert status == 200, answer
        if answer["over"]:
            caller.post(f"{path}/finish", {})
            return
        episode = {**episode, "step": step + 1, "state": following}


def forked(function: Callable[[], None]) -> int:
    """Run the function in a child; its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            random.seed()
            function()
            code = 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def service(storage: str, port: int) -> Callable[[], None]:
    """What the process of a service does."""
    return lambda: serve(
        open_storage(storage),
        host="127.0.0.1",
        port=port,
        tokens=[],
        largest_request=2**20,
        started=lambda address: None,
    )


def await_service(port: int) -> None:
    """Until it listens; what it has to read of the log it reads at the first request."""
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", f"/api/campaigns/{NAME}")
            connection.getresponse().read()
            connection.close()
        except (OSError, http.client.HTTPException):
            time.sleep(0.005)
        else:
            return


def warm_up() -> None:
    """Load compiled code and the server before the first fork."""
    for module in (
        "uvicorn.protocols.http.httptools_impl",
        "uvicorn.lifespan.on",
        "uvicorn.loops.auto",
    ):
        importlib.import_module(module)
    make_app(MemoryStorage())
    campaign = Campaign.create(
        MemoryStorage(), "warm", policy=POLICY, horizon=HORIZON, episodes=20, seed=0
    )
    for episode in campaign.episodes():
        state: str | None = "a"
        while not episode.over:
            reward, state = outcome(episode.id, episode.steps, episode.act(state))
            episode.reward(reward, state)
    campaign.status()

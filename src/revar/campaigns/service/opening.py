"""Opening campaigns beside the requests of others: Python runs one thread of a process at a time.

A long log is replayed by a process of its own, which gives back a snapshot. Where that is not
possible the log is replayed here, like a short one, with rests while others ask.
"""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from revar.campaigns.campaign import Campaign
from revar.campaigns.log import Progress
from revar.campaigns.snapshots import restore
from revar.campaigns.state import CampaignState
from revar.campaigns.storage.interface import Entry, Snapshot, Storage, StorageError
from revar.campaigns.stored import empty_state, find_entry

LONG = 50_000  # events: a process would take longer to start than to replay fewer
PROCESSES = 4  # at once
REST = 1.0  # times as long as a page of a log took, for which somebody waits
NICENESS = 10  # of a process that replays: whoever is asked meanwhile comes first
MOST_WORDS = 1000  # bytes of its errors that are kept
LINES = 3  # of these that the log tells
PATIENCE = 1.0  # seconds for a process that has failed to end
PROGRAM = "from revar.campaigns.service.opening import main; main()"
_logger = logging.getLogger("revar.service")


class Opener:
    """Opens campaigns of a storage; `asked` says how often others asked the service so far."""

    def __init__(self, storage: Storage, asked: Callable[[], int]) -> None:
        self._storage = storage
        self._asked = asked
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def open(self, name: str, progress: Progress) -> Campaign:
        """The campaign of that name, as it stands."""
        entry = find_entry(self._storage, name)
        state = _restore(entry, self._storage.load_snapshot(entry.id))
        if self._storage.length(entry.id) - state.position >= LONG:
            state = _restore(entry, self._replay_elsewhere(entry, progress))
        began, asked = time.monotonic(), self._asked()

        def note(read: int, length: int) -> None:
            nonlocal began, asked
            progress(read, length)
            if self._asked() > asked:
                time.sleep(REST * (time.monotonic() - began))
            began, asked = time.monotonic(), self._asked()

        # Without a state it looks for a snapshot itself: a process may have come a part of the way.
        return Campaign(self._storage, entry, note, state if state.position > 0 else None)

    def stop(self) -> None:
        """Give up what is being replayed; who waits for it is told."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                process.kill()

    def _replay_elsewhere(self, entry: Entry, progress: Progress) -> Snapshot | None:
        """What a process makes of a long log; None where that is not possible."""
        try:
            order = pickle.dumps((self._storage, entry))
        except (TypeError, AttributeError, pickle.PicklingError):  # no other process can have it
            return None
        process = self._start()
        if process is None:
            return None
        last_words = LastWords(process)
        try:
            made = _hear(process, order, progress)
        except Exception as error:  # whatever it said last, the log says it, too
            made = f"its process ended: {error}{last_words.read()}"
        finally:
            with self._lock:
                self._processes.remove(process)
            process.kill()
            process.communicate()
        if self._stopped:
            raise StorageError("the service is shutting down")
        if isinstance(made, Snapshot):
            return made
        _logger.warning("the log of campaign %s is replayed by the service: %s", entry.name, made)
        return None

    def _start(self) -> "subprocess.Popen[bytes] | None":
        """A process that waits for its order; None where there are many already."""
        # It imports what this process would, and nothing from where that happens to run.
        found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with self._lock:
            if self._stopped or len(self._processes) >= PROCESSES:
                return None
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-c", PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=found,
                )
            except OSError as error:
                _logger.warning("no process can be started to replay a log: %s", error)
                return None
            self._processes.add(process)
            return process


class LastWords:
    """The end of what a process writes as its errors, read all the time so that it never waits."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr is not None
        self._stream, process.stderr = process.stderr, None  # nobody else is to read it
        self._kept = b""
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        with self._stream:
            while piece := os.read(self._stream.fileno(), MOST_WORDS):
                self._kept = (self._kept + piece)[-MOST_WORDS:]

    def read(self) -> str:
        """The last lines, in parentheses; nothing where it said nothing."""
        self._reader.join(PATIENCE)
        lines = self._kept.decode(errors="replace").split("\n")
        said = "; ".join([line.strip() for line in lines if line.strip()][-LINES:])
        return f" ({said})" if said else ""


def _restore(entry: Entry, snapshot: Snapshot | None) -> CampaignState:
    """The state that was saved; where that is of no use, an empty one."""
    return restore(empty_state(entry).definition, snapshot)


def _hear(process: "subprocess.Popen[bytes]", order: bytes, progress: Progress) -> Any:
    """Hand the order over; what comes of it, after all that is said of its progress."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(order)
    process.stdin.flush()
    while isinstance(said := pickle.load(process.stdout), tuple):
        progress(*said)
    return said


def main() -> None:
    """Replay the log of a campaign: say how far it is, then the snapshot, or why there is none."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # meant for the service, which ends this process
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with os.fdopen(os.dup(1), "wb") as channel, suppress(BrokenPipeError):
        os.dup2(2, 1)  # what others print is no part of what is said
        try:
            storage, entry = pickle.load(sys.stdin.buffer)
            _say(channel, _replay(storage, entry, lambda *read: _say(channel, read)))
        except BrokenPipeError:
            raise
        except Exception as error:
            _say(channel, str(error))


def _replay(storage: Storage, entry: Entry, progress: Progress) -> Snapshot | str:
    campaign = Campaign(storage, entry, progress)
    snapshot = campaign.snapshot()
    if snapshot is None:
        return "a plan is waited for, of which snapshots know nothing"
    with suppress(StorageError):
        storage.save_snapshot(entry.id, snapshot)
    return snapshot


def _say(channel: IO[bytes], what: Any) -> None:
    pickle.dump(what, channel)
    channel.flush()

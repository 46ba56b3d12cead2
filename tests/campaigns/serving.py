"""A running service, as users run it: `revar serve` in a process of its own, on loopback."""

import json
import os
import resource
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

PROGRAM = "from revar.cli.main import main; main()"
COMMAND = [sys.executable, "-X", "faulthandler", "-c", PROGRAM]  # which tells where it crashes


class Service:
    """The process and its address."""

    def __init__(
        self, storage: str, *options: str, port: int = 0, token: str = "", files: int = 0
    ) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--storage", storage, "--port", str(port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "REVAR_TOKEN": token},
        )
        if files:  # before it has looked
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (files, files))
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http" not in line:
            message = self.said()
            self._reap()
            raise RuntimeError(message)
        self.address = line.split()[-1]
        self.port = int(self.address.rpartition(":")[2])

    def said(self) -> str:
        """What a service that has ended has logged."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def kill(self) -> None:
        """As a power failure would."""
        self.process.kill()
        self._reap()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """As a system that shuts down would; the exit code."""
        self.process.send_signal(number)
        return self._reap()

    def _reap(self) -> int:
        code = self.process.wait(timeout=30)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code


@contextmanager
def serving(storage: str, *options: str, token: str = "", files: int = 0) -> Iterator[Service]:
    """A service that is stopped in the end; it may have so many `files` open, if that is said."""
    service = Service(storage, *options, token=token, files=files)
    try:
        yield service
    finally:
        if service.process.returncode is None:  # nobody has stopped it
            code = service.process.poll()
            if code is None:
                service.stop()
            else:
                raise RuntimeError(f"the service ended by itself, with {code}:\n{service.said()}")


def call(
    address: str, path: str, body: Any = None, headers: Sequence[tuple[str, str]] = ()
) -> tuple[int, Any]:
    """GET, or POST with a body; status and JSON of the reply."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, dict(headers))
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())

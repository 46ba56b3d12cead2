"""A PostgreSQL server of our own for the tests: on loopback, in a new folder, gone afterwards."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def binaries() -> Path | None:
    """The folder of the server's programs: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "postgres").exists()), None)


def skip_outside_ci(reason: str) -> None:
    """A test that lacks a program of the machine: skipped, but never where CI runs it."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, and tests never skip in CI")
    pytest.skip(reason)


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server with a folder and a port of its own, which may be stopped and started again."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._user = _other_user() if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._data, self._port = folder / "data", free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"postgresql://revar@127.0.0.1:{self._port}"
        subprocess.run(
            [programs / "initdb", "-D", self._data, "-A", "trust", "-U", "revar", "-E", "UTF8"],
            check=True,
            capture_output=True,
            user=self._user,
            cwd=folder,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        )

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                self._programs / "postgres",
                *("-D", self._data, "-p", str(self._port), "-h", "127.0.0.1", "-k", self._folder),
                *("-c", "max_connections=100", "-c", "shared_buffers=32MB"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self._folder,
        )
        _await(self._port)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Also while somebody is connected; SIGQUIT is like a power failure."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=30)


@contextmanager
def running(programs: Path) -> Iterator[Server]:
    """A running server."""
    folder = Path(tempfile.mkdtemp(prefix="revar-postgres-"))
    try:
        made = Server(programs, folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """The address of a running server, without a database name."""
    with running(programs) as made:
        yield made.address


def _other_user() -> str:
    """The server refuses to run as root. Debian's package brings a user for it."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


def _await(port: int) -> None:
    import psycopg

    for _ in range(200):
        try:
            psycopg.connect(f"postgresql://revar@127.0.0.1:{port}/postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("PostgreSQL did not start")


def create_database(address: str, name: str) -> str:
    """The address of a new, empty database."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"{address}/{name}"


@contextmanager
def database(address: str, name: str) -> Iterator[str]:
    """The address of a new, empty database, which is removed in the end."""
    import psycopg
    from psycopg import sql

    made = create_database(address, name)
    try:
        yield made
    finally:
        with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)

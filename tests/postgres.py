"""A PostgreSQL server of our own for the tests: on loopback, in a new folder, gone afterwards."""

import os
import pwd
import shutil
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


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """The address of a running server, without a database name."""
    folder = Path(tempfile.mkdtemp(prefix="revar-postgres-"))
    user = _other_user() if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data, port = folder / "data", free_port()
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-A", "trust", "-U", "revar", "-E", "UTF8"],
            check=True,
            capture_output=True,
            user=user,
            cwd=folder,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        )
        process = subprocess.Popen(
            [
                programs / "postgres",
                *("-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder),
                *("-c", "max_connections=100", "-c", "shared_buffers=32MB"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user,
            cwd=folder,
        )
        try:
            _await(port)
            yield f"postgresql://revar@127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


@contextmanager
def database(address: str, name: str) -> Iterator[str]:
    """The address of a new, empty database."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"{address}/{name}"
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)

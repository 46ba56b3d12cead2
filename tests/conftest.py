"""Settings that all tests share."""

import os
import signal
import uuid
from collections.abc import Iterator

# Read when NumPy and JAX are loaded, here and in the processes that tests start: several of these
# run at a time, and would wait for each other's threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import pytest
from hypothesis import settings

from tests import browser as browsers
from tests import postgres

# Tests send themselves Ctrl-C, which a job in the background would ignore.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Compilation on first use is slow, so no deadline; derandomized, so that a run can be repeated.
settings.register_profile("revar", deadline=None, derandomize=True, database=None)
settings.load_profile("revar")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that no process waits for another's at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server for the session, on loopback."""
    programs = postgres.binaries()
    if programs is None:
        postgres.skip_outside_ci("there is no PostgreSQL server on this machine")
        return
    with postgres.server(programs) as address:
        yield address


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A new database of that server."""
    with postgres.database(postgres_server, f"test_{uuid.uuid4().hex[:12]}") as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[browsers.Browser]:
    """A browser for the session."""
    found = browsers.programs()
    if found is None:
        postgres.skip_outside_ci("there is no chromium with its driver on this machine")
        return
    with browsers.browsing(*found) as browser:
        yield browser


@pytest.fixture
def browser(chromium: browsers.Browser) -> Iterator[browsers.Browser]:
    """That browser; a page that complains in the console fails the test."""
    chromium.problems()
    yield chromium
    assert chromium.problems() == []
    chromium.driver.delete_all_cookies()

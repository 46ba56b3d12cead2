"""Every storage keeps the contracts, and reopens what was stored."""

from collections.abc import Callable
from pathlib import Path

import pytest

from revar.campaigns import MemoryStorage, Storage, open_storage
from revar.testing import STORAGE_CHECKS

Check = Callable[[Callable[[], Storage]], None]


@pytest.mark.parametrize("check", STORAGE_CHECKS, ids=lambda check: check.__name__)
def test_memory(check: Check) -> None:
    check(MemoryStorage)


@pytest.mark.parametrize("check", STORAGE_CHECKS, ids=lambda check: check.__name__)
def test_sqlite(check: Check, tmp_path: Path) -> None:
    check(lambda: open_storage(f"sqlite:///{tmp_path}/campaigns.db"))


@pytest.mark.parametrize("check", STORAGE_CHECKS, ids=lambda check: check.__name__)
def test_postgres(check: Check, postgres_url: str) -> None:
    check(lambda: open_storage(postgres_url))

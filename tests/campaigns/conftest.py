"""Settings that all tests of campaigns share."""

import pytest

from revar.campaigns.service import pages


@pytest.fixture(autouse=True)
def patient_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait for campaigns as long as what they show is being compiled."""
    monkeypatch.setattr(pages, "PATIENCE", 60.0)

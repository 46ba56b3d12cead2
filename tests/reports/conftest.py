"""What tests of reports share."""

import os
from collections.abc import Iterator

import pytest

from tests import browser as browsers


@pytest.fixture(scope="session")
def chromium() -> Iterator[browsers.Browser]:
    """A browser for the session; without one tests are skipped, but never where CI runs them."""
    found = browsers.programs()
    if found is None:
        reason = "there is no chromium with its driver on this machine"
        if os.environ.get("CI"):
            pytest.fail(f"{reason}, and tests never skip in CI")
        pytest.skip(reason)
    with browsers.browsing(*found) as browser:
        yield browser

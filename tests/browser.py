"""Headless Chromium for tests of pages, at a given width; its console is part of what is tested."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


@dataclass(frozen=True)
class Browser:
    """One window; `driver` is selenium's, for whatever is not here."""

    driver: webdriver.Chrome
    width: int

    def open(self, address: str) -> None:
        """Load a page in a window that is exactly as wide as was asked for."""
        self.resize()
        self.driver.get(address)

    def resize(self) -> None:
        """Give the window its width."""
        # Windows have a least width; the metrics of the device do not.
        metrics = {"width": self.width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def run(self, script: str) -> Any:
        """What the body of a JavaScript function returns in the page."""
        return self.driver.execute_script(script)

    def console(self) -> list[str]:
        """What the console has said since it was last asked, but for plain messages."""
        log = self.driver.execute("getLog", {"type": "browser"})["value"]
        return [entry["message"] for entry in log if entry["level"] in ("WARNING", "SEVERE")]


@contextmanager
def browser(width: int) -> Iterator[Browser]:
    """A browser of that width in pixels, with nothing left over from another one."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver_program = shutil.which("chromedriver")
    if program is None or driver_program is None:
        reason = "there is no chromium with a chromedriver on this machine"
        if os.environ.get("CI"):
            pytest.fail(f"{reason}, and tests never skip in CI")
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="revar-browser-", ignore_cleanup_errors=True) as folder:
        options = Options()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={Path(folder) / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(driver_program))
        try:
            yield Browser(driver, width)
        finally:
            driver.quit()

"""A headless Chromium for tests: pages at a given width, light or dark, and their complaints."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def programs() -> tuple[str, str] | None:
    """Chromium and its driver, if the machine has both."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    return (found[0], found[1]) if found[0] and found[1] else None


class Browser:
    """One window. Anything else of selenium is reached through `driver`."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads  # where files go that a page offers

    def open(self, address: str, *, width: int = 1280, dark: bool = False) -> None:
        """Show a page in a window of that width."""
        self.resize(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(address)

    def resize(self, width: int, height: int = 900) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def find(self, selector: str) -> Any:
        """The first element of a CSS selector, waited for."""
        from selenium.webdriver.common.by import By

        return self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, selector))

    def all(self, selector: str) -> list[Any]:
        from selenium.webdriver.common.by import By

        found: list[Any] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def text(self, selector: str) -> str:
        """The text of an element, also of one that the page replaces while it is read."""
        return str(self.until(lambda: self.find(selector).text))

    def until(self, condition: Any, seconds: float = 20.0) -> Any:
        """What the condition gives as soon as it is true."""
        from selenium.common.exceptions import (
            NoSuchElementException,
            StaleElementReferenceException,
        )
        from selenium.webdriver.support.ui import WebDriverWait

        patient = WebDriverWait(
            self.driver,
            seconds,
            poll_frequency=0.1,
            ignored_exceptions=(NoSuchElementException, StaleElementReferenceException),
        )
        return patient.until(lambda _: condition())

    def problems(self) -> list[str]:
        """What the console has complained of since the last call."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        wide: int = self.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wide

    def picture(self, path: Path) -> None:
        """The whole page, from top to bottom."""
        script = (
            "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        width, height = self.driver.execute_script(script)
        self.resize(width, max(height, 300))
        self.driver.save_screenshot(str(path))
        self.resize(width)


@contextmanager
def browsing(chromium: str, driver_program: str) -> Iterator[Browser]:
    """A browser with a new, empty profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(prefix="revar-browser-") as folder:
        downloads = Path(folder) / "downloads"
        downloads.mkdir()
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in FLAGS:
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={folder}/profile")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(driver_program))
        try:
            driver.execute_cdp_cmd(
                "Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
            )
            yield Browser(driver, downloads)
        finally:
            driver.quit()

"""The log of a service: standard logging, as text or a JSON object a line, with a rate limit."""

import json
import logging
import threading
import time
from typing import Any

REQUESTS = "revar.requests"  # one line a request, where that is asked for
LOGGERS = ("revar", "uvicorn", "asyncio")
MOST_ALIKE = 5  # lines from one place of the code in a window
WINDOW = 10.0  # seconds


class RateLimit(logging.Filter):
    """Lets a few lines from each place of the code through, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, int], tuple[float, int]] = {}  # window's begin, lines in it

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        if record.name == REQUESTS:
            return True
        place, now = (record.pathname, record.lineno), time.monotonic()
        with self._lock:
            began, lines = self._seen.get(place, (now, 0))
            if now - began < WINDOW:
                self._seen[place] = began, lines + 1
                return lines < MOST_ALIKE
            self._seen[place] = now, 1
        if lines > MOST_ALIKE:
            record.msg = f"{record.getMessage()} ({lines - MOST_ALIKE:,} lines like it left out)"
            record.args = ()
        return True


class JsonFormatter(logging.Formatter):
    """A JSON object a line; what `extra` has as `fields` stands beside the rest."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def configure_logs(*, as_json: bool) -> None:
    """Write to the standard error; as JSON, a line for every request, too."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if as_json else plain)
    handler.addFilter(RateLimit())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
    logging.getLogger("revar").setLevel(logging.INFO)
    logging.getLogger(REQUESTS).setLevel(logging.INFO if as_json else logging.WARNING)

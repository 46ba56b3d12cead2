"""Ctrl-C as a wish to see what is there, heard between two steps and never in the midst of one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def listening() -> Iterator[Interrupt]:
    """Note Ctrl-C instead of raising it; a second one is raised, for what does not return."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # signals reach the main thread only
        return

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)

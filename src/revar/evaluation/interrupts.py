"""What ends a collection early: Ctrl-C, and what goes wrong in an episode."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from revar.errors import InputError
from revar.model.episodes import Episodes


class Stopped(Exception):  # noqa: N818 - not an error
    """The user wants to see what is there."""

    complete: Episodes | None = None  # what was played before, where a player hands it back


class Interrupt:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.asked = False
        self._ignoring = False

    @contextmanager
    def ignore(self) -> Iterator[None]:
        """Ignore signals while something is being saved."""
        self._ignoring = True
        try:
            yield
        finally:
            self._ignoring = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Note the first signal; raise at the second."""
        del number, frame
        if self._ignoring:
            return
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def catch_interrupts() -> Iterator[Interrupt]:
    """Note Ctrl-C instead of raising; a second one raises, in case a step does not return."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # signals reach the main thread only
        return

    before = signal.signal(signal.SIGINT, interrupt.note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


class EpisodeError(InputError):
    """What went wrong in one episode of several that were under way."""

    def __init__(self, message: str, episode: int, complete: Episodes | None = None) -> None:
        super().__init__(message)
        self.episode = episode
        self.complete = complete  # what was played before, where a player hands it back

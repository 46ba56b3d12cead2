"""Ctrl-C, noted when it comes and acted upon between two steps.

Raised at once, it could come up in the middle of compiled code, which turns it into an error of its
own: numba into a SystemError, an open archive into a ValueError.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# How often those who wait for others look for Ctrl-C.
POLL_SECONDS = 0.1


class Interrupt:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.asked = False
        self.raised = False  # in the middle of whatever was going on
        self._ignoring = False

    @contextmanager
    def ignore(self) -> Iterator[None]:
        """Raise nothing while something is being saved."""
        self._ignoring = True
        try:
            yield
        finally:
            self._ignoring = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Note the first signal; raise at the second."""
        del number, frame
        if self.asked and not self._ignoring:
            self.raised = True
            raise KeyboardInterrupt
        self.asked = True


def _noting() -> Interrupt | None:
    """What notes signals now."""
    owner = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    return owner if isinstance(owner, Interrupt) else None


@contextmanager
def catch_interrupts() -> Iterator[Interrupt]:
    """Note Ctrl-C instead of raising; a second one raises, in case a step does not return.

    Inside another such block it is the same Interrupt: whoever looks first acts, and the others
    know. Signals reach the main thread only, and a process may ignore them: then nothing is noted
    but by a block around this one.
    """
    outer = _noting()
    main = threading.current_thread() is threading.main_thread()
    if outer is not None or not main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield outer or Interrupt()
        return

    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt.note)
    try:
        yield interrupt
    except Exception:
        if interrupt.raised:  # whatever became of it
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the next `stop_if_interrupted`, or for the end of the block."""
    with catch_interrupts():
        yield
        stop_if_interrupted()


def is_interrupted() -> bool:
    """Whether Ctrl-C was noted."""
    interrupt = _noting()
    return interrupt is not None and interrupt.asked


def stop_if_interrupted() -> None:
    """Raise KeyboardInterrupt here, where it does no harm, if Ctrl-C was noted."""
    if is_interrupted():
        raise KeyboardInterrupt

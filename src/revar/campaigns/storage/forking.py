"""After a fork: connections and locks of the parent are of no use to the child.

A connection that two processes share is read by both, and a lock that a thread of the parent
held is never released.
"""

import os
import weakref
from abc import abstractmethod
from typing import Any

_LIVING: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()
# What the parent still uses. To let go of it here would end it there, too.
_OF_PARENTS: list[Any] = []


class ForkAware:
    """Is told in the child of a fork, before anything else happens there."""

    def __init__(self) -> None:
        _LIVING.add(self)

    @abstractmethod
    def after_fork(self) -> None:
        """Make locks and connections anew."""


def leave_to_parent(belongings: Any) -> None:
    """Keep what must neither be used nor closed in this process."""
    _OF_PARENTS.append(belongings)


def _tell() -> None:
    for each in list(_LIVING):
        each.after_fork()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_tell)

from collections.abc import Sequence
from typing import Any


def find_families(names: Any, episodes: int) -> Sequence[Any]:
    try:
        from revar.critics.linear import LinearFamily
    except ImportError:
        return ()
    return (LinearFamily(),)

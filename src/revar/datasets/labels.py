"""States' keys as JSON: whole numbers, texts, booleans, and tuples of these."""

import json
from collections.abc import Hashable
from typing import Any

import numpy as np

from revar.errors import InputError


def labels_to_json(labels: tuple[Hashable, ...] | None) -> str:
    """Keys in the order of their states; tuples become lists."""
    return json.dumps(None if labels is None else [_plain(label) for label in labels])


def labels_from_json(text: str) -> tuple[Hashable, ...] | None:
    """The keys again; lists become tuples."""
    content = json.loads(text)
    return None if content is None else tuple(_frozen(label) for label in content)


def _plain(label: Any) -> Any:
    if isinstance(label, tuple):
        return [_plain(part) for part in label]
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool | int | str | float):
        return label
    raise InputError(
        f"state {label!r} cannot be stored; states are numbers, texts, or tuples of these"
    )


def _frozen(content: Any) -> Any:
    return tuple(_frozen(part) for part in content) if isinstance(content, list) else content

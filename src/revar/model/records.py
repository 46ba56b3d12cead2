"""Records as users see them: in a line of text, and as tables of pandas or Polars."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

from revar.errors import require_extra

LONGEST_PART = 90  # characters of one field


def in_a_line(record: Any) -> str:
    """A dataclass as `Name(field=value, ...)`: arrays by their shapes, and long parts cut."""
    parts = []
    for each in fields(record):
        value = getattr(record, each.name)
        nothing = value is None or (isinstance(value, tuple | dict | str) and not value)
        if each.repr and not nothing:
            parts.append(f"{each.name}={_short(value)}")
    return f"{type(record).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return str(list(value.shape))
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    if len(text) <= LONGEST_PART:
        return text
    if isinstance(value, Sized) and not isinstance(value, str):
        return f"<{type(value).__name__} of {len(value)}>"
    return f"{text[:LONGEST_PART]}..."


def html_table(rows: Iterable[Sequence[str]], *, caption: str, headings: Sequence[str] = ()) -> str:
    """A small table for notebooks; the first of every row is its name."""
    head = "".join(f"<th style='text-align:right'>{escape(name)}</th>" for name in headings)
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        + "".join(f"<td style='text-align:right'>{escape(text)}</td>" for text in texts)
        + "</tr>"
        for name, *texts in rows
    )
    return (
        f"<table><caption style='text-align:left'>{escape(caption)}</caption>"
        + (f"<thead><tr>{head}</tr></thead>" if head else "")
        + f"<tbody>{body}</tbody></table>"
    )


class HasColumns:
    """What can be shown as a table of named columns."""

    def columns(self) -> Mapping[str, Any]:
        """The columns, all of one length."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The columns as a pandas DataFrame."""
        return require_extra("pandas", "tables").DataFrame(dict(self.columns()))

    def to_polars(self) -> Any:
        """The columns as a Polars DataFrame."""
        return require_extra("polars", "tables").DataFrame(dict(self.columns()))

"""The episodes of two datasets as one."""

from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np

from revar.errors import InputError
from revar.model.arrays import IntArray
from revar.model.episodes import Episodes
from revar.model.trajectory import ENDED, Dataset

Known = TypeVar("Known")


def merge_datasets(first: Any, second: Any) -> Any:
    """The episodes of both; states are told apart by their labels, or else by their numbers.

    Amounts are kept where both have them.
    """
    if isinstance(first, Episodes) and isinstance(second, Episodes):
        return Episodes.join([first, second])
    if isinstance(first, Episodes) or isinstance(second, Episodes):
        raise InputError("episodes of states cannot be merged with episodes of observations")
    _check_labels(first, second)
    labels = None
    states, successors = second.states, second.successors
    if first.labels is not None or second.labels is not None:
        numbers: dict[Hashable, int] = {label: i for i, label in enumerate(_labels(first))}
        place: IntArray = np.array(
            [numbers.setdefault(label, len(numbers)) for label in _labels(second)] + [ENDED],
            dtype=np.int64,
        )
        labels = tuple(numbers)
        states, successors = place[states], place[successors]  # ENDED = -1 picks the last
    return Dataset(
        np.concatenate([first.start, first.start[-1] + second.start[1:]]),
        np.concatenate([first.states, states]),
        np.concatenate([first.actions, second.actions]),
        np.concatenate([first.rewards, second.rewards]),
        np.concatenate([first.successors, successors]),
        np.concatenate([first.propensities, second.propensities]),
        labels,
        _common(first.action_count, second.action_count, "actions"),
        _common(first.first_label, second.first_label, "as least labels"),
        {
            name: np.concatenate([amounts, second.amounts[name]])
            for name, amounts in first.amounts.items()
            if name in second.amounts
        },
    )


def _check_labels(first: Dataset, second: Dataset) -> None:
    """Labels of several parts are observations, and those of one environment are equally long."""
    if first.labels and second.labels:
        one, other = first.labels[0], second.labels[0]
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) != len(other):
            raise InputError(f"datasets that are merged have states such as {one} and {other}")


def _common(one: Known | None, other: Known | None, what: str) -> Known | None:
    """What both know; nothing is known of both where one does not know it."""
    if one is None or other is None:
        return None
    if one != other:
        raise InputError(f"datasets that are merged have {one} and {other} {what}")
    return one


def _labels(dataset: Dataset) -> tuple[Hashable, ...]:
    return tuple(range(dataset.states_seen)) if dataset.labels is None else dataset.labels

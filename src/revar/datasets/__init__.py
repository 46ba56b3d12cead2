"""Collected episodes on disk: files of our own, and Minari."""

from revar.datasets.files import (
    Conditions,
    append_dataset,
    load_collected,
    load_dataset,
    save_dataset,
)
from revar.datasets.merging import merge_datasets
from revar.datasets.minari import from_minari, to_minari

__all__ = [
    "Conditions",
    "append_dataset",
    "from_minari",
    "load_collected",
    "load_dataset",
    "merge_datasets",
    "save_dataset",
    "to_minari",
]

"""The file that episodes are kept in while they are collected."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revar.datasets.files import Conditions, save_dataset


@dataclass
class EpisodeFile:
    """A disk that is full or may not be written to stops no collection: the episodes are kept."""

    path: Path | None
    trouble: OSError | None = None  # of the last time it was written

    def write(self, dataset: Any, conditions: Conditions | None) -> None:
        """Write the episodes, or remember why that failed."""
        if self.path is None:
            return
        try:
            save_dataset(dataset, self.path, conditions=conditions)
            self.trouble = None
        except OSError as error:
            self.trouble = error

    def keep_elsewhere(self, dataset: Any, conditions: Conditions | None) -> str:
        """Where the episodes are that could not be written, in a sentence."""
        assert self.path is not None and self.trouble is not None
        why = self.trouble.strerror or str(self.trouble)
        text = f"{self.path} cannot be written ({why})"
        try:
            handle, name = tempfile.mkstemp(prefix="revar-", suffix=self.path.suffix)
            os.close(handle)
        except OSError:
            return f"{text}, and neither can a temporary file: the episodes are in memory alone"
        try:
            save_dataset(dataset, name, conditions=conditions)
        except OSError:
            Path(name).unlink(missing_ok=True)
            return f"{text}, and neither can {name}: the episodes are in memory alone"
        return f"{text}; the {len(dataset):,} episodes are in {name}"

"""Built-in experiments at a size that takes a moment, each run once in a process."""

import functools
import tempfile
from pathlib import Path

import msgspec

from revar.experiments.experiment import Experiment, load_built_in
from revar.experiments.results import Results
from revar.experiments.runner import run_experiment

RUNS = 4
# Budgets where there are several; regret is finite once the whole tree has been seen.
SEVERAL = {"regret": (1500, 3000, 6000)}


def tiny_experiment(name: str) -> Experiment:
    """The built-in experiment with few runs and few episodes."""
    experiment = load_built_in(name)
    along = isinstance(experiment.episodes, int)
    budgets = 60 if along else SEVERAL.get(name, (60, 120))
    return msgspec.structs.replace(experiment, runs=RUNS, episodes=budgets, quick=None)


@functools.cache
def tiny(name: str) -> Results:
    """Its results."""
    with tempfile.TemporaryDirectory() as folder:
        return run_experiment(tiny_experiment(name), Path(folder))

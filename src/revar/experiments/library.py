"""The experiments that come with the package."""

import difflib
from importlib.resources import files

from revar.errors import InputError
from revar.experiments.specification import Experiment, parsed_experiment

# In the order in which they are best read.
PAPER = ("tree", "gridworld", "ablation", "regret", "examples", "flow", "coverage", "peers")


def built_in(name: str) -> Experiment:
    """The built-in experiment of that name."""
    source = files("revar.experiments").joinpath("built_in", f"{name}.toml")
    if name not in PAPER and not (name.isidentifier() and source.is_file()):
        near = difflib.get_close_matches(name, PAPER, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PAPER)}"
        raise InputError(f"unknown experiment {name!r}; {hint}")
    return parsed_experiment(source.read_text(encoding="utf-8"), f"experiment {name!r}")

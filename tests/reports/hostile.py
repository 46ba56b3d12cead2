"""An experiment whose words try to be markup, formulas and programs."""

import tempfile
from functools import cache
from pathlib import Path

from revar.experiments.experiment import Experiment, record_of
from revar.experiments.results import Results
from revar.experiments.runner import run_experiment

SCRIPT = "</script><script>window.taken = 1</script>"
IMAGE = "<img src=x onerror=taken()>"
MARKUP = "<i>p</i>&amp;"
FORMULA = r"$\frac$ | [/bold] & $x"


def hostile_experiment() -> Experiment:
    """Every word that a user may choose, chosen badly."""
    declared = {
        "name": "hostile",
        "title": f"A title {SCRIPT} [/red]",
        "question": f"Is 1 < 2 & 'so' \"on\"? {IMAGE}",
        "runs": 3,
        "episodes": [20, 40, 80],
        "problems": [{"id": "tree", "label": MARKUP, "options": {"depth": 2}}],
        "strategies": [
            {"id": "on-policy", "label": SCRIPT},
            {"id": "flow", "label": FORMULA},
            {"id": "revar", "label": "0.10"},
        ],
        "figures": ["mse-curves", "scaled-curves", "peers", "coverage", "tree-proportions"],
        "tables": ["errors", "exact", "proportions", "peers", "coverages"],
        "unstated": [f"Nothing {SCRIPT}"],
        "command": f"echo '{IMAGE}'",
    }
    return record_of(declared, Experiment, "hostile")


@cache
def hostile() -> Results:
    """Its results."""
    with tempfile.TemporaryDirectory() as folder:
        return run_experiment(hostile_experiment(), Path(folder))

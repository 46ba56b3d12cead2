"""Results made up number by number, so that what is computed from them is known by hand."""

from typing import Any

import numpy as np

from revar.experiments.exact import ExactValues
from revar.experiments.experiment import Experiment, record_of
from revar.experiments.results import Manifest, Results, Series

EXACT_VALUES = ExactValues(
    problem="p",
    id="tree",
    structure="general",
    states=2,
    actions=2,
    horizon=2,
    value=0.0,
    monte_carlo=8.0,
    on_policy=4.0,
    oracle=2.0,
    limit=1.0,
    limit_gap=0.0,
    policy=[[0.5, 0.5], [0.5, 0.5]],
    oracle_behavior=[[0.25, 0.75], [0.5, 0.5]],
    oracle_visits=[[0.25, 0.75], [0.5, 0.5]],
    optimal_visits=[[0.3, 0.7], [0.5, 0.5]],
)


def series(
    errors: Any,  # [run] or [run, checkpoint]
    *,
    strategy: str = "on-policy",
    problem: str = "p",
    estimator: str = "certainty-equivalence",
    checkpoints: Any = None,
    standard_errors: Any = 1.0,
    variances: Any = None,
    visits: Any = ((1, 1), (1, 1)),
    budget: int = 100,
) -> Series:
    """A series of these errors; the true value is 0."""
    estimates = np.array(errors, dtype=float)
    if estimates.ndim == 1:
        estimates = estimates[:, None]
    points = np.array([budget] if checkpoints is None else checkpoints)
    return Series(
        true_value=0.0,
        strategy=strategy,
        estimator=estimator,
        checkpoints=points,
        estimates=estimates,
        standard_errors=np.broadcast_to(standard_errors, estimates.shape),
        unvisited_probability=np.zeros(estimates.shape),
        problem=problem,
        budget=int(points[-1]),
        variances=np.ones(len(estimates)) if variances is None else np.array(variances),
        visits=np.array(visits),
    )


def results(
    *parts: Series, exact: tuple[ExactValues, ...] = (EXACT_VALUES,), **declared: Any
) -> Results:
    """Results with these series; what is not declared follows from them."""
    budgets = sorted({part.budget for part in parts})
    along = len(budgets) == 1 and parts[0].checkpoints.size > 1
    fields: dict[str, Any] = {
        "name": "made-up",
        "title": "Made up",
        "question": "What if?",
        "runs": parts[0].runs,
        "episodes": budgets[0] if along else budgets,
        "problems": [{"id": each.id, "label": each.problem} for each in exact],
        "strategies": list(dict.fromkeys(part.strategy for part in parts)),
    }
    experiment = record_of(fields | declared, Experiment, "made up")
    manifest = Manifest(
        experiment=experiment,
        quick=False,
        digest=experiment.digest(),
        seed=0,
        versions={"revar-rl": "0", "numpy": "2"},
        seconds=12.0,
        exact=exact,
    )
    return Results(manifest, parts)

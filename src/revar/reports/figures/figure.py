"""What a figure is, and what several of them need."""

from collections.abc import Callable

import numpy as np

from revar.experiments.results import Results, Series
from revar.registry import Registry
from revar.reports.charts import Chart, Line, Picture, Style, styles_of

Figure = Callable[[Results], Chart | Picture]
figures: Registry[Figure] = Registry("figure", "revar.reports.figures")

EPISODES = "episodes K"


def styles(results: Results) -> dict[str, Style]:
    """The look of each strategy, by label."""
    return styles_of([(c.id, c.name) for c in results.experiment.strategy_choices()])


def curve(series: Series, style: Style, *, scaled: bool) -> Line:
    """The series' error against the number of episodes, from the first estimate of every run."""
    seen = np.isfinite(series.mse) & (series.mse > 0)
    y, error = (
        (series.scaled, series.scaled_standard_error)
        if scaled
        else (series.mse, series.mse_standard_error)
    )
    return Line(
        series.strategy, series.checkpoints[seen].astype(float), y[seen], style, error=error[seen]
    )


def along_budgets(parts: list[Series]) -> Series:
    """Series of several budgets, each read at its end, as one along its checkpoints."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Series(
        true_value=first.true_value,
        problem=first.problem,
        strategy=first.strategy,
        estimator=first.estimator,
        budget=parts[-1].budget,
        checkpoints=np.array([part.budget for part in parts]),
        estimates=np.column_stack([part.estimates[:, -1] for part in parts]),
        standard_errors=np.column_stack([part.standard_errors[:, -1] for part in parts]),
        unvisited_probability=np.column_stack(
            [part.unvisited_probability[:, -1] for part in parts]
        ),
        variances=parts[-1].variances,
        visits=parts[-1].visits,
    )

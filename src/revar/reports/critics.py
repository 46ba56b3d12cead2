"""The report of a study of critics: sentences, table, figures and page."""

from pathlib import Path
from typing import Any

import numpy as np

from revar.charts.chart import BLUE, GREY, Chart, Line, Panel, Style
from revar.experiments.critic_results import CriticResults, CriticSeries
from revar.model.arrays import FloatArray
from revar.reports.pages import command_of, draw_illustration, write_page
from revar.reports.tables import Table

WITH_CRITICS, MEAN_RETURN = Style(BLUE, "solid", "o"), Style(GREY, "dash", "s")


def answer_critics(results: CriticResults) -> list[str]:
    """What the study found, in sentences."""
    largest = max(size.episodes for size in results.experiment.sizes)
    last = [each for each in results.series if each.episodes == largest]
    gains = {each.problem: 1.0 / float(np.median(each.ratios)) for each in last}
    best, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    worst = max(results.series, key=lambda each: float(np.median(each.ratios)))
    runs = sum(each.runs.values.size for each in results.series)
    held = sum(each.coverage * each.runs.values.size for each in results.series)
    return [
        f"At {largest} episodes the mean return needs {gains[best]:.1f} times as many for the same "
        f"error on {best}, and {gains[least]:.2f} times on {least} (medians).",
        f"The largest ratio of variances is {np.median(worst.ratios):.2f}, on {worst.problem} with "
        f"{worst.episodes} episodes.",
        f"95% intervals hold in {held / runs:.1%} of all {runs:,} runs.",
    ]


def critic_tables(results: CriticResults) -> list[Table]:
    """Every problem at every size."""
    rows = []
    for problem in results.experiment.problems:
        for each in (series for series in results.series if series.problem == problem.name):
            low, middle, high = np.quantile(each.ratios, (0.1, 0.5, 0.9))
            rows.append(
                (
                    each.problem,
                    f"{each.episodes:,}",
                    f"{each.runs.values.size}",
                    f"{middle:.2f}",
                    f"{low:.2f} to {high:.2f}",
                    f"{1.0 / middle:.1f}",
                    f"{each.deviations.mean():+.2f} ± {_error(each.deviations):.2f}",
                    f"{each.deviations.std(ddof=1):.2f}",
                    f"{each.coverage:.1%}",
                    f"{np.median(each.runs.fitting_seconds):.1f}",
                )
            )
    return [
        Table(
            "The mean return with critics",
            (
                "problem",
                "episodes",
                "runs",
                "ratio",
                "10% to 90%",
                "gain",
                "mean z ± s.e.",
                "sd of z",
                "coverage",
                "fitting, s",
            ),
            tuple(rows),
            1,
            "Ratio: the variance of the value, over that of the mean return of the same episodes; "
            "the median of the runs, and where most of them lie. Gain: how many times as many "
            "episodes the mean return needs. z: the error of a run in standard errors. Coverage: "
            "of nominal 95% intervals.",
        )
    ]


def half_widths(results: CriticResults) -> Chart:
    """The width of intervals against episodes, beside that of the mean return."""
    chosen = results.experiment.drawn or tuple(p.name for p in results.experiment.problems[:4])
    panels = []
    for name in chosen:
        series = sorted(
            (each for each in results.series if each.problem == name),
            key=lambda each: each.episodes,
        )
        if series:
            panels.append(_panel(name, series))
    return Chart(
        "half-widths",
        "Half the width of 95% intervals against the episodes played, the mean over runs with "
        "bands of one standard error: from returns with critics, and from the mean return of the "
        "same episodes. Critics are learned from these episodes; no others are played.",
        tuple(panels),
    )


def _panel(name: str, series: list[CriticSeries]) -> Panel:
    episodes = np.array([each.episodes for each in series], dtype=np.float64)
    lines = []
    for label, style, field in (
        ("mean return", MEAN_RETURN, "mean_return_half_widths"),
        ("with critics", WITH_CRITICS, "half_widths"),
    ):
        widths = [getattr(each.runs, field) for each in series]
        means = np.array([each.mean() for each in widths])
        errors = np.array([_error(each) for each in widths])
        lines.append(Line(label, episodes, means, style, error=errors))
    return Panel(name, tuple(lines), "episodes", "half-width of the interval")


def _error(numbers: FloatArray) -> float:
    return float(numbers.std(ddof=1) / np.sqrt(numbers.size))


def write_critic_report(results: CriticResults, directory: Path) -> Path:
    """Write the page and the figure; returns the page's path."""
    return write_page(
        directory,
        results.experiment,
        results.manifest,
        answer=answer_critics(results),
        illustrations=[draw_illustration(half_widths(results), directory / "figures")],
        tables=critic_tables(results),
        settings=_settings(results),
        notes=results.experiment.notes,
        notes_title="Notes",
        command=command_of(results),
    )


def critics_as_data(results: CriticResults) -> dict[str, Any]:
    """The results as plain data."""
    manifest = results.manifest
    return {
        "experiment": results.experiment.name,
        "quick": manifest.quick,
        "digest": manifest.digest,
        "seed": manifest.seed,
        "versions": manifest.versions,
        "answer": answer_critics(results),
        "results": [
            {
                "problem": each.problem,
                "episodes": each.episodes,
                "runs": int(each.runs.values.size),
                "true_value": each.true_value,
                "ratio": float(np.median(each.ratios)),
                "coverage": each.coverage,
                "mean_deviation": float(each.deviations.mean()),
                "fitting_seconds": float(np.median(each.runs.fitting_seconds)),
            }
            for each in results.series
        ],
    }


def _settings(results: CriticResults) -> list[tuple[str, str]]:
    study, manifest = results.experiment, results.manifest
    return [
        ("sizes", "; ".join(f"{s.runs} runs of {s.episodes:,} episodes" for s in study.sizes)),
        (
            "critics",
            "all that are installed" if study.critics is None else ", ".join(study.critics),
        ),
        ("seed", str(manifest.seed)),
        ("time", f"{manifest.seconds:,.0f} s of runs"),
        ("digest", manifest.digest),
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest.versions.items())),
    ]

"""The report: one self-contained page per experiment, and its figures as files beside it."""

import base64
from dataclasses import dataclass
from pathlib import Path

import jinja2
from plotly import offline

from revar.experiments.files import replaced_file
from revar.experiments.results import Results
from revar.experiments.specification import Experiment
from revar.reports.answers import answer_of, check_answer
from revar.reports.charts import Chart
from revar.reports.figures import figures
from revar.reports.interactive import html_of
from revar.reports.static import save_picture
from revar.reports.tables import check_tables, tables_of

PAGE = "report.html"


@dataclass(frozen=True)
class Illustration:
    """A figure as the page shows it."""

    name: str
    caption: str
    plot: str  # plotly's markup, or empty
    image: str  # a PNG as text, or empty


def check_report(experiment: Experiment) -> None:
    """Raise if a figure, table or answer that the experiment asks for does not exist."""
    for name in experiment.figures:
        figures.find(name)
    check_tables(experiment.tables)
    check_answer(experiment.answer)


def write_report(results: Results, directory: Path) -> Path:
    """Write the page and the figures of an experiment; returns the page's path."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("revar.reports", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    drawn = illustrations(results, directory / "figures")
    page = environment.get_template("report.html").render(
        results=results,
        experiment=results.experiment,
        manifest=results.manifest,
        answer=answer_of(results),
        illustrations=drawn,
        tables=tables_of(results),
        settings=settings_of(results),
        command=command_of(results),
        script=offline.get_plotlyjs() if any(each.plot for each in drawn) else "",
        version=results.manifest.versions["revar-rl"],
    )
    with replaced_file(directory / PAGE) as new:
        new.write_text(page, encoding="utf-8")
    return directory / PAGE


def illustrations(results: Results, folder: Path) -> list[Illustration]:
    """Draw every figure: all as files, charts also for the pointer."""
    drawn = []
    for name in results.experiment.figures:
        picture = figures.find(name)(results)
        path = save_picture(picture, folder / name)
        if isinstance(picture, Chart):
            drawn.append(Illustration(name, picture.caption, html_of(picture), ""))
        else:
            image = base64.b64encode(path.read_bytes()).decode("ascii")
            drawn.append(Illustration(name, picture.caption, "", image))
    return drawn


def command_of(results: Results) -> str:
    """The command that gives these results again."""
    manifest = results.manifest
    command = manifest.experiment.command or f"revar reproduce {manifest.experiment.name}"
    if manifest.quick:
        command += " --quick"
    return command + (f" --seed {manifest.seed}" if manifest.seed else "")


def settings_of(results: Results) -> list[tuple[str, str]]:
    """What was run, as pairs of words."""
    experiment, manifest = results.experiment, results.manifest
    budgets = ", ".join(f"{budget:,}" for budget in experiment.budgets())
    problems = [
        f"{c.name}: {c.id}" + "".join(f", {k} = {v}" for k, v in c.options.items())
        for c in experiment.problem_choices()
    ]
    strategies = [
        f"{c.name}: {c.id}" + "".join(f", {k} = {v}" for k, v in c.options.items())
        for c in experiment.strategy_choices()
    ]
    return [
        ("episodes", budgets),
        ("runs", f"{experiment.runs:,}"),
        ("seed", str(manifest.seed)),
        ("problems", "; ".join(problems)),
        ("strategies", "; ".join(strategies)),
        ("estimators", ", ".join(dict.fromkeys(s.estimator for s in results.series))),
        ("transitions", "known" if experiment.known_transitions else "unknown"),
        ("time", f"{manifest.seconds:,.0f} s of runs"),
        ("digest", manifest.digest),
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest.versions.items())),
    ]

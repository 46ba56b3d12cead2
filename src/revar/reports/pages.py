"""Reports as pages: one HTML page for an experiment, one Markdown page for several."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from plotly import offline

from revar.charts.chart import Chart, Picture
from revar.charts.interactive import to_html
from revar.charts.static import save_picture
from revar.experiments.critic_results import CriticManifest, CriticResults
from revar.experiments.critics import CriticStudy
from revar.experiments.experiment import Experiment
from revar.experiments.results import Manifest, Results
from revar.experiments.storage import replace_file
from revar.reports.conclusions import answer_question, check_answer
from revar.reports.figures import figures
from revar.reports.tables import Table, check_tables, make_tables

PAGE = "report.html"
# Longer tables are left out of the Markdown page.
MOST_ROWS = 110
HEAD = """# Results

`revar report` computed every figure and number on this page from stored results; the command in
each section reproduces them. K·MSE is the mean squared error times the number of episodes K.
The limit is the smallest K·MSE that any collection can have for large K. Tables of more than a
hundred rows are only in the reports. [Experiments](experiments.md) says how experiments are
declared, run and stored.
"""


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
    drawn = [
        draw_illustration(figures.find(name)(results), directory / "figures")
        for name in results.experiment.figures
    ]
    return write_page(
        directory,
        results.experiment,
        results.manifest,
        answer=answer_question(results),
        illustrations=drawn,
        tables=make_tables(results),
        settings=_settings(results),
        notes=results.experiment.unstated,
        notes_title="What the paper leaves open",
        command=command_of(results),
    )


def write_page(
    directory: Path,
    experiment: Experiment | CriticStudy,
    manifest: Manifest | CriticManifest,
    *,
    illustrations: list[Illustration],
    **content: Any,
) -> Path:
    """Fill the template; returns the page's path."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("revar.reports", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("report.html").render(
        experiment=experiment,
        manifest=manifest,
        illustrations=illustrations,
        script=offline.get_plotlyjs() if any(each.plot for each in illustrations) else "",
        version=manifest.versions["revar-rl"],
        **content,
    )
    with replace_file(directory / PAGE) as new:
        new.write_text(page, encoding="utf-8")
    return directory / PAGE


def write_markdown(experiments: list[Results], path: Path) -> None:
    """Write experiments as one Markdown page; figures go to a folder of the same name."""
    sections = [HEAD]
    for results in experiments:
        sections.append(_section(results, path.with_suffix("")))
    with replace_file(path) as new:
        new.write_text("\n".join(sections), encoding="utf-8")


def draw_illustration(picture: Chart | Picture, folder: Path) -> Illustration:
    """Save a figure as a file; a chart is interactive on the page."""
    path = save_picture(picture, folder / picture.name)
    if isinstance(picture, Chart):
        return Illustration(picture.name, picture.caption, to_html(picture), "")
    image = base64.b64encode(path.read_bytes()).decode("ascii")
    return Illustration(picture.name, picture.caption, "", image)


def command_of(results: Results | CriticResults) -> str:
    """The command that reproduces these results."""
    manifest = results.manifest
    declared = getattr(manifest.experiment, "command", "")
    command = declared or f"revar reproduce {manifest.experiment.name}"
    if manifest.quick:
        command += " --quick"
    return command + (f" --seed {manifest.seed}" if manifest.seed else "")


def _settings(results: Results) -> list[tuple[str, str]]:
    """What was run, as names and values."""
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


def _section(results: Results, folder: Path) -> str:
    experiment = results.experiment
    name = experiment.name
    lines = [f"## {experiment.title}", "", experiment.question, "", "```sh", command_of(results)]
    lines += ["```", ""]
    for sentence in answer_question(results):
        lines += [f"- {sentence}"]
    for figure in experiment.figures:
        picture = figures.find(figure)(results)
        file = save_picture(picture, folder / f"{name}-{figure}")
        lines += [
            "",
            f"![{figure}]({folder.name}/{file.name})",
            "",
            f"*{picture.caption}*",
        ]
    for table in make_tables(results):
        if len(table.rows) > MOST_ROWS:
            continue
        lines += ["", f"### {name}: {table.title.lower()}", "", *_rows(table)]
        if table.note:
            lines += ["", table.note]
    if experiment.unstated:
        lines += ["", "What the paper leaves open, and what was taken:", ""]
        lines += [f"- {sentence}" for sentence in experiment.unstated]
    manifest = results.manifest
    lines += ["", f"{manifest.seconds:,.0f} s of runs, digest {manifest.digest}.", ""]
    return "\n".join(lines)


def _rows(table: Table) -> list[str]:
    rule = ["---" if i < table.words else "---:" for i in range(len(table.headings))]
    cells = [table.headings, tuple(rule), *table.rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells]

"""Several experiments as one Markdown page, figures in a folder beside it."""

from pathlib import Path

from revar.experiments.files import replaced_file
from revar.experiments.results import Results
from revar.reports.answers import answer_of
from revar.reports.figures import figures
from revar.reports.page import command_of
from revar.reports.static import save_picture
from revar.reports.tables import Table, tables_of

# A longer table is left to the report.
MOST_ROWS = 110
HEAD = """# Results

Every figure and number on this page was computed from stored results by `revar report`; the command
before each section gives the results again. K·MSE is the mean squared error times the number of
episodes K; the limit is its smallest possible value for large K, whatever collects. Tables of more
than a hundred rows are in the reports alone.
[Experiments](experiments.md) says how they are declared, run and stored.
"""


def write_markdown(experiments: list[Results], path: Path) -> None:
    """Write the page; figures go to a folder of its name."""
    sections = [HEAD]
    for results in experiments:
        sections.append(_section(results, path.with_suffix("")))
    with replaced_file(path) as new:
        new.write_text("\n".join(sections), encoding="utf-8")


def _section(results: Results, folder: Path) -> str:
    experiment = results.experiment
    name = experiment.name
    lines = [f"## {experiment.title}", "", experiment.question, "", "```sh", command_of(results)]
    lines += ["```", ""]
    for sentence in answer_of(results):
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
    for table in tables_of(results):
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

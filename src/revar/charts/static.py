"""Draw charts with matplotlib, for paper and screen."""

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from revar.charts.chart import Chart, Line, Panel, Picture, spread_apart
from revar.errors import InputError

# Readable when a page prints the figure at the width of a column.
SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "svg.hashsalt": "revar",
}
ALONE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.markersize": 4,
}
# A dollar sign in a label starts no formula.
PLAIN: Any = {"parse_math": False}
DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
PANEL_INCHES = (3.7, 2.9)
ALONE_INCHES = (7.0, 4.2)
TITLE_LETTERS = 75  # in a line of the title of a chart that stands alone
TICK_RATIO = 1.5  # least ratio of neighbouring ticks there, so that labels do not touch
COLUMNS = 3  # panels in a row at most
FEW_POINTS = 7  # on the x axis: each gets its tick
LETTER_INCHES = 0.065  # of a label, on average


def save_picture(picture: Chart | Picture, stem: Path) -> Path:
    """Write `stem`.png and return its path."""
    with rc_context(SETTINGS):
        figure = picture.figure if isinstance(picture, Picture) else draw(picture)
        stem.parent.mkdir(parents=True, exist_ok=True)
        path = stem.with_suffix(".png")
        figure.savefig(path, dpi=200, metadata={"Software": None})
    return path


def check_figure_path(path: Any) -> Path:
    """Return the path as a Path; raise if no figure can be saved there."""
    try:
        target = Path(path)
    except TypeError:
        raise InputError(f"a figure is saved to a path, not to {path!r}") from None
    known = sorted(Figure().canvas.get_supported_filetypes())
    if target.suffix and target.suffix[1:].lower() not in known:
        raise InputError(f"{path}: figures are saved as one of {', '.join(known)}")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    if target.is_dir():
        raise InputError(f"{path} is a folder; the figure needs a file")
    return target


def draw(chart: Chart) -> Figure:
    """Draw the chart as a matplotlib figure."""
    return _draw_alone(chart.panels[0]) if chart.alone else _draw_panels(chart)


def _draw_panels(chart: Chart) -> Figure:
    with rc_context(SETTINGS):
        rows = -(-len(chart.panels) // COLUMNS)
        columns = -(-len(chart.panels) // rows)
        tall = max(len(panel.categories) for panel in chart.panels)
        width, height = PANEL_INCHES
        height = max(height, 0.75 + 0.2 * tall)
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for place, panel in zip(axes, chart.panels, strict=False):
            _draw_panel(place, panel)
        for place in axes[len(chart.panels) :]:
            place.set_visible(False)
        if tall:
            _add_legend(figure, axes[0])
        figure.draw_without_rendering()  # fixes the axes, so that labels know where they are
        for place, panel in zip(axes, chart.panels, strict=False):
            if not panel.categories:
                _label_ends(place, panel.lines)
        return figure


def _draw_alone(panel: Panel) -> Figure:
    with rc_context(ALONE):
        figure = Figure(figsize=ALONE_INCHES, layout="constrained")
        axes = figure.subplots()
        _draw_lines(axes, panel)
        axes.set_title(fill(panel.title, TITLE_LETTERS), **PLAIN)
        measured = [line.x for line in panel.lines if line.kind == "measured"]
        points = np.concatenate(measured or [line.x for line in panel.lines])
        # From the last point back, as far as there is room.
        ticks = [points[-1]]
        for point in points[-2::-1]:
            if ticks[-1] > TICK_RATIO * point:
                ticks.append(point)
        axes.set_xticks(ticks, [f"{point:,.0f}" for point in ticks])
        axes.set_xticks([], minor=True)
        for text in axes.legend().get_texts():
            text.set(**PLAIN)
        return figure


@FuncFormatter
def plain_number(value: float, place: int | None = None) -> str:
    """A tick of a logarithmic axis: digits where they are short, a power of ten elsewhere."""
    del place
    leading = round(value / 10.0 ** np.floor(np.log10(value)), 6)
    if leading not in (1.0, 2.0, 3.0, 5.0):
        return ""
    if 1e-2 <= value < 1e5:
        return f"{value:,.10g}"
    power = int(np.floor(np.log10(value)))
    return f"$10^{{{power}}}$" if leading == 1.0 else ""


def _add_legend(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, beside them: dots leave no room within."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    legend = figure.legend(handles, labels, loc="outside right center", fontsize=7, frameon=False)
    for text in legend.get_texts():
        text.set(**PLAIN)


def _draw_lines(axes: Axes, panel: Panel) -> None:
    axes.set_xscale(panel.x_scale)
    axes.set_yscale(panel.y_scale)
    axes.set_xlabel(panel.x_label, **PLAIN)
    axes.set_ylabel(panel.y_label, **PLAIN)
    for line in panel.lines:
        if panel.categories:
            _draw_dots(axes, line)
        elif line.kind == "interval":
            _draw_interval(axes, line)
        else:
            _draw_line(axes, line)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    if panel.x_mark is not None:
        axes.axvline(panel.x_mark, color="#000000", linewidth=0.8, zorder=1)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, **PLAIN)
    _draw_lines(axes, panel)
    if panel.categories:
        axes.set_yticks(range(len(panel.categories)), panel.categories, **PLAIN)
        axes.grid(visible=False, axis="x")
        axes.set_ylim(len(panel.categories) - 0.5, -0.5)
        return
    # Room on the right for the labels of the lines.
    low, high = axes.get_xlim()
    longest = max(len(line.label) for line in panel.lines)
    share = min(0.55, 0.08 + LETTER_INCHES * longest / PANEL_INCHES[0])
    if panel.x_scale == "log":
        axes.set_xlim(low, high * (high / low) ** (share / (1 - share)))
    else:
        axes.set_xlim(low, high + (high - low) * share / (1 - share))
    points = np.unique(np.concatenate([line.x for line in panel.lines]))
    if panel.x_scale == "log" and points.size <= FEW_POINTS:
        axes.set_xticks(points, [f"{point:,.0f}" for point in points])
        axes.tick_params(axis="x", labelrotation=30 if points.size > 4 else 0)
    else:
        axes.set_xticks([tick for tick in axes.get_xticks() if low <= tick <= high * 1.001])
    axes.set_xticks([], minor=True)
    if panel.y_scale == "log":
        bottom, top = axes.get_ylim()
        axes.yaxis.set_major_formatter(plain_number)
        axes.yaxis.set_minor_formatter(plain_number if top < 30 * bottom else "")


def _draw_line(axes: Axes, line: Line) -> None:
    style = line.style
    if line.kind == "digitised":
        axes.plot(
            line.x, line.y, color=style.color, marker=style.marker, linestyle=":", linewidth=1
        )
        return
    thin = line.kind != "measured"
    axes.plot(
        line.x,
        line.y,
        color=style.color,
        linestyle=DASHES[style.dash] if line.x.size > 1 else "",
        linewidth=1.0 if thin else 1.5,
        marker="" if thin or line.x.size > 12 else style.marker,
        zorder=2 if thin else 3,
        label=line.label,
    )
    if line.error is not None:
        low, high = line.y - line.error, line.y + line.error
        if axes.get_yscale() == "log":
            low = np.maximum(low, line.y * 1e-2)
        axes.fill_between(line.x, low, high, color=style.color, alpha=0.18, linewidth=0)


def _draw_interval(axes: Axes, line: Line) -> None:
    axes.errorbar(
        line.x,
        line.y,
        yerr=line.error,
        color=line.style.color,
        marker=line.style.marker,
        linestyle="none",
        markersize=5,
        capsize=5,
        elinewidth=2,
        label=line.label,
    )


def _draw_dots(axes: Axes, line: Line) -> None:
    axes.errorbar(
        line.x,
        line.y,
        xerr=line.error,
        color=line.style.color,
        marker=line.style.marker,
        linestyle="none",
        markersize=5,
        elinewidth=1,
        label=line.label,
    )


def _label_ends(axes: Axes, lines: tuple[Line, ...]) -> None:
    """Write each line's label to the right of its last point, without overlap."""
    to_pixels, to_data = axes.transData.transform, axes.transData.inverted().transform
    ends = []
    for line in lines:
        seen = np.flatnonzero(np.isfinite(line.y))
        if line.label and seen.size:
            end = line.x[seen[-1]], line.y[seen[-1]]
            ends.append((line, end, to_pixels(end)))
    if not ends:
        return
    box = axes.get_window_extent()
    gap = 9.5 * axes.figure.dpi / 72.0
    places = spread_apart(
        [pixel[1] for *_, pixel in ends], gap, box.y0 + 0.6 * gap, box.y1 - 0.4 * gap
    )
    right = max(pixel[0] for *_, pixel in ends)
    for (line, end, pixel), height in zip(ends, places, strict=True):
        text_x, text_y = to_data((right + 0.05 * box.width, height))
        moved = abs(height - pixel[1]) > 0.3 * gap or right - pixel[0] > 2
        axes.annotate(
            line.label,
            **PLAIN,
            xy=end,
            xytext=(text_x, text_y),
            color=line.style.color,
            fontsize=7.5,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.style.color,
                "linewidth": 0.5,
                "alpha": 0.6,
                "relpos": (0.0, 0.5),
                "shrinkA": 0,
                "shrinkB": 2,
            }
            if moved
            else None,
        )

"""Draw charts with plotly, for pages that respond to the pointer."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from revar.charts.chart import Chart, Line, Panel
from revar.model.arrays import FloatArray

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "d": "diamond-tall",
    "*": "star",
    "P": "cross",
    "X": "x",
    "h": "hexagon",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def to_html(chart: Chart) -> str:
    """The chart as part of a page that has loaded plotly.js: one plot for each panel."""
    pieces = []
    for i, panel in enumerate(chart.panels):
        figure = _figure(panel)
        piece = figure.to_html(
            full_html=False,
            include_plotlyjs=False,
            div_id=f"{chart.name}-{i}",
            config={"displaylogo": False, "responsive": True, "displayModeBar": False},
        )
        pieces.append(f'<div class="panel">{piece}</div>')
    return "\n".join(pieces)


def _figure(panel: Panel) -> go.Figure:
    figure = make_subplots()
    shown: set[str] = set()
    for line in panel.lines:
        for trace in _traces(line, panel):
            figure.add_trace(trace)
        shown.add(line.label)
    rows = len(panel.categories)
    figure.update_layout(
        template="plotly_white",
        title={"text": panel.title, "font": {"size": 15}, "x": 0, "xref": "paper"},
        font={"family": FONT, "size": 12},
        height=max(400, 130 + 26 * rows) + 18 * len(shown) // 2,
        margin={"l": 10, "r": 10, "t": 44, "b": 10},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0, "xanchor": "left"},
        hovermode="closest" if rows else "x unified",
    )
    shown_x = np.concatenate([line.x for line in panel.lines])
    shown_y = np.concatenate([line.y for line in panel.lines])
    figure.update_xaxes(title=panel.x_label, **_axis(panel.x_scale, shown_x))
    figure.update_yaxes(title=panel.y_label, **_axis(panel.y_scale, shown_y))
    if panel.y_range is not None:
        ends = np.array(panel.y_range)
        figure.update_yaxes(range=(np.log10(ends) if panel.y_scale == "log" else ends).tolist())
    if panel.categories:
        figure.update_yaxes(
            tickmode="array",
            tickvals=list(range(rows)),
            ticktext=list(panel.categories),
            range=[rows - 0.5, -0.5],
            title="",
        )
    return figure


def _axis(scale: str, values: FloatArray) -> dict[str, Any]:
    """An axis of that scale; where it spans several powers of ten, only they have ticks."""
    axis = {"type": scale, "automargin": True}
    if scale == "log":
        seen = values[np.isfinite(values) & (values > 0)]
        wide = seen.size > 0 and seen.max() > 50 * seen.min()
        axis |= {"dtick": 1 if wide else "D2", "exponentformat": "power"}
    return axis


def _traces(line: Line, panel: Panel) -> list[Any]:
    color, dots = line.style.color, bool(panel.categories)
    bars = None
    traces: list[Any] = []
    if line.error is not None and (dots or line.kind == "interval"):
        bars = {"type": "data", "array": line.error.tolist(), "thickness": 1}
    elif line.error is not None:
        traces.append(_band(line, panel.y_scale))
    if dots or line.kind in ("digitised", "interval"):
        mode = "markers"
    elif line.kind == "measured" and line.x.size <= 12:
        mode = "lines+markers"
    else:
        mode = "lines"
    traces.append(
        go.Scatter(
            x=line.x.tolist(),
            y=line.y.tolist(),
            name=line.label,
            mode=mode,
            legendgroup=line.label,
            line={"color": color, "dash": line.style.dash, "width": 2},
            marker={"color": color, "symbol": SYMBOLS.get(line.style.marker, "circle"), "size": 8},
            error_x=bars if dots else None,
            error_y=None if dots else bars,
            hovertemplate="%{x:.4g}" if dots else "%{y:.4g}",
        )
    )
    return traces


def _band(line: Line, scale: str) -> go.Scatter:
    """The band around a line, as one closed outline."""
    assert line.error is not None
    seen = np.isfinite(line.y) & np.isfinite(line.error)
    x, y, error = line.x[seen], line.y[seen], line.error[seen]
    low, high = y - error, y + error
    if scale == "log":
        low = np.maximum(low, y * 1e-2)
    red, green, blue = (int(line.style.color[i : i + 2], 16) for i in (1, 3, 5))
    return go.Scatter(
        x=np.concatenate([x, x[::-1]]).tolist(),
        y=np.concatenate([high, low[::-1]]).tolist(),
        mode="lines",
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.15)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=line.label,
    )

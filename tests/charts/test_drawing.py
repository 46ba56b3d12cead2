"""Both ways to draw show the same chart."""

import numpy as np
import pytest

from revar.charts.chart import BLUE, VERMILION, Chart, Line, Panel, Style
from revar.charts.interactive import to_html
from revar.charts.static import draw

EPISODES = np.array([100.0, 120.0, 200.0, 400.0])
PANEL = Panel(
    "value 1.2 costs $5 or $6, " + "and so on, " * 10,
    (
        Line("flow", EPISODES, np.full(4, 1.2), Style(BLUE), error=1.0 / EPISODES),
        Line(
            "other", EPISODES[-1:] * 1.1, np.array([1.2]), Style(VERMILION), "interval", np.ones(1)
        ),
    ),
    "episodes",
    "value",
    "log",
    "linear",
    y_range=(1.0, 1.5),
)
ALONE = Chart("evaluation", "", (PANEL,), alone=True)


def test_a_chart_alone_has_a_sentence_a_legend_and_ticks_with_room() -> None:
    figure = draw(ALONE)
    (axes,) = figure.axes
    assert axes.get_title().replace("\n", " ") == PANEL.title.strip()
    assert max(map(len, axes.get_title().splitlines())) <= 75
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["flow", "other"]
    assert sorted(axes.get_xticks()) == [120.0, 200.0, 400.0]
    assert axes.get_ylim() == (1.0, 1.5)
    figure.draw_without_rendering()


def test_an_interval_among_panels_is_labelled_at_its_end() -> None:
    (axes,) = draw(Chart("among", "", (PANEL,))).axes
    assert [text.get_text() for text in axes.texts] == ["flow", "other"]


def test_plotly_draws_intervals_and_ranges() -> None:
    html = to_html(ALONE)
    assert '"error_y":{"array":[1.0]' in html
    assert '"range":[1.0,1.5]' in html


@pytest.mark.parametrize(("scale", "shown"), [("log", "[0.0,2.0]"), ("linear", "[1.0,100.0]")])
def test_ranges_follow_the_scale(scale: str, shown: str) -> None:
    line = Line("flow", EPISODES, EPISODES, Style(BLUE))
    panel = Panel("", (line,), "", "", "log", scale, y_range=(1.0, 100.0))  # type: ignore[arg-type]
    assert f'"range":{shown}' in to_html(Chart("ranges", "", (panel,)))

"""The page as a reader sees it, on a desk and on a telephone."""

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from revar.charts.chart import Chart
from revar.experiments.results import Results
from revar.reports.figures import figures
from revar.reports.pages import write_report
from tests.browser import Browser
from tests.reports.hostile import hostile
from tests.reports.tiny import tiny

# Boxes of what must not stand on each other, and of what each plot must lie in.
BOXES = """
const box = (element) => {
  const {left, top, right, bottom} = element.getBoundingClientRect();
  return {left, top: top + scrollY, right, bottom: bottom + scrollY};
};
const all = (selector) => [...document.querySelectorAll(selector)];
return {
  width: innerWidth,
  page: document.documentElement.scrollWidth,
  resources: performance.getEntriesByType("resource").map((entry) => entry.name),
  plots: all(".plotly-graph-div").map((plot) => ({
    name: plot.id,
    drawn: plot.querySelectorAll(".scatterlayer .trace path").length,
    words: [...plot.querySelectorAll(".gtitle, .xtitle, .ytitle, .xtick, .ytick, .legend .traces")]
      .map((word) => ({text: word.textContent, box: box(word)})),
    box: box(plot),
    inside: all(`[id="${plot.id}"] .main-svg`).map(box),
    panel: box(plot.closest(".panel")),
  })),
  images: all("figure img").map((image) => ({loaded: image.naturalWidth > 0, box: box(image)})),
  blocks: all("h1, h2, .question, .answer, .panel, figure img, figcaption, .scroll, .note, dl, pre")
    .map(box),
};
"""


@functools.cache
def results_of(name: str) -> Results:
    return hostile() if name == "hostile" else tiny(name)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The address of an experiment's page, written once."""

    @functools.cache
    def page(name: str) -> str:
        path = write_report(results_of(name), tmp_path_factory.mktemp(name))
        return path.resolve().as_uri()

    return page


def seen(chromium: Browser) -> dict[str, Any]:
    """What is on the page once every plot has found its size, which it does after loading."""
    deadline = time.monotonic() + 5.0
    while True:
        page: dict[str, Any] = chromium.driver.execute_script(BOXES)
        settled = all(
            abs((svg["right"] - svg["left"]) - (plot["panel"]["right"] - plot["panel"]["left"])) < 1
            for plot in page["plots"]
            for svg in plot["inside"]
        )
        if settled or time.monotonic() > deadline:
            return page
        time.sleep(0.05)


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across > 0.5 and down > 0.5


def within(one: dict[str, float], other: dict[str, float]) -> bool:
    return (
        one["left"] >= other["left"] - 0.5
        and one["right"] <= other["right"] + 0.5
        and one["top"] >= other["top"] - 0.5
        and one["bottom"] <= other["bottom"] + 0.5
    )


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["gridworld", "coverage", "hostile"])
def test_pages_are_whole_at_every_width(
    chromium: Browser, name: str, width: int, pages: Callable[[str], str]
) -> None:
    results = results_of(name)
    chromium.open(pages(name), width=width)
    page = seen(chromium)
    assert chromium.problems() == []
    assert page["resources"] == []  # nothing comes from anywhere else
    assert page["width"] == width
    assert page["page"] <= width
    charts = [figures.find(figure)(results) for figure in results.experiment.figures]
    panels = [
        f"{chart.name}-{i}"
        for chart in charts
        if isinstance(chart, Chart)
        for i in range(len(chart.panels))
    ]
    assert [plot["name"] for plot in page["plots"]] == panels
    for plot in page["plots"]:
        assert plot["drawn"] > 0
        assert within(plot["box"], plot["panel"]), plot
        assert plot["inside"]
        assert all(within(box, plot["panel"]) for box in plot["inside"]), plot
        assert len(plot["words"]) > 5
        for i, word in enumerate(plot["words"]):
            assert within(word["box"], plot["panel"]), (plot["name"], word)
            for other in plot["words"][i + 1 :]:
                assert not overlap(word["box"], other["box"]), (plot["name"], word, other)
        assert 0 <= plot["panel"]["left"] < plot["panel"]["right"] <= width
    assert len(page["images"]) == len(charts) - sum(isinstance(c, Chart) for c in charts)
    assert all(image["loaded"] for image in page["images"])
    blocks = page["blocks"]
    assert len(blocks) > len(panels) + len(charts)
    for i, block in enumerate(blocks):
        assert block["right"] <= width + 0.5
        for other in blocks[i + 1 :]:
            assert not overlap(block, other), (block, other)
    # Words that are programs were shown, not run.
    assert chromium.driver.execute_script("return typeof window.taken") == "undefined"


def test_plots_answer_to_a_narrower_window(chromium: Browser, pages: Callable[[str], str]) -> None:
    chromium.open(pages("coverage"), width=1280)
    seen(chromium)
    chromium.resize(340)
    page = seen(chromium)
    assert page["width"] == 340
    assert page["page"] <= 340
    for plot in page["plots"]:
        assert all(within(box, plot["panel"]) for box in plot["inside"])


def test_what_is_looked_for_would_be_found(chromium: Browser, tmp_path: Path) -> None:
    """A page that is broken on purpose: the checks above would see it."""
    page = tmp_path / "broken.html"
    page.write_text(
        "<!DOCTYPE html><div style='width: 2000px'>wide</div>"
        "<script>missing()</script><div class=panel><h1>one</h1></div>"
    )
    chromium.open(page.as_uri(), width=1280)
    found = seen(chromium)
    assert found["page"] > 1280
    assert any("missing is not defined" in message for message in chromium.problems())
    assert overlap(found["blocks"][0], found["blocks"][1])

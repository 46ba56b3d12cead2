"""What the figures show is what was measured, and they can be drawn. Warnings are errors here."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from matplotlib.text import Text

from revar.charts.chart import Chart, Line, Panel
from revar.charts.interactive import SYMBOLS
from revar.charts.static import draw, plain_number, save_picture
from revar.errors import InputError
from revar.experiments.experiment import StrategyChoice, load_built_in
from revar.experiments.results import Results
from revar.reports.figures import EXACT, exact_style, figures, strategy_styles
from revar.strategies import strategies
from tests.reports.hostile import hostile
from tests.reports.made_up import EXACT_VALUES, results, series
from tests.reports.tiny import tiny


def chart(name: str, of: Results) -> Chart:
    found = figures.find(name)(of)
    assert isinstance(found, Chart)
    assert found.name == name
    return found


def line(panel: Panel, label: str) -> Line:
    (found,) = (each for each in panel.lines if each.label == label)
    return found


def test_curves_are_the_errors_that_were_measured() -> None:
    found = tiny("tree")
    (panel,) = chart("mse-curves", found).panels
    (scaled,) = chart("scaled-curves", found).panels
    for part in found.series:
        error = np.mean((part.estimates - part.true_value) ** 2, axis=0)
        spread = np.std((part.estimates - part.true_value) ** 2, axis=0, ddof=1) / 2.0  # 4 runs
        np.testing.assert_array_equal(line(panel, part.strategy).x, part.checkpoints)
        np.testing.assert_allclose(line(panel, part.strategy).y, error)
        np.testing.assert_allclose(line(panel, part.strategy).error, spread)  # type: ignore[arg-type]
        np.testing.assert_allclose(line(scaled, part.strategy).y, part.checkpoints * error)
    theory = line(scaled, "on-policy, theory")
    assert theory.kind == "exact"
    assert theory.y == pytest.approx([4.038, 4.038], abs=5e-4)
    falling = line(panel, "oracle, theory")
    np.testing.assert_allclose(falling.x * falling.y, 0.890945, rtol=1e-6)
    assert falling.x[-1] == 60
    # On a tree the oracle is the limit.
    assert "limit, theory" not in [each.label for each in panel.lines]
    (grid,) = chart("scaled-curves", tiny("gridworld")).panels
    assert line(grid, "limit, theory").y == pytest.approx([4.71, 4.71], abs=6e-3)


def test_points_of_the_paper_stand_beside() -> None:
    measured, paper = chart("mse-curves-beside-paper", tiny("tree")).panels
    assert measured.title == "tree"
    assert {each.kind for each in paper.lines} == {"digitised"}
    on_policy = line(paper, "on-policy")
    assert (on_policy.x[0], on_policy.y[0]) == (1, 275)
    assert on_policy.style == line(measured, "on-policy").style
    assert {each.label for each in paper.lines} >= {"on-policy", "oracle", "revar"}


def test_curves_leave_out_where_there_is_no_estimate_or_no_error() -> None:
    part = series([[np.nan, 1.0, 0.0]] * 2, checkpoints=[1, 10, 100])
    (panel,) = chart("mse-curves", results(part)).panels
    assert line(panel, "on-policy").x.tolist() == [10.0]
    nothing = chart("mse-curves", results(series([[0.0, 0.0]] * 2, checkpoints=[1, 10])))
    draw(nothing)
    assert nothing.panels[0].lines[0].x.size == 0


def test_curves_take_one_estimator_along_several_budgets() -> None:
    parts = [
        series([3.0, 3.0], budget=10, estimator="a"),
        series([1.0, 1.0], budget=20, estimator="a"),
        series([1.0, 1.0], budget=10, estimator="b"),
        series([2.0, 2.0], budget=20, estimator="b"),
    ]
    (panel,) = chart("mse-curves", results(*parts)).panels
    shown = line(panel, "on-policy")
    assert (shown.x.tolist(), shown.y.tolist()) == ([10.0, 20.0], [9.0, 1.0])


def test_regret_is_drawn_with_its_slope() -> None:
    parts = [
        series(
            np.zeros(3),
            strategy="revar",
            budget=budget,
            variances=1.0 / budget + float(budget) ** -1.75 * np.array([0.9, 1.0, 1.1]),
        )
        for budget in (100, 1000, 10_000)
    ]
    (panel,) = chart("regret-slope", results(*parts)).panels
    measured = line(panel, "revar: -1.75")
    np.testing.assert_allclose(measured.y, measured.x**-1.75)
    (fit,) = (each for each in panel.lines if each.kind == "fit")
    np.testing.assert_allclose(fit.y, measured.y)
    guide = line(panel, "slope -3/2")
    assert np.diff(np.log(guide.y)) / np.diff(np.log(guide.x)) == pytest.approx(-1.5)


def test_coverage_is_drawn_less_nominal() -> None:
    part = series([0.0, 1.0, 1.9, -1.9, 2.1], strategy="flow")
    (panel,) = chart("coverage", results(part)).panels
    shown = line(panel, "flow")
    at_95 = shown.x.tolist().index(95.0)
    assert shown.y[at_95] == pytest.approx(80 - 95)
    noise = panel.lines[-2]
    assert noise.y[at_95] == pytest.approx(1.96 * 100 * np.sqrt(0.95 * 0.05 / 5), rel=1e-4)


def test_peers_are_drawn_against_the_limit() -> None:
    other = msgspec.structs.replace(EXACT_VALUES, problem="q", limit=4.0)
    parts = [
        series([0.1, 0.2], strategy="on-policy"),
        series([0.1, 0.1], strategy="on-policy", estimator="monte-carlo"),
        series([0.2, 0.2], strategy="on-policy", problem="q"),
        series([0.2, 0.2], strategy="flow"),
    ]
    (panel,) = chart("peers", results(*parts, exact=(EXACT_VALUES, other))).panels
    assert panel.categories == ("p", "q")
    shown = line(panel, "on-policy")
    np.testing.assert_allclose(shown.x, [1.0, 1.0])  # 100 * 0.01 / 1 and 100 * 0.04 / 4
    np.testing.assert_allclose(np.round(shown.y), [0, 1])
    assert line(panel, "flow").x == pytest.approx([4.0])


def test_every_label_is_written_beside_its_line() -> None:
    figure = draw(chart("mse-curves", tiny("gridworld")))
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert set(texts) == {
        *("on-policy", "cb-var", "revar", "oracle", "flow"),
        *("on-policy, theory", "oracle, theory", "limit, theory"),
    }
    figure.draw_without_rendering()
    # Of the words alone, without the line that leads to them.
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    inside = axes.get_window_extent()
    for i, box in enumerate(boxes):
        assert inside.y0 <= box.y0 < box.y1 <= inside.y1
        assert box.x1 <= figure.bbox.x1
        for other in boxes[i + 1 :]:
            assert min(box.y1, other.y1) < max(box.y0, other.y0), "labels stand on each other"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (2.0, "2"),
        (4.0, ""),
        (0.05, "0.05"),
        (3000.0, "3,000"),
        (1e-4, "$10^{-4}$"),
        (2e-4, ""),
        (1e6, "$10^{6}$"),
    ],
)
def test_ticks(value: float, shown: str) -> None:
    assert plain_number(value) == shown


@pytest.mark.parametrize("figure", ["mse-curves", "peers", "coverage", "tree-proportions"])
def test_labels_are_no_formulas(figure: str, tmp_path: Path) -> None:
    path = save_picture(figures.find(figure)(hostile()), tmp_path / "new" / figure)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_grids_show_visits_per_episode() -> None:
    picture: Any = figures.find("grid-visits")(tiny("gridworld"))
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    assert titles[:5] == ["on-policy", "revar", "oracle", "flow", "optimal"]
    (image,) = picture.figure.axes[0].get_images()
    part = tiny("gridworld").of(strategy="on-policy")[0]
    expected = part.visits.sum(axis=1).reshape(4, 4) / (4 * 60)
    shown = np.ma.filled(image.get_array(), 0.0)
    np.testing.assert_allclose(np.nan_to_num(shown), expected)
    assert expected[0, 0] >= 1.0  # every episode begins there


def test_the_tree_shows_the_oracle_s_shares() -> None:
    picture: Any = figures.find("tree-proportions")(tiny("tree"))
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    assert titles == ["target policy", "oracle", "revar, measured", "flow, measured"]
    policy, oracle = picture.figure.axes[:2]
    assert {text.get_text() for text in policy.texts} == {"95", "5"}
    # In a leaf b* is proportional to pi sigma: 0.95 * 0.1 against 0.05 * sqrt(20).
    noisy = 0.05 * 20**0.5 / (0.05 * 20**0.5 + 0.95 * 0.1)
    assert f"{100 * noisy:.0f}" in {text.get_text() for text in oracle.texts}


@pytest.mark.parametrize(
    ("figure", "experiment", "message"),
    [
        (
            "grid-visits",
            "tree",
            "the figure 'grid-visits' needs a problem on a grid; 'tree' is none",
        ),
        (
            "tree-proportions",
            "gridworld",
            "the figure 'tree-proportions' needs a tree of at most 64 states; 'gridworld' is none",
        ),
    ],
)
def test_figures_say_what_they_need(figure: str, experiment: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        figures.find(figure)(tiny(experiment))
    assert str(caught.value) == message


def test_every_strategy_has_a_look_of_its_own() -> None:
    styles = strategy_styles([StrategyChoice(id=each) for each in strategies.ids()])
    assert len(set(styles.values())) == len(styles)
    assert {style.marker for style in styles.values()} <= set(SYMBOLS)


def test_a_strategy_that_is_there_twice_is_told_apart() -> None:
    styles = strategy_styles(
        [StrategyChoice(id="revar", label=f"c = {c}") for c in (0, 0.1, 1, 10)]
    )
    assert len(set(styles.values())) == 4


def test_a_strategy_looks_the_same_in_every_report() -> None:
    one = strategy_styles([StrategyChoice(id="flow"), StrategyChoice(id="revar")])
    other = strategy_styles(
        [
            StrategyChoice(id="on-policy"),
            StrategyChoice(id="revar", label="c = 1"),
            StrategyChoice(id="flow", label="ours"),
        ]
    )
    assert one["flow"] == other["ours"]
    assert one["revar"] == other["c = 1"]
    assert exact_style("on-policy").color == other["on-policy"].color
    assert exact_style("limit") == EXACT


def test_a_strategy_that_collects_apart_is_the_same_one_dashed() -> None:
    styles = strategy_styles(load_built_in("compare").strategy_choices())
    for name in ("on-policy", "flow"):
        apart, together = styles[f"{name}, apart"], strategy_styles([StrategyChoice(id=name)])[name]
        assert (apart.color, apart.marker) == (together.color, together.marker)
        assert (apart.dash, together.dash) == ("dash", "solid")
    assert styles["flow, shared"] == strategy_styles([StrategyChoice(id="flow")])["flow"]


def test_differences_are_drawn_with_what_theory_says_of_each_way() -> None:
    found = tiny("compare")
    error, scaled = chart("difference", found).panels
    limit = found.exact("A - B").limit
    theory = [each for each in scaled.lines if each.kind == "exact"]
    measured = [each for each in scaled.lines if each.kind == "measured"]
    # Two policies by themselves, with half of the episodes each; pooled; the limit.
    alone, pooled = 2 * (20.156 + 68.046), 56.54
    flows = 2 * sum(each.limit for each in found.exact("A - B").alone)
    assert [each.y[0] * limit for each in theory] == pytest.approx(
        [alone, flows, pooled, limit], rel=2e-4
    )
    for each, part in zip(measured, found.strategies(), strict=True):
        errors = np.array([s.mse[-1] for s in found.of("A - B", part)])
        budgets = np.array([s.budget for s in found.of("A - B", part)])
        np.testing.assert_allclose(each.y, budgets * errors / limit)
        np.testing.assert_allclose(line(error, part).y, errors)
    assert [each.label for each in measured] == [
        "on-policy, apart: 10.6",
        "flow, apart: 4.5",
        "on-policy, pooled: 3.4",
        "flow, shared: 1.0",
    ]
    draw(chart("difference", found))


def test_without_a_difference_there_is_none_to_draw() -> None:
    with pytest.raises(InputError, match="experiment 'tree' asks for no difference"):
        figures.find("difference")(tiny("tree"))

"""Reports of a study of critics, from results that are made up number by number."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revar.charts.static import draw
from revar.experiments.critic_problems import CriticProblem
from revar.experiments.critic_results import CriticManifest, CriticResults, CriticSeries
from revar.experiments.critics import CriticShardResult, CriticStudy, Size
from revar.reports.critics import (
    answer_critics,
    critic_tables,
    critics_as_data,
    half_widths,
    write_critic_report,
)

RUNS = 4


def series(problem: str, episodes: int, error: float, values: Any) -> CriticSeries:
    """Runs whose value is truly 10, and whose mean return has variance 100 / episodes."""
    plain = 10.0 / np.sqrt(episodes)
    runs = CriticShardResult(
        values=np.array(values, dtype=float),
        standard_errors=np.full(RUNS, error * plain),
        half_widths=np.full(RUNS, 2.0 * error * plain),
        mean_returns=np.full(RUNS, 10.0),
        mean_return_errors=np.full(RUNS, plain),
        mean_return_half_widths=np.full(RUNS, 2.0 * plain),
        steps=np.full(RUNS, 50),
        fitting_seconds=np.array([1.0, 2.0, 3.0, 4.0]),
    )
    return CriticSeries(problem, episodes, 10.0, 0.0, runs)


@pytest.fixture
def results() -> CriticResults:
    """Critics take three quarters of the variance in one problem, and nothing in the other."""
    study = CriticStudy(
        name="critics",
        title="A <small> study",
        question="Does it gain?",
        sizes=(Size(episodes=25, runs=RUNS), Size(episodes=100, runs=RUNS)),
        problems=tuple(
            CriticProblem(name=name, environment="CartPole-v1", policy="cartpole-line:1", horizon=9)
            for name in ("pole", "noise")
        ),
        notes=("A note.",),
    )
    manifest = CriticManifest(
        experiment=study,
        quick=False,
        digest=study.digest(),
        seed=7,
        versions={"revar-rl": "0", "numpy": "2"},
        seconds=12.0,
    )
    near, far = [9.9, 10.1, 10.1, 9.9], [9.9, 10.1, 10.1, 30.0]
    return CriticResults(
        manifest,
        (
            series("pole", 25, 0.8, near),
            series("pole", 100, 0.5, near),
            series("noise", 25, 1.02, far),
            series("noise", 100, 1.0, near),
        ),
    )


def test_sentences(results: CriticResults) -> None:
    gain, worst, coverage = answer_critics(results)
    assert "At 100 episodes" in gain
    assert "4.0 times as many for the same error on pole, and 1.00 times on noise" in gain
    assert "largest ratio of variances is 1.04, on noise with 25 episodes" in worst
    assert "93.8% of all 16 runs" in coverage


def test_table(results: CriticResults) -> None:
    (table,) = critic_tables(results)
    assert [row[:3] for row in table.rows] == [
        ("pole", "25", "4"),
        ("pole", "100", "4"),
        ("noise", "25", "4"),
        ("noise", "100", "4"),
    ]
    pole, noise = table.rows[1], table.rows[2]
    assert pole[3:] == ("0.25", "0.25 to 0.25", "4.0", "+0.00 ± 0.12", "0.23", "100.0%", "2.5")
    assert noise[8] == "75.0%"


def test_chart(results: CriticResults) -> None:
    chart = half_widths(results)
    assert [panel.title for panel in chart.panels] == ["pole", "noise"]
    plain, critics = chart.panels[0].lines
    assert (plain.label, critics.label) == ("mean return", "with critics")
    assert plain.x.tolist() == [25.0, 100.0]
    assert plain.y == pytest.approx([4.0, 2.0])
    assert critics.y == pytest.approx([3.2, 1.0])
    assert draw(chart) is not None


def test_page(results: CriticResults, tmp_path: Path) -> None:
    page = write_critic_report(results, tmp_path)
    text = page.read_text()
    assert "A &lt;small&gt; study" in text and "A note." in text
    assert "revar reproduce critics --seed 7" in text
    assert "+0.00 ± 0.12" in text and "half-width of the interval" in text
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {"half-widths"}


def test_data(results: CriticResults) -> None:
    data = json.loads(json.dumps(critics_as_data(results)))
    assert data["seed"] == 7 and data["answer"] == answer_critics(results)
    assert [each["ratio"] for each in data["results"]] == pytest.approx([0.64, 0.25, 1.0404, 1.0])
    assert data["results"][2]["coverage"] == 0.75

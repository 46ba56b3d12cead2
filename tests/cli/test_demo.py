import re
from pathlib import Path

import msgspec
import pytest

import revar
from revar.errors import RefusedError
from revar.experiments import experiment as declarations
from revar.experiments.experiment import Experiment
from tests.cli.running import invoked, output_of, take_away

NUMBER = r"-?\d+(?:\.\d+)?"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The demonstration with 30 runs of 200 episodes."""
    experiment = msgspec.structs.replace(declarations.load_built_in("demo"), runs=30, episodes=200)
    monkeypatch.setattr(declarations, "load_built_in", lambda name: experiment)
    return experiment


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("columns", [80, 120])
def test_values_intervals_and_what_the_choice_buys(columns: int, tmp_path: Path) -> None:
    output = output_of("demo", "--output", str(tmp_path), columns=columns)
    assert "The policy's value on the gridworld is 1.4287" in " ".join(output.split())
    assert "at best 4.71" in output
    grid = revar.find_problem("gridworld")
    results = {
        name: revar.simulate(grid.mdp, grid.policy, name, episodes=200, runs=30)
        for name in ("on-policy", "revar", "flow")
    }
    for name, result in results.items():
        row = next(line for line in output.splitlines() if re.match(rf"│ {name} +│", line))
        cells = [cell.strip() for cell in row.strip("│").split("│")]
        value, interval, holds, error, ratio = cells[1:]
        # The first run, as its user would see it.
        estimate, spread = result.estimates[0, -1], result.standard_errors[0, -1]
        assert value == f"{estimate:.3f}"
        assert interval == f"[{estimate - 1.96 * spread:.3f}, {estimate + 1.96 * spread:.3f}]"
        assert holds == f"{result.coverage()[-1]:.0%}"
        shown = re.match(rf"({NUMBER}) ± ({NUMBER})", error)
        assert shown is not None
        assert float(shown[1]) == pytest.approx(200 * result.mse[-1], rel=0.01)
        if name == "on-policy":
            assert ratio == ""
        else:
            quotient = results["on-policy"].mse[-1] / result.mse[-1]
            assert float(ratio.split(" ")[0]) == pytest.approx(quotient, rel=0.02)
    assert "On-policy collection has" in output
    assert f"report: {tmp_path / 'report.html'}" in output
    assert (tmp_path / "report.html").exists()


@pytest.mark.usefixtures("short")
def test_without_extras_there_is_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(monkeypatch, "plotly")
    output = " ".join(output_of("demo", "--output", str(tmp_path)).split())
    assert "The policy's value on the gridworld is 1.4287" in output
    assert output.endswith(
        f"tables: {tmp_path}; no report is written: this needs plotly: "
        f"pip install 'revar-rl[plots,report]'"
    )
    assert not (tmp_path / "report.html").exists()


@pytest.mark.usefixtures("short")
def test_a_folder_that_cannot_be_written_to_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = invoked("demo", "--output", str(tmp_path / "file" / "demo"))
    assert "at best 4.71" in done.output
    (other,) = tmp_path.glob("revar-demo-*")
    assert str(done.exception) == (
        f"{tmp_path / 'file' / 'demo'} cannot be written (Not a directory); the results are in "
        f"{other}"
    )
    assert isinstance(done.exception, RefusedError)
    assert (other / "report.html").exists()

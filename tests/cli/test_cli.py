import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import revar
from revar import policy_value
from revar.cli import main
from revar.errors import InputError
from revar.estimators import estimators
from revar.problems import problems
from revar.strategies import strategies


def output_of(*arguments: str, columns: int = 120) -> str:
    """What the command prints on a terminal of that width."""
    result = CliRunner().invoke(main.revar, arguments, env={"COLUMNS": str(columns)})
    assert result.exception is None
    assert result.exit_code == 0
    return result.output


def row_of(output: str, *words: str) -> list[str]:
    """The cells of the first table row with all these words."""
    rows = [line for line in output.splitlines() if all(word in line for word in words)]
    return [cell.strip() for cell in rows[0].strip("│ ").split("│")]


def test_demo_shows_the_exact_errors() -> None:
    output = output_of("demo")
    tree = problems.find("tree")()
    value = f"{policy_value(tree.mdp, tree.policy):.4f}"
    assert row_of(output, "tree", "unknown") == [
        *("tree", "tree", value, "unknown", "4.0380", "0.8909", "0.8909")
    ]
    assert row_of(output, "gridworld", "unknown") == [
        *("gridworld", "general", "1.4287", "unknown", "20.1557", "8.1852", "4.7100")
    ]
    assert "19.1517" in output
    assert "7.1778" in output
    assert row_of(output, "19.1517")[-1] == "3.2097"  # the limit with known transitions


def test_demo_shows_the_oracle_s_proportions() -> None:
    output = output_of("demo")
    oracle = revar.sampling_proportions(*_problem("tree"))
    # State 14, the last leaf: b* is proportional to pi sigma.
    quiet, noisy = 0.95 * 0.1, 0.05 * 20**0.5
    total = quiet + noisy
    assert row_of(output, " 14 ") == [
        *("14", f"{total:.3f}", f"{quiet / total:.3f} (0.95)", f"{noisy / total:.3f} (0.05)")
    ]
    assert row_of(output, "(0.95)")[1] == f"{oracle.normalizers[0]:.3f}"
    # One row for every state in which the policy can find itself.
    assert output.count("(0.95)") == 15
    assert output.count("(0.45)") == 2 * 15


def _problem(name: str) -> tuple[revar.TabularMDP, object]:
    problem = problems.find(name)()
    return problem.mdp, problem.policy


def test_demo_fits_an_ordinary_terminal() -> None:
    output = output_of("demo", columns=80)
    assert "…" not in output
    assert max(len(line) for line in output.splitlines()) <= 80
    assert row_of(output, "gridworld", "unknown")[-3:] == ["20.1557", "8.1852", "4.7100"]


def test_list_shows_every_id_with_its_first_line() -> None:
    for registry in (problems, strategies, estimators):
        # An id may stand for a problem and a strategy.
        output = output_of("list", registry.package.removeprefix("revar."), columns=200)
        for item_id in registry.ids():
            item = registry.find(item_id)
            line = next(line for line in output.splitlines() if line.split()[:1] == [item_id])
            assert (item.__doc__ or "").strip().splitlines()[0] in line


def test_list_can_be_narrowed() -> None:
    shown = output_of("list", "problems")
    assert "gridworld" in shown
    assert "monte-carlo" not in shown
    shown = output_of("list", "strategies")
    assert "flow-oracle" in shown
    assert "monte-carlo" not in shown
    shown = output_of("list", "estimators")
    assert "gridworld" not in shown
    assert "monte-carlo" in shown


def test_unknown_kinds_are_refused() -> None:
    result = CliRunner().invoke(main.revar, ["list", "planets"])
    assert result.exit_code == 2
    assert "'planets' is not one of" in result.output


def test_simulate_compares_strategies() -> None:
    arguments = ("--problem", "tree", "--strategy", "oracle", "--strategy", "on-policy")
    output = output_of("simulate", *arguments, "--episodes", "200", "--runs", "40")
    tree = problems.find("tree")()
    for strategy in ("oracle", "on-policy"):
        result = revar.simulate(
            tree.mdp, tree.policy, strategy, episodes=200, runs=40, checkpoints=[200]
        )
        error = 200 * result.mse[0]
        shown = row_of(output, f" {strategy} ")
        assert shown[1:3] == ["40", f"{error:.4g}"]
        assert shown[4] == f"{error / 0.8909445:.2f}"
        assert shown[5] == f"{result.coverage()[0]:.1%}"


def test_simulate_as_json_is_machine_readable() -> None:
    choices = ("--strategy", "on-policy", "--estimator", "monte-carlo")
    size = ("--episodes", "50", "--runs", "3")
    result = CliRunner().invoke(main.revar, ["simulate", *choices, *size, "--json"])
    (row,) = json.loads(result.stdout)
    assert row["strategy"] == "on-policy"
    assert row["estimator"] == "monte-carlo"
    assert (row["episodes"], row["runs"], row["complete"]) == (50, 3, True)


def test_simulate_refuses_an_unknown_strategy() -> None:
    result = CliRunner().invoke(main.revar, ["simulate", "--strategy", "flw"])
    assert isinstance(result.exception, InputError)
    assert "did you mean 'flow'?" in str(result.exception)


def test_help_and_version() -> None:
    assert output_of("--version").strip() == f"revar, version {revar.__version__}"
    for arguments in (["--help"], ["-h"]):
        shown = output_of(*arguments)
        assert "demo" in shown
        assert "list" in shown


def test_bad_input_ends_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def fail() -> None:
        raise InputError("policy of state 3 sums to 0.9")

    monkeypatch.setattr(main, "revar", lambda: fail([], standalone_mode=True))
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "Error: policy of state 3 sums to 0.9\n"


def test_the_installed_command_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from revar.cli.main import main; main()", "--version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f"revar, version {revar.__version__}"

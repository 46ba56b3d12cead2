import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import revar
from revar.experiments import shards
from revar.experiments.results import read_manifest, read_results
from revar.reports.pages import command_of
from revar.strategies import ReducedVariance
from tests.cli.running import cells_of, invoked, output_of, refusal, take_away
from tests.experiments.small import tables_in

SIZE = ("--episodes", "100", "--runs", "20")


def errors(strategy: Any, problem: str = "tree", episodes: int = 100, **options: Any) -> Any:
    """The mean squared error of the same runs, straight from `simulate`."""
    found = revar.find_problem(problem)
    result = revar.simulate(
        found.mdp,
        found.policy,
        strategy,
        episodes=episodes,
        runs=20,
        checkpoints=[episodes],
        **options,
    )
    return result.mse[0], result.mse_standard_error[0], result.coverage()[0]


def test_strategies_are_compared() -> None:
    choices = ("--problem", "tree", "--strategy", "oracle", "--strategy", "on-policy")
    output = output_of("simulate", *choices, *SIZE)
    for strategy in ("oracle", "on-policy"):
        mse, _, covered = errors(strategy)
        strategy_shown, budget, error, ratio, coverage, _ = cells_of(output, strategy)
        assert (strategy_shown, budget) == (strategy, "100")
        assert float(error.split(" ")[0]) == pytest.approx(100 * mse, rel=0.05)
        assert ratio == f"{100 * mse / 0.8909445:.2f}"
        assert coverage == f"{100 * covered:.1f}%"
    assert cells_of(output, "tree", "tree")[-3:] == ["4.038", "0.8909", "0.8909"]
    assert "On tree, after 100 episodes, K·MSE is oracle" in output


def test_json_is_all_that_is_printed() -> None:
    choices = ("--problem", "tree", "--strategy", "revar:confidence_scale=0.1", "--seed", "0")
    result = invoked("simulate", *choices, *SIZE, "--json")
    found = json.loads(result.stdout)
    mse, error, covered = errors(ReducedVariance(confidence_scale=0.1))
    assert found["experiment"] == "simulate"
    assert (found["seed"], found["runs"], found["quick"]) == (0, 20, False)
    assert found["versions"]["revar-rl"] == revar.__version__
    assert len(found["answer"]) == 1
    (row,) = found["results"]
    tree = revar.find_problem("tree")
    assert row == {
        "problem": "tree",
        "strategy": "revar (confidence_scale=0.1)",
        "estimator": "certainty-equivalence",
        "episodes": 100,
        "runs": 20,
        "true_value": revar.policy_value(tree.mdp, tree.policy),
        "limit": pytest.approx(0.8909445, rel=1e-3),
        # Sums over runs may be taken in another order.
        "mse": pytest.approx(mse, rel=1e-12),
        "mse_standard_error": pytest.approx(error, rel=1e-12),
        "coverage": covered,
    }


def test_json_has_no_numbers_that_json_does_not_know() -> None:
    # Doubly robust estimation needs two episodes.
    choices = ("--strategy", "on-policy", "--estimator", "doubly-robust", "--episodes", "1")
    result = invoked("simulate", *choices, "--runs", "2", "--json")
    (row,) = json.loads(result.stdout, parse_constant=pytest.fail)["results"]
    assert row["mse"] is None
    assert row["mse_standard_error"] is None
    shown = output_of("simulate", *choices, "--runs", "2")
    assert cells_of(shown, "on-policy")[2] == "-"


def test_several_budgets_and_estimators() -> None:
    choices = ("--problem", "bandit", "--strategy", "on-policy", "--seed", "5")
    estimators = ("--estimator", "monte-carlo", "--estimator", "certainty-equivalence")
    budgets = ("--episodes", "60", "--episodes", "30", "--runs", "20")
    rows = json.loads(output_of("simulate", *choices, *estimators, *budgets, "--json"))["results"]
    assert [(row["estimator"], row["episodes"]) for row in rows] == [
        ("monte-carlo", 30),
        ("monte-carlo", 60),
        ("certainty-equivalence", 30),
        ("certainty-equivalence", 60),
    ]
    mse, *_ = errors("on-policy", "bandit", 30, estimator="monte-carlo", seed=5)
    assert rows[0]["mse"] == pytest.approx(mse, rel=1e-12)


def test_pairs_that_do_not_fit_are_left_out() -> None:
    estimators = ("--estimator", "monte-carlo", "--estimator", "certainty-equivalence")
    strategies = ("--strategy", "on-policy", "--strategy", "revar")
    result = invoked("simulate", "--problem", "bandit", *strategies, *estimators, *SIZE, "--json")
    assert "left out: strategy 'revar' does not fit estimator 'monte-carlo'\n" in result.stderr
    rows = json.loads(result.stdout)["results"]
    assert [(row["strategy"], row["estimator"]) for row in rows] == [
        ("on-policy", "monte-carlo"),
        ("on-policy", "certainty-equivalence"),
        ("revar", "certainty-equivalence"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--strategy", "flw"), "unknown strategy 'flw'; did you mean 'flow'?"),
        (("--problem", "tre"), "unknown problem 'tre'; did you mean 'tree'?"),
        (
            ("--estimator", "monte"),
            "unknown estimator 'monte'; did you mean 'monte-carlo'?",
        ),
        (
            ("--strategy", "revar", "--estimator", "monte-carlo"),
            "strategy 'revar' fits none of these estimators; it fits certainty-equivalence",
        ),
        (
            ("--problem", "tree:branches=3"),
            "problem 'tree' has no option 'branches'; it has depth, low_variance, high_variance, "
            "common, discount, means_seed, reward_law",
        ),
        (
            ("--problem", "gridworld:slip=2"),
            "slip is 2; it must lie in [0, 1]",
        ),
        (
            ("--strategy", "flow", "--strategy", "flow"),
            "experiment 'simulate' has the strategy 'flow' twice; give each a label of its own",
        ),
        (("--address", "auto"), "--address is for --engine ray"),
    ],
)
def test_what_cannot_be_simulated(arguments: tuple[str, ...], message: str) -> None:
    assert refusal("simulate", *arguments, *SIZE) == message


@pytest.mark.parametrize(
    "arguments", [("--runs", "1"), ("--episodes", "0"), ("--seed", "-1"), ("--threads", "0")]
)
def test_numbers_out_of_range(arguments: tuple[str, ...]) -> None:
    result = invoked("simulate", *arguments)
    assert result.exit_code == 2
    assert f"Invalid value for '{arguments[0]}'" in result.stderr


def test_results_are_kept_and_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = ("--problem", "bandit:means_seed=1", "--strategy", "on-policy", "--strategy", "revar")
    arguments = ("simulate", *choices, *SIZE, "--output", str(tmp_path / "kept"))
    first = output_of(*arguments)
    assert first.rstrip().endswith(f"report: {tmp_path / 'kept' / 'report.html'}")
    assert (tmp_path / "kept" / "report.html").exists()

    # The command of the page gives the same tables again.
    command = command_of(read_results(tmp_path / "kept"))
    assert command == (
        "revar simulate --problem bandit:means_seed=1 --strategy on-policy --strategy revar "
        "--estimator certainty-equivalence --episodes 100 --runs 20"
    )
    output_of(*shlex.split(command)[1:], "--output", str(tmp_path / "again"))
    assert tables_in(tmp_path / "again") == tables_in(tmp_path / "kept")

    def never(*_: object, **__: object) -> None:
        pytest.fail("it was run again")

    monkeypatch.setattr(shards, "simulate", never)
    assert output_of(*arguments) == first


def test_words_of_a_command_are_quoted(tmp_path: Path) -> None:
    problem = "tree:depth=2, reward_law=two-point"
    output_of(
        *("simulate", "--problem", problem, "--strategy", "on-policy", *SIZE),
        *("--output", str(tmp_path)),
    )
    command = read_manifest(tmp_path).experiment.command
    assert shlex.split(command)[2:4] == ["--problem", problem]


def test_a_report_needs_its_extras_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch, "plotly", "matplotlib", "jinja2")
    arguments = ("simulate", "--problem", "bandit", *SIZE)
    assert refusal(*arguments, "--output", str(tmp_path / "kept")) == (
        "this needs matplotlib: pip install 'revar-rl[plots,report]'"
    )
    assert not (tmp_path / "kept").exists()
    assert "K·MSE is" in output_of(*arguments)  # what is only printed needs none of it


def test_an_interrupt_leaves_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shards, "simulate", interrupted)
    result = invoked("simulate", *SIZE, "--output", str(tmp_path), "--json")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr.strip().endswith(
        f"Stopped. What is finished of 'simulate' is stored in {tmp_path}; the same command goes "
        f"on from there."
    )
    # Where nothing is kept, nothing is promised.
    result = invoked("simulate", *SIZE)
    assert result.exit_code == 130
    assert result.stderr.strip().endswith("Stopped.")

"""Budgets of steps and cost, and limits, on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

import revar
from revar import Limits
from tests.cli.running import cells_of, invoked, output_of, refusal

LAKE = ("FrozenLake-v1", "--policy", "uniform", "--discount", "0.99", "--seed", "1")
MODULE = """
import gymnasium as gym

class Fuel(gym.Wrapper):
    def step(self, action):
        state, reward, ended, cut, info = self.env.step(action)
        info = {**info, "fuel": 0.5 + (action == 2), "holes": float(ended and reward == 0)}
        return state, reward, ended, cut, info

def make():
    return Fuel(gym.make("FrozenLake-v1"))
"""
FUEL = ("fuel_lake:make", *LAKE[1:])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fuel_lake.py").write_text(MODULE)
    np.save(tmp_path / "cost.npy", np.arange(64.0).reshape(16, 4) + 1.0)
    np.save(tmp_path / "negative.npy", -np.ones((16, 4)))
    np.save(tmp_path / "grid.npy", np.full((16, 4), 2.0))
    (tmp_path / "text.npy").write_text("no array")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_evaluate_with_steps(folder: Path) -> None:
    found = json.loads(output_of("evaluate", *LAKE, "--steps", "900", "--json"))
    expected = revar.evaluate("FrozenLake-v1", "uniform", discount=0.99, steps=900, seed=1)
    assert (found["episodes"], found["steps"]) == (expected.episodes, expected.steps)
    assert (found["spent"], found["unit"]) == (expected.spent, "steps")
    assert (found["value"], found["gain"]) == (expected.value, expected.gain)
    shown = output_of("evaluate", *LAKE, "--steps", "900")
    assert f"{expected.steps:,} steps of 900, the whole budget" in shown
    assert cells_of(shown, "episodes")[1] == f"{expected.episodes:,}"


def test_evaluate_with_what_info_reports(folder: Path) -> None:
    limits = ("--max-sum", "holes=1.5", "--min-return", "80%", "--max-ratio", "3")
    given = (*FUEL, "--budget", "120.5", "--cost", "fuel", *limits, "--limit-confidence", "0.9")
    found = json.loads(output_of("evaluate", *given, "--output", "fuel.npz", "--json"))
    expected = revar.evaluate(
        "fuel_lake:make",
        "uniform",
        discount=0.99,
        seed=1,
        budget=120.5,
        cost="fuel",
        limits=Limits(max_ratio=3, min_return="80%", max_sums=[("holes", 1.5)], confidence=0.9),
    )
    assert (found["spent"], found["unit"]) == (expected.spent, "cost")
    assert found["value"] == expected.value
    assert [each["name"] for each in found["limits"]] == ["max_ratio", "min_return", "holes"]
    assert all(each["kept"] for each in found["limits"])
    # Without a budget, that of the file; a larger one goes on.
    again = ("evaluate", *FUEL, "--cost", "fuel", *limits, "--limit-confidence", "0.9")
    same = json.loads(output_of(*again, "--resume", "fuel.npz", "--json"))
    assert (same["episodes"], same["spent"]) == (found["episodes"], found["spent"])
    more = json.loads(output_of(*again, "--resume", "fuel.npz", "--budget", "150", "--json"))
    assert more["spent"] >= 150.0
    assert more["episodes"] > found["episodes"]


def test_evaluate_with_an_array(folder: Path) -> None:
    given = (*LAKE, "--budget", "2000", "--cost", "cost.npy", "--max-sum", "grid.npy=90")
    found = json.loads(output_of("evaluate", *given, "--json"))
    assert 2000 <= found["spent"] < 2000 + 64 * 100
    assert [each["name"] for each in found["limits"]] == ["max_sums 0"]


def test_compare_with_steps_and_a_ratio(folder: Path) -> None:
    np.save("policy.npy", np.random.default_rng(0).dirichlet(np.ones(4), 16))
    given = ("FrozenLake-v1", "a=policy.npy", "b=uniform", "--seed", "1", "--steps", "300")
    found = json.loads(output_of("compare", *given, "--max-ratio", "2", "--json"))
    assert 300 <= found["spent"] == found["steps"] < 400
    assert found["unit"] == "steps"
    shown = output_of("compare", *given, "--max-ratio", "2")
    assert f"{found['steps']:,} steps of 300" in shown
    assert "at most 2 times the target policy's probability" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", "9", "--episodes", "9"), "needs one budget: .* got episodes= and steps="),
        (("--budget", "9"), "cost= what a step costs; give both"),
        (("--cost", "fuel"), "cost= what a step costs; give both"),
        (("--steps", "0"), "steps is 0; it must be a whole number of at least 1"),
        (("--budget", "0", "--cost", "fuel"), "budget is 0.0; it must be positive"),
        (("--budget", "9", "--cost", "gone.npy"), "--cost gone.npy cannot be read"),
        (("--budget", "9", "--cost", "text.npy"), "--cost text.npy cannot be read"),
        (("--budget", "9", "--cost", "negative.npy"), "is -1; it must not be negative"),
        (("--budget", "9", "--cost", ""), "--cost names nothing"),
        (("--forbid", "left"), "--forbid left is neither an action such as 2 nor STATE:ACTION"),
        (("--forbid", ":2"), "--forbid :2 is neither an action"),
        (("--forbid", "-1"), "--forbid -1 is neither an action"),
        (("--forbid", "1:2:3"), r'as JSON: \[1, 2\]:3 or "1:2":3$'),
        (("--forbid", "7"), "forbidden names action 7; there are 4 actions"),
        (("--forbid", "99:2"), "forbidden names observation 99"),
        (("--forbid", "0:1"), "limits forbid action 1 in state 0, which the target policy takes"),
        (("--max-ratio", "0.5"), "max_ratio is 0.5; it must be a finite number of at least 1"),
        (("--min-return", "abc"), "min_return is 'abc'; it must be a number, or a share"),
        (("--max-sum", "holes"), "--max-sum holes is not KEY=MOST, such as unsafe=0.1"),
        (("--max-sum", "holes=few"), "--max-sum holes=few is not KEY=MOST"),
        (("--limit-confidence", "0.9"), "--limit-confidence is for --min-return and --max-sum"),
        (("--max-ratio", "2", "--strategy", "revar"), "strategy 'revar' knows no limits"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, options: tuple[str, ...], message: str) -> None:
    import re

    assert re.search(message, refusal("evaluate", *FUEL, *options))


def test_forbidden_states_and_actions_are_read_as_json_or_text() -> None:
    from revar.cli.spending import parse_limits

    def forbidden(*texts: str) -> object:
        limits = parse_limits(
            forbid=texts, max_ratio=None, min_return=None, max_sums=(), limit_confidence=None
        )
        assert limits is not None
        return limits.forbidden

    assert forbidden("2", "5:2") == (2, (5, 2))
    assert forbidden("[1, 2]:0", "door:1", '"a:b":3') == (((1, 2), 0), ("door", 1), ("a:b", 3))


def test_advice_in_steps_and_within_limits(folder: Path) -> None:
    given = (*LAKE, "--half-width", "0.02", "--pilot", "300")
    found = json.loads(output_of("advise", *given, "--cost", "steps", "--max-ratio", "2", "--json"))
    expected = revar.advise(
        "FrozenLake-v1", "uniform", half_width=0.02, discount=0.99, seed=1, pilot=300,
        cost="steps", limits=Limits(max_ratio=2),
    )  # fmt: skip
    assert found["gain"] == expected.gain
    assert found["flow"]["amount"] == expected.flow.amount
    assert found["flow"]["unit"] == "steps"
    assert "of the steps that on-policy needs here" in output_of(
        "advise", *given, "--cost", "steps"
    )
    paid = (*FUEL, "--half-width", "0.02", "--pilot", "300", "--cost", "fuel")
    assert "a cost of " in output_of("advise", *paid)


def test_simulate_with_steps() -> None:
    given = ("simulate", "--steps", "400", "--runs", "20")
    shown = output_of(*given, columns=200)
    grid = revar.find_problem("gridworld")
    limit = revar.optimal_flow(grid.mdp, grid.policy, cost="steps", tolerance=1e-3).limit
    assert "Errors with 400 steps a run" in shown
    for strategy in ("on-policy", "revar", "flow"):
        result = revar.simulate(grid.mdp, grid.policy, strategy, steps=400, runs=20)
        error = 400 * result.mse[-1]
        cells = cells_of(shown, "gridworld", strategy)
        assert cells[3:6] == [
            f"{result.episodes.mean():,.1f}", f"{result.steps.mean():,.1f}", f"{error:.4g}"
        ]  # fmt: skip
        assert cells[7:9] == [f"{limit:.4g}", f"{error / limit:.2f}"]


def test_simulate_with_cost_and_limits(folder: Path) -> None:
    given = (
        *("simulate", "--budget", "900", "--cost", "grid.npy", "--min-return", "90%"),
        *("--max-ratio", "2", "--runs", "20", "--seed", "3"),
    )
    rows = json.loads(output_of(*given, "--json"))
    grid = revar.find_problem("gridworld")
    limits = Limits(max_ratio=2, min_return="90%")
    cost = np.load("grid.npy")
    assert [row["strategy"] for row in rows] == ["on-policy", "flow"]
    for row in rows:
        result = revar.simulate(
            grid.mdp, grid.policy, row["strategy"], budget=900, cost=cost, limits=limits,
            runs=20, seed=3,
        )  # fmt: skip
        assert row["mse"] == result.mse[-1]
        assert (row["unit"], row["budget"]) == ("cost", 900)
        assert row["spent"] == pytest.approx(2 * row["steps"]) == pytest.approx(result.spent.mean())
    shown = output_of(*given, columns=200)
    assert cells_of(shown, "gridworld", "flow")[5] == f"{rows[1]['spent']:,.1f}"


def test_simulate_where_there_is_nothing_to_learn() -> None:
    given = ("simulate", "--problem", "tree:low_variance=0,high_variance=0", "--runs", "2")
    shown = output_of(*given, "--steps", "200", "--strategy", "on-policy", columns=200)
    row = cells_of(shown, "tree (low_variance=0,", "on-policy")  # and the rest below it
    assert row[7:9] == ["0", "-"]


def test_simulate_leaves_out_what_does_not_fit() -> None:
    found = invoked(
        *("simulate", "--steps", "200", "--runs", "5", "--strategy", "flow"),
        *("--strategy", "on-policy", "--estimator", "certainty-equivalence"),
        *("--estimator", "monte-carlo", "--json"),
    )
    assert "left out: strategy 'flow' does not fit estimator 'monte-carlo'" in found.stderr
    assert len(json.loads(found.stdout)) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", "9", "--output", "here"), "for budgets of episodes .* with --json > FILE"),
        (("--steps", "9", "--engine", "ray"), "--output, --engine and --address are for budgets"),
        (("--steps", "9", "--episodes", "9"), "needs one budget: .* got episodes= and steps="),
        (("--max-ratio", "2", "--episodes", "9", "--episodes", "8"), "give --episodes once at"),
        (("--budget", "9", "--cost", "fuel"), "cost is 'fuel'; it must be \"steps\" or an array"),
        (("--budget", "9", "--cost", "negative.npy"), "cost of state 0, action 0 is -1; it must"),
        (("--budget", "9", "--cost", "grid.npy", "--strategy", "revar"), "revar needs to know the"),
        (("--min-return", "99"), "min_return is 99.0; no allowed behavior returns more than"),
        (("--forbid", "0", "--forbid", "1", "--forbid", "2", "--forbid", "3"), "leave no action"),
        (("--max-sum", "unsafe=1"), "amounts of unsafe are given by a name; on a model they must"),
        (("--max-ratio", "2", "--strategy", "revar"), "strategy 'revar' knows no limits"),
    ],
)
def test_mistakes_in_simulate(folder: Path, options: tuple[str, ...], message: str) -> None:
    import re

    assert re.search(message, refusal("simulate", "--runs", "2", *options))

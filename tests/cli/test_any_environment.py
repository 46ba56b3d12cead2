"""`revar evaluate`, `compare` and `advise` where observations are not discrete."""

import json
from pathlib import Path

import numpy as np
import pytest

from revar import load_dataset
from revar.errors import InputError
from tests.cli.running import invoked, output_of, refusal

WORLD = "tests.evaluation.returns.worlds:"
DRIFT = (f"{WORLD}make", "--policy", f"{WORLD}steer", "--seed", "3")


def test_the_table_says_how_the_value_was_found(tmp_path: Path) -> None:
    output = output_of(
        *("evaluate", *DRIFT, "--episodes", "20", "--critics", "linear", "--resets", "50"),
        *("--save-critic", str(tmp_path / "critic.npz"), "--output", str(tmp_path / "first.npz")),
    )
    for words in ("critics explain (linear)", "resets besides", "50", "mean return", "seed 3"):
        assert words in output
    assert len(load_dataset(tmp_path / "first.npz")) == 20
    other = (*DRIFT[:-1], "4")
    output_of(
        *("evaluate", *other, "--episodes", "9", "--method", "mean"),
        *("--output", str(tmp_path / "data.npz")),
    )
    again = output_of(
        *(
            "evaluate",
            *other,
            "--method",
            "critic",
            "--resume",
            str(tmp_path / "data.npz"),
            "--episodes",
            "24",
        ),
        *("--critics", "linear", "--critics", str(tmp_path / "critic.npz")),
        *("--plot", str(tmp_path / "figure.png")),
    )
    assert "linear, 1 given" in again and "24 episodes saved" in again
    assert (tmp_path / "figure.png").exists()


def test_numbers_for_machines() -> None:
    numbers = json.loads(
        output_of(
            *("evaluate", *DRIFT, "--episodes", "20", "--critics", "linear", "--json"),
            *("--features", f"{WORLD}squares"),
        )
    )
    assert numbers["method"] == "critic" and numbers["resets"] == 0  # a factory is handed in
    assert numbers["gain"] == pytest.approx(
        (numbers["mean_return_standard_error"] / numbers["standard_error"]) ** 2
    )
    mean = json.loads(
        output_of("evaluate", *DRIFT, "--episodes", "20", "--method", "mean", "--json")
    )
    assert mean["value"] == pytest.approx(numbers["mean_return"])
    assert np.isfinite(mean["standard_error"]) and mean["gain"] == 1.0


def test_advice() -> None:
    output = output_of(
        *("advise", *DRIFT, "--pilot", "30", "--half-width", "0.3", "--critics", "linear")
    )
    assert "mean return  " in output and "critics      " in output
    stated = json.loads(
        output_of(
            *("advise", *DRIFT, "--pilot", "30", "--half-width", "0.3", "--method", "mean"),
            "--json",
        )
    )
    assert stated["critic"] is None and stated["mean_return"]["unit"] == "episodes"


TWO = (f"{WORLD}make", f"steer={WORLD}steer", f"any={WORLD}other", "--seed", "3")


def test_policies_are_compared(tmp_path: Path) -> None:
    critics = ("--critics", "linear", "--resets", "40", "--features", f"{WORLD}squares")
    shown = output_of(
        *("compare", *TWO, "--episodes", "40", *critics, "--output", str(tmp_path / "runs.npz")),
        *("--plot", str(tmp_path / "forest.png")),
    )
    assert "method critic, in pairs that start alike" in shown
    assert (tmp_path / "forest.png").exists() and len(load_dataset(tmp_path / "runs.npz")) == 40
    more = ("--episodes", "48", *critics, "--json", "--resume", str(tmp_path / "runs.npz"))
    found = json.loads(output_of("compare", *TWO, *more))
    assert found["method"] == "critic" and found["episodes"] == 48
    assert set(found["values"]) == {"steer", "any"} and list(found["differences"]) == ["any"]
    for value in found["values"].values():
        assert value["mean_return_standard_error"] > 0 and value["fitting_seconds"] > 0


def test_policies_are_compared_by_mean_returns() -> None:
    found = json.loads(output_of("compare", *TWO, "--episodes", "40", "--method", "mean", "--json"))
    assert found["method"] == "mean"
    for value in found["values"].values():
        assert value["value"] == value["mean_return"]
    assert "'mean' has no critics" in refusal("compare", *TWO, "--method", "mean", "--resets", "5")


def test_a_critic_that_was_not_learned_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "critic.npz"
    done = invoked("evaluate", "gridworld", "--episodes", "20", "--save-critic", str(path))
    assert "value" in done.stdout  # what was collected is shown
    assert "method 'table' learns no critic" in str(done.exception)
    assert not path.exists()


def test_help_shows_it() -> None:
    for command in ("evaluate", "compare"):
        text = output_of(command, "--help")
        assert "CartPole-v1" in text and "--critics" in text and "--resets" in text


def test_refused_in_a_sentence(tmp_path: Path) -> None:
    assert "cannot keep limits=" in refusal("evaluate", *DRIFT, "--forbid", "1")
    assert "has no 'nothing'" in refusal("evaluate", *DRIFT, "--features", f"{WORLD}nothing")
    late = refusal("evaluate", *DRIFT, "--save-critic", str(tmp_path / "nowhere" / "critic.npz"))
    assert "there is no folder" in late


def test_policies_compared_by_their_returns() -> None:
    policies = (f"steer={WORLD}steer", f"other={WORLD}other", "--seed", "3", "--episodes", "24")
    command = ("compare", f"{WORLD}make", *policies)
    assert "method mean, in pairs" in output_of(*command, "--method", "mean")
    assert "method critic, in pairs" in output_of(*command, "--critics", "linear", "--resets", "9")


@pytest.mark.parametrize(
    "command",
    [
        (*DRIFT, "--episodes", "9", "--method", "mean"),
        ("FrozenLake-v1", "--policy", "uniform", "--episodes", "9", "--strategy", "on-policy"),
    ],
)
def test_the_value_is_shown_where_there_is_no_critic_to_save(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "critic.npz"
    found = invoked("evaluate", *command, "--save-critic", str(path))
    assert isinstance(found.exception, InputError) and not path.exists()
    assert "no critic" in str(found.exception)
    assert "value" in found.stdout

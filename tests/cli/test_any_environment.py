"""`revar evaluate`, `compare` and `advise` where observations are not discrete."""

import json
from pathlib import Path

import numpy as np
import pytest

from revar import EvaluationError, load_dataset
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
    assert numbers["method"] == "critic" and numbers["resets"] == 200
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
    assert isinstance(found.exception, EvaluationError) and not path.exists()
    assert "no critic was saved: method" in str(found.exception)
    assert "from 9 episodes" in found.stdout

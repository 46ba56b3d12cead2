"""`revar compare`, as a person or a program calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from revar import load_dataset
from revar.cli.main import revar

TWO = ("own=own", "uniform=uniform")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(revar, ["compare", *arguments])


def test_it_prints_the_policies_with_the_best_first() -> None:
    done = run("gridworld", *TWO, "--episodes", "300", "--seed", "1")
    assert done.exit_code == 0, done.output
    sentence, _, head, best, other = done.output.splitlines()[:5]
    assert head.split()[:2] == ["policy", "value"]
    assert sentence.split()[0] == best.split()[0]
    assert {best.split()[0], other.split()[0]} == {"own", "uniform"}
    assert done.output.splitlines()[-1] == "seed 1"


def test_json_has_every_number() -> None:
    done = run("gridworld", *TWO, "--episodes", "300", "--seed", "1", "--json")
    found = json.loads(done.output)
    assert list(found["values"]) == ["own", "uniform"]
    (other,) = found["differences"]
    assert other != found["best"]
    low, high = found["differences"][other]["interval"]
    assert low < found["differences"][other]["value"] < high
    assert found["differences"][other]["on_policy_episodes"] > 300
    assert sum(found["chances_of_best"].values()) == pytest.approx(1.0)
    assert found["stopped"] == "budget"


def test_policies_come_from_files_and_episodes_go_to_one() -> None:
    np.save("old.npy", np.full((16, 4), 0.25))
    np.save("new.npy", np.tile([0.1, 0.4, 0.4, 0.1], (16, 1)))
    options = ("gridworld", "old=old.npy", "new=new.npy", "--episodes")
    done = run(*options, "120", "--output", "runs.npz", "--plot", "forest.svg", "--seed", "2")
    assert done.exit_code == 0, done.output
    assert "120 episodes saved to runs.npz" in done.output
    assert Path("forest.svg").stat().st_size > 5_000
    more = run(*options, "200", "--resume", "runs.npz")
    assert more.exit_code == 0, more.output
    assert len(load_dataset("runs.npz")) == 200


def test_it_stops_when_the_best_is_known() -> None:
    np.save("bad.npy", np.tile([1.0, 0.0, 0.0, 0.0], (16, 1)))
    np.save("good.npy", np.tile([0.0, 0.5, 0.5, 0.0], (16, 1)))
    options = ("--episodes", "20000", "--seed", "1", "--decide", "0.9", "--indifference", "0.1")
    done = run("gridworld", "good=good.npy", "bad=bad.npy", *options)
    assert done.exit_code == 0, done.output
    assert "stopped as soon as it was decided" in done.output
    assert "(90% confidence)" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("own=own",), "there must be at least two policies to compare; got ['own']"),
        (("own=own", "own=uniform"), "two policies are called 'own'"),
        (("own", "b=uniform"), "'own' is not NAME=POLICY"),
        (("own=own", "b=missing.npy"), "policy 'b': missing.npy: no such file"),
        ((*TWO, "--decide", "2"), "decide is 2.0; it must lie between 0 and 1"),
        ((*TWO, "--output", "data.txt"), "datasets are saved as .npz or .parquet"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: tuple[str, ...], message: str) -> None:
    done = run("gridworld", *arguments)
    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception}"

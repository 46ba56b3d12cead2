import json
from pathlib import Path

import msgspec
import pytest

from revar.experiments import critics, shards
from revar.experiments import experiment as declarations
from revar.experiments.experiment import PAPER, Experiment
from revar.experiments.results import read_manifest, read_results
from tests.cli.running import cells_of, invoked, output_of, refusal, take_away
from tests.experiments.small import SMALL_TOML, STUDY, small
from tests.reports.hostile import FORMULA, SCRIPT, hostile_experiment
from tests.reports.tiny import tiny_experiment


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SMALL_TOML + "[quick]\nruns = 3\nepisodes = 10\n")
    return str(path)


@pytest.fixture
def tiny_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in experiments, small; without figures, which have tests of their own."""
    found = declarations.load_built_in

    def small_one(name: str) -> Experiment:
        found(name)
        return msgspec.structs.replace(tiny_experiment(name), figures=())

    monkeypatch.setattr(declarations, "load_built_in", small_one)


@pytest.mark.usefixtures("tiny_ones")
def test_an_experiment_by_name(tmp_path: Path) -> None:
    output = output_of("reproduce", "examples", "--output", str(tmp_path), "--seed", "3")
    assert output.startswith("Examples 1 and 2: why look-ahead and transitions matter\n")
    assert output.rstrip().endswith(f"report: {tmp_path / 'examples' / 'report.html'}")
    assert (tmp_path / "examples" / "report.html").exists()
    assert cells_of(output, "example-1", "0", "0")[3:5] == ["0.500", "0.535"]
    assert cells_of(output, "example-1", "tree")[-1] == "698.6"
    assert read_manifest(tmp_path / "examples").seed == 3


@pytest.mark.usefixtures("tiny_ones")
def test_several_names_are_run_once_each(tmp_path: Path) -> None:
    names = ("ablation", "examples", "ablation")
    output = output_of("reproduce", *names, "--output", str(tmp_path), "--no-report")
    lines = [line for line in output.splitlines() if line.startswith(("tables:", "report:"))]
    assert lines == [f"tables: {tmp_path / name}" for name in ("ablation", "examples")]
    # Of several experiments the first table each: the others are in the reports.
    assert "Shares of actions" in output
    assert "Exact figures" not in output


def test_all_is_all_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played: list[str] = []

    def note(name: str) -> Experiment:
        played.append(name)
        return small(name=name, problems=["bandit"], figures=[], runs=2, episodes=3)

    monkeypatch.setattr(declarations, "load_built_in", note)
    monkeypatch.setattr(critics, "load_critic_study", lambda: STUDY)
    found = output_of("reproduce", "all", "--output", str(tmp_path), "--no-report", "--json")
    assert played == list(PAPER)
    every = [*PAPER, "critics"]
    assert [each["experiment"] for each in json.loads(found)] == every
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(every)


def test_the_study_of_critics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(critics, "load_critic_study", lambda: STUDY)
    output = output_of("reproduce", "critics", "--output", str(tmp_path), columns=200)
    assert output.startswith("Small\n")
    assert cells_of(output, "line", "9", "2")[8].endswith("%")
    page = tmp_path / "critics" / "report.html"
    assert output.rstrip().endswith(f"report: {page}")
    page.unlink()
    # Nothing is run again: neither for a report, nor by the same command.
    monkeypatch.setattr(critics, "evaluate", None)
    assert output_of("report", str(tmp_path)) == f"report: {page}\n"
    assert page.exists()
    assert output_of("reproduce", "critics", "--output", str(tmp_path), columns=200) == output


def test_a_file_of_one_s_own(spec: str, tmp_path: Path) -> None:
    arguments = ("reproduce", "--spec", spec, "--output", str(tmp_path / "full"))
    output = output_of(*arguments)
    assert cells_of(output, "five arms", "on-policy", "monte-carlo")[3] == "40"
    full = read_manifest(tmp_path / "full" / "small")
    assert (full.experiment, full.quick) == (small(), False)
    output_of(
        *("reproduce", "--spec", spec, "--output", str(tmp_path / "quick")),
        *("--quick", "--no-report", "--threads", "1"),
    )
    quick = read_results(tmp_path / "quick" / "small")
    assert quick.manifest.quick
    assert {(series.runs, series.budget) for series in quick.series} == {(3, 10)}


def test_what_is_finished_is_not_run_again(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("reproduce", "--spec", spec, "--output", str(tmp_path), "--no-report")
    first = output_of(*arguments)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was run again")

    monkeypatch.setattr(shards, "simulate", never)
    assert output_of(*arguments) == first
    with pytest.raises(AssertionError, match="it was run again"):
        output_of(*arguments, "--seed", "1")


def test_json_is_all_that_is_printed(spec: str, tmp_path: Path) -> None:
    arguments = ("reproduce", "--spec", spec, "--output", str(tmp_path), "--json")
    (found,) = json.loads(output_of(*arguments))
    assert found["experiment"] == "small"
    assert found["digest"] == small().digest()
    assert found["report"] == str(tmp_path / "small" / "report.html")
    stored = read_results(tmp_path / "small")
    assert [row["mse"] for row in found["results"]] == [s.mse[-1] for s in stored.series]
    assert [row["problem"] for row in found["results"]] == [s.problem for s in stored.series]
    (again,) = json.loads(output_of(*arguments, "--no-report"))
    assert again == found | {"report": None}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            (),
            "which experiment? Name one of tree, gridworld, ablation, regret, examples, flow, "
            "coverage, peers, compare, rare-failure, critics, or all",
        ),
        (("tre",), "unknown experiment 'tre'; did you mean 'tree'?"),
        (("critic",), "unknown experiment 'critic'; did you mean 'critics'?"),
        (
            ("all", "forest"),
            "unknown experiment 'forest'; there are tree, gridworld, ablation, "
            "regret, examples, flow, coverage, peers, compare, rare-failure, critics",
        ),
    ],
)
def test_names_that_say_nothing(names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert refusal("reproduce", *names, "--output", str(tmp_path / "results")) == message
    assert not (tmp_path / "results").exists()


def test_two_of_one_name_are_refused(spec: str, tmp_path: Path) -> None:
    arguments = ("reproduce", "--spec", spec, "--spec", spec, "--output", str(tmp_path / "results"))
    assert refusal(*arguments) == "two experiments are called 'small'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("figures = ['mse-curve']", "unknown figure 'mse-curve'; did you mean 'mse-curves'?"),
        (
            "answer = 'why'",
            "unknown answer 'why'; there are order, ablation, slopes, limit, intervals, first, "
            "difference, relative",
        ),
    ],
)
def test_reports_that_cannot_be_written_are_known_before(
    line: str, message: str, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(f"{line}\n{SMALL_TOML}")
    out = tmp_path / "results"
    assert refusal("reproduce", "--spec", str(spec), "--output", str(out)) == message
    assert not out.exists()


@pytest.mark.parametrize("module", ["matplotlib", "plotly", "jinja2"])
def test_missing_extras_are_named_before_anything_is_run(
    module: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch, module)
    out = tmp_path / "results"
    arguments = ("reproduce", "--spec", spec, "--output", str(out))
    assert refusal(*arguments) == f"this needs {module}: pip install 'revar-rl[plots,report]'"
    assert not out.exists()
    assert f"tables: {out / 'small'}" in output_of(*arguments, "--no-report")


def test_words_of_an_experiment_are_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declarations, "load_built_in", lambda name: hostile_experiment())
    result = invoked("reproduce", "hostile", "--output", str(tmp_path), "--no-report", columns=300)
    assert result.exit_code == 0
    assert f"A title {SCRIPT} [/red]\n" in result.stdout
    assert FORMULA in result.stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_number_is_cut_on_a_narrow_terminal(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from revar.reports.tables import make_tables

    experiment = msgspec.structs.replace(
        tiny_experiment("peers"), runs=2, episodes=(20,), tables=("peers", "errors"), figures=()
    )
    few = [c for c in experiment.problem_choices() if c.id in ("bandit", "tree", "riverswim")]
    light = [c for c in experiment.strategy_choices() if c.id not in ("bpg", "odi", "dopt")]
    experiment = msgspec.structs.replace(experiment, problems=tuple(few), strategies=tuple(light))
    monkeypatch.setattr(declarations, "load_built_in", lambda name: experiment)
    arguments = ("reproduce", "peers", "--output", str(tmp_path), "--no-report")
    output = output_of(*arguments, columns=columns)
    assert "…" not in output
    assert max(len(line) for line in output.splitlines() if "tables:" not in line) <= columns
    for table in make_tables(read_results(tmp_path / "peers"))[:1]:
        for row in table.rows:
            for cell in row[table.words :]:
                assert cell in output


@pytest.mark.parametrize("command", ["reproduce", "evaluate"])
def test_ray_is_an_extra(
    command: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch, "ray")
    arguments = {
        "reproduce": ("--spec", spec, "--output", str(tmp_path / "results"), "--no-report"),
        "evaluate": ("gridworld", "--workers", "2"),
    }[command]
    message = "this needs ray: pip install 'revar-rl[ray]'"
    assert refusal(command, *arguments, "--engine", "ray") == message

import subprocess
import sys
from typing import Any

import click
import pytest
from click.testing import CliRunner

import revar
from revar.cli import main
from revar.errors import InputError
from revar.estimators import estimators
from revar.problems import problems
from revar.registry import Registry
from revar.strategies import strategies
from tests.cli.running import output_of


@pytest.mark.parametrize(
    ("kind", "registry"),
    [("problems", problems), ("strategies", strategies), ("estimators", estimators)],
)
def test_list_shows_every_id_with_its_first_line(kind: str, registry: Registry[Any]) -> None:
    shown = output_of("list", kind, columns=200)
    assert shown in output_of("list", columns=200)
    for item_id in registry.ids():
        line = next(line for line in shown.splitlines() if line.split()[:1] == [item_id])
        assert (registry.find(item_id).__doc__ or "").strip().splitlines()[0] in line


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


def test_help_and_version() -> None:
    assert output_of("--version").strip() == f"revar, version {revar.__version__}"
    for arguments in (["--help"], ["-h"]):
        shown = output_of(*arguments)
        assert set(main.revar.commands) <= set(shown.split())


@pytest.mark.parametrize("command", sorted(main.revar.commands))
def test_every_command_explains_itself(command: str) -> None:
    shown = output_of(command, "--help")
    summary, _, rest = shown.partition("Example")
    assert len(summary.splitlines()) > 2
    assert f"\n    revar {command}" in rest
    for parameter in main.revar.commands[command].params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in rest
    assert max(len(line) for line in shown.splitlines()) <= 100


def options_of(command: click.Command) -> set[str]:
    """The options of a command and of those below it."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    own = {name for parameter in command.params for name in parameter.opts}
    return own.union(*map(options_of, below))


def test_results_go_to_output_everywhere() -> None:
    for name in ("demo", "simulate", "reproduce", "evaluate", "campaign"):
        assert "--output" in options_of(main.revar.commands[name])
    assert not options_of(main.revar) & {"--out", "--save", "--to"}


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

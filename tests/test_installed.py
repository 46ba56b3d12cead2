"""The wheel in fresh environments: what works without extras, and what the pages' commands do."""

import re
import shlex
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.docs.pages import ROOT, blocks
from tests.installed import Environment, build_wheel, install

MODEL = """
import numpy as np
import revar

mdp = revar.TabularMDP(np.zeros((1, 2, 1)), [[1.0, 2.0]], [[0.5, 3.0]], [1.0], horizon=1)
result = revar.evaluate(mdp, [[0.5, 0.5]], strategy="on-policy", episodes=200, seed=1)
print(result)
print(len(result._repr_html_()) > 300)
try:
    result.to_pandas()
except ImportError as error:
    print(error)
"""
# What may be missing, in one sentence.
MISSING = r"Error: [^\n]*: pip install 'revar-rl\[[a-z,]+\]'\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(wheel: Path) -> Environment:
    return install(wheel, wheel.parent / "bare", extras=False)


@pytest.fixture(scope="module")
def full(wheel: Path) -> Environment:
    return install(wheel, wheel.parent / "full", extras=True)


def commands() -> list[str]:
    """The commands of README and guides, but for servers, clusters and what is tested above."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("first_steps.md")]
    pages += sorted((ROOT / "docs" / "guides").glob("*.md"))
    lines = [
        line.partition("  #")[0].strip()
        for page in pages
        for block in blocks(page.read_text())
        if block.language == "sh"
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    others = re.compile("revar (demo|serve)|.* (plant[.]|--address )")
    return sorted({line for line in lines if line.startswith("revar ") and not others.match(line)})


def test_the_wheel_has_every_file(wheel: Path) -> None:
    """The blocks of Python of all pages are run with these files, see tests/docs."""
    source = ROOT / "src"
    files = {
        str(path.relative_to(source))
        for path in (source / "revar").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in ZipFile(wheel).namelist() if name.startswith("revar/")}
    assert packed == files


def test_demo_needs_no_extra(bare: Environment, tmp_path: Path) -> None:
    done = bare.run("revar", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "on-policy" in done.stdout and "flow" in done.stdout
    assert re.search(
        r"tables: results/demo; no report is written: .*: pip install 'revar-rl\[plots,report\]'",
        done.stdout,
    )
    assert list((tmp_path / "results" / "demo").glob("*.csv"))


def test_problems_need_no_extra(bare: Environment, full: Environment, tmp_path: Path) -> None:
    """The stand-ins for Gymnasium draw what Gymnasium draws."""
    command = ("revar", "evaluate", "gridworld", "--episodes", "30", "--seed", "3", "--json")
    first, second = (each.run(*command, cwd=tmp_path) for each in (bare, full))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout


def test_models_need_no_extra(bare: Environment, tmp_path: Path) -> None:
    played = bare.run("python", "-c", MODEL, cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    value, html, missing = played.stdout.splitlines()
    assert value.startswith("value 1.") and html == "True"
    assert missing == "this needs pandas: pip install 'revar-rl[tables]'"


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("evaluate FrozenLake-v1 --policy uniform", "gym"),
        ("evaluate gridworld --plot a.png", "plots"),
        ("evaluate gridworld --output a.parquet", "parquet"),
        ("serve --storage sqlite:///campaigns.db", "serve"),
    ],
)
def test_what_needs_an_extra_says_which(
    bare: Environment, command: str, extra: str, tmp_path: Path
) -> None:
    done = bare.run("revar", *shlex.split(command), cwd=tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(MISSING, done.stderr), done.stderr
    assert f"[{extra}]" in done.stderr


def test_commands_of_pages(bare: Environment, full: Environment, tmp_path: Path) -> None:
    (tmp_path / "my_module.py").write_text("def policy(observation):\n    return [0.5, 0.5]\n")
    for command in commands():
        without = bare.run(*shlex.split(command), cwd=tmp_path)
        missing = re.fullmatch(MISSING, without.stderr) and without.returncode == 2
        assert missing or without.returncode == 0, (command, without.stderr)
        done = full.run(*shlex.split(command), cwd=tmp_path)
        assert done.returncode == 0 and done.stdout, (command, done.stderr)

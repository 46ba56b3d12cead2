import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import revar

SOURCE = Path(revar.__file__)


def typed_names() -> dict[str, str]:
    """Public name -> module, as the imports for type checkers state them."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    ]
    names = {}
    for statement in (statement for block in blocks for statement in block.body):
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            assert alias.asname == alias.name  # an explicit re-export
            assert statement.module is not None
            names[alias.name] = statement.module
    return names


def test_type_checkers_and_the_interpreter_see_the_same_names() -> None:
    assert typed_names() == revar._HOMES


@pytest.mark.parametrize("name", sorted(revar._HOMES))
def test_every_public_name_leads_to_its_home(name: str) -> None:
    item = getattr(revar, name)
    assert item is getattr(importlib.import_module(revar._HOMES[name]), name)
    if not name.endswith("Like"):  # an alias of types knows no home
        assert item.__module__ == revar._HOMES[name]
    assert item.__doc__
    assert name in dir(revar)


@pytest.mark.parametrize("name", revar._PACKAGES)
def test_packages_are_loaded_when_first_used(name: str) -> None:
    # In a fresh interpreter: here they may have been imported by another test.
    code = (
        f"import sys, revar\n"
        f"assert {name!r} in dir(revar) and 'revar.{name}' not in sys.modules\n"
        f"assert revar.{name} is sys.modules['revar.{name}']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_names_that_are_fixed_are_there() -> None:
    fixed = {"TabularMDP", "policy_value", "sampling_proportions", "oracle_mse"}
    fixed |= {"Difference", "Values", "optimal_flow", "Limits"}
    assert fixed <= set(revar._HOMES)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'revar' has no attribute 'polcy_value'"):
        _ = revar.polcy_value


# Records that users build, besides functions.
BUILT = [
    "Best",
    "Bins",
    "Budget",
    "DeterministicPolicy",
    "Difference",
    "GaussianPolicy",
    "Limits",
    "Question",
    "TabularMDP",
    "Values",
]
# Those whose methods users call.
WITH_METHODS = [
    "Bins",
    "Campaign",
    "ComparisonResult",
    "Dataset",
    "Episodes",
    "EvaluationResult",
    "Question",
    "TabularMDP",
    "Trajectory",
]


def listed_parameters(docstring: str) -> list[str]:
    """The names under "Parameters", in NumPy's style, without their stars."""
    lines = inspect.cleandoc(docstring).splitlines()
    if "Parameters" not in lines:
        return []
    begin = lines.index("Parameters") + 2
    names: list[str] = []
    for line, after in zip(lines[begin:], [*lines[begin + 1 :], ""], strict=True):
        if not line:
            break
        assert line.startswith("    ") or after.startswith("    "), line
        if not line.startswith(" "):
            names += [name.lstrip("*") for name in line.split(", ")]
    return names


def test_every_parameter_is_documented() -> None:
    items = {name: getattr(revar, name) for name in sorted(revar._HOMES)}
    public: dict[str, Any] = {
        name: each for name, each in items.items() if inspect.isfunction(each)
    }
    public |= {name: items[name] for name in BUILT}
    public |= {
        f"{home}.{name}": getattr(items[home], name)
        for home in WITH_METHODS
        for name, each in vars(items[home]).items()
        if not name.startswith("_") and callable(getattr(each, "__func__", each))
    }
    different = {
        name
        for name, item in public.items()
        if sorted(listed_parameters(item.__doc__ or ""))
        != sorted(set(inspect.signature(item).parameters) - {"self"})
    }
    assert different == set()

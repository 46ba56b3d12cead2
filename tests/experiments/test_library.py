from importlib.resources import files

import pytest

from revar.errors import InputError
from revar.experiments.library import PAPER, built_in
from revar.experiments.specification import checked
from revar.reports.page import check_report

NAMES = sorted(
    path.name.removesuffix(".toml")
    for path in files("revar.experiments").joinpath("built_in").iterdir()
)


def test_every_file_is_known() -> None:
    assert sorted([*PAPER, "demo"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_built_in_experiments_can_be_run_and_reported(name: str) -> None:
    experiment = checked(built_in(name))
    assert experiment.name == name
    check_report(experiment)


@pytest.mark.parametrize("name", PAPER)
def test_experiments_of_the_paper_have_a_quick_version_and_say_what_is_open(name: str) -> None:
    experiment = built_in(name)
    full, quick = experiment.at_size(quick=False), experiment.at_size(quick=True)
    assert quick.runs * max(quick.budgets()) * 4 <= full.runs * max(full.budgets())
    assert experiment.unstated
    assert experiment.question.endswith("?")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tre", "unknown experiment 'tre'; did you mean 'tree'?"),
        (
            "xyzzy",
            "unknown experiment 'xyzzy'; there are tree, gridworld, ablation, regret, examples, "
            "flow, coverage, peers",
        ),
        (
            "../built_in/demo",
            "unknown experiment '../built_in/demo'; there are tree, gridworld, ablation, regret, "
            "examples, flow, coverage, peers",
        ),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        built_in(name)
    assert str(caught.value) == message

import inspect
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest

from revar.errors import InputError
from revar.estimators import estimators
from revar.experiments.experiment import (
    CRITICS,
    PAPER,
    Choice,
    Experiment,
    build_estimator,
    build_problem,
    build_strategy,
    check_experiment,
    load_built_in,
    parse_choice,
    parse_experiment,
    read_experiment,
)
from revar.problems import problems
from revar.reports.pages import check_report
from revar.strategies import ReducedVariance, strategies
from tests.experiments.small import SMALL_TOML, small

NAMES = sorted(
    path.name.removesuffix(".toml")
    for path in files("revar.experiments").joinpath("built_in").iterdir()
)


def refusal(text: str) -> str:
    """What is said about a declaration that cannot be used."""
    with pytest.raises(InputError) as caught:
        check_experiment(parse_experiment(text, "small.toml"))
    message = str(caught.value)
    assert "\n" not in message
    return message


def changed(old: str, new: str) -> str:
    assert old in SMALL_TOML
    return SMALL_TOML.replace(old, new)


def test_a_declaration_is_read() -> None:
    experiment = parse_experiment(SMALL_TOML, "small.toml")
    assert experiment == small()
    assert [c.name for c in experiment.problem_choices()] == ["example-1", "five arms"]
    on_policy, adaptive = experiment.strategy_choices()
    assert [c.id for c in experiment.estimator_choices(on_policy)] == [
        "certainty-equivalence",
        "monte-carlo",
    ]
    assert [c.id for c in experiment.estimator_choices(adaptive)] == ["certainty-equivalence"]
    assert experiment.budgets() == (40,)
    assert check_experiment(experiment) is experiment


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs = 5", "runs = ", "small.toml is not TOML: Invalid value (at line 5, column 8)"),
        (
            "runs = 5",
            "rnus = 5",
            "small.toml: Object contains unknown field rnus",
        ),
        ("runs = 5\n", "", "small.toml: Object missing required field runs"),
        ("runs = 5", "runs = 5.5", "small.toml: Expected int, got float - at $.runs"),
        ("runs = 5", "runs = true", "small.toml: Expected int, got bool - at $.runs"),
        ("runs = 5", "runs = '5'", "small.toml: Expected int, got str - at $.runs"),
        (
            "runs = 5",
            "runs = 1",
            "small.toml: experiment 'small' has 1 runs; at least 2 are needed",
        ),
        (
            "episodes = 40",
            "episodes = 0",
            "small.toml: experiment 'small' has episodes = 0; a positive whole number, or "
            "increasing ones",
        ),
        (
            "episodes = 40",
            "episodes = [20, 10]",
            "small.toml: experiment 'small' has episodes = (20, 10); a positive whole number, or "
            "increasing ones",
        ),
        (
            "episodes = 40",
            "episodes = [10, 10]",
            "small.toml: experiment 'small' has episodes = (10, 10); a positive whole number, or "
            "increasing ones",
        ),
        (
            "episodes = 40",
            "episodes = []",
            "small.toml: experiment 'small' has episodes = (); a positive whole number, or "
            "increasing ones",
        ),
        (
            "episodes = 40",
            "episodes = [10, 'many']",
            "small.toml: Expected int, got str - at $.episodes[1]",
        ),
        (
            'name = "small"',
            'name = "../small"',
            "small.toml: the name of an experiment is '../small'; letters, digits, - and _ are "
            "allowed",
        ),
        (
            'name = "small"',
            'name = ""',
            "small.toml: the name of an experiment is ''; letters, digits, - and _ are allowed",
        ),
        (
            '  "revar",\n',
            '  "revar", { id = "flow", label = "revar" },\n',
            "small.toml: experiment 'small' has the strategy 'revar' twice; give each a label of "
            "its own",
        ),
        (
            '"five arms"',
            '"example-1"',
            "small.toml: experiment 'small' has the problem 'example-1' twice; give each a label "
            "of its own",
        ),
        (
            '["certainty-equivalence", "monte-carlo"]',
            '["monte-carlo", "monte-carlo"]',
            "small.toml: experiment 'small' has the estimator 'monte-carlo' twice; give each a "
            "label of its own",
        ),
        (
            '"five arms"',
            '"five\\narms"',
            "small.toml: experiment 'small' has the problem 'five\\narms'; a label is of "
            "characters that can be printed",
        ),
        (
            'label = "five arms"',
            'lable = "five arms"',
            "small.toml: Object contains unknown field lable - at $.problems[1]",
        ),
        (
            "episodes = 40",
            "episodes = 40\n[quick]\nruns = 1\nepisodes = 2",
            # Everything after a table's heading belongs to it.
            "small.toml: Object contains unknown field problems - at $.quick",
        ),
        ('"example-1"', '"exmaple-1"', "unknown problem 'exmaple-1'; did you mean 'example-1'?"),
        ('"revar"', '"rvar"', "unknown strategy 'rvar'; did you mean 'revar'?"),
        (
            '"monte-carlo"',
            '"monte-crlo"',
            "unknown estimator 'monte-crlo'; did you mean 'monte-carlo'?",
        ),
        (
            '"revar"',
            '{ id = "revar", options = { scale = 1 } }',
            "strategy 'revar' has no option 'scale'; it has confidence_scale, "
            "failure_probability, replan_every, initial_visits, known_transitions",
        ),
        (
            '"revar"',
            '{ id = "revar", estimators = ["monte-carlo"] }',
            "strategy 'revar' does not fit estimator 'monte-carlo'; it fits certainty-equivalence",
        ),
        (
            'label = "five arms"',
            "options = { policy = [0.5] }",
            "problem 'bandit' cannot be built with {'policy': [0.5]}: cannot reshape array of "
            "size 5 into shape (1,1)",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(old: str, new: str, message: str) -> None:
    assert refusal(changed(old, new)) == message


def test_the_quick_size_is_checked_too() -> None:
    text = SMALL_TOML + "[quick]\nruns = 1\nepisodes = 10\n"
    assert refusal(text) == "small.toml: experiment 'small' has 1 runs; at least 2 are needed"


@pytest.mark.parametrize("field", ["problems", "strategies", "estimators"])
def test_nothing_to_run_is_refused(field: str) -> None:
    with pytest.raises(InputError, match=f"experiment 'small' has no {field}"):
        small(**{field: []})


def test_a_file_is_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(InputError, match=re.escape(f"{path} cannot be read: ")):
        read_experiment(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=re.escape(f"{path} cannot be read: ")):
        read_experiment(path)
    path.write_text("name = 3\n" + SMALL_TOML.replace('name = "small"', ""))
    with pytest.raises(InputError, match=re.escape(f"{path}: Expected str, got int - at $.name")):
        read_experiment(path)
    path.write_text(SMALL_TOML)
    assert read_experiment(path) == small()


# What anyone may write after an option of anything that is registered.
VALUES: tuple[Any, ...] = (
    -1,
    0,
    2.5,
    "word",
    True,
    [],
    [1, 2],
    float("nan"),
    float("inf"),
    {},
    -0.5,
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of numbers that are then refused
def test_options_are_taken_or_refused_never_worse() -> None:
    builds = (
        (problems, build_problem),
        (strategies, build_strategy),
        (estimators, build_estimator),
    )
    refused = 0
    for registry, build in builds:
        for item_id in registry.ids():
            item = registry.find(item_id)
            for option in inspect.signature(item).parameters:
                for value in VALUES:
                    try:
                        build(Choice(id=item_id, options={option: value}))
                    except InputError as error:
                        assert "\n" not in str(error)
                        refused += 1
    assert refused > 100


def test_a_choice_is_named_by_its_label_or_its_options() -> None:
    assert Choice(id="revar").name == "revar"
    options = {"confidence_scale": 0.1, "initial_visits": 3}
    assert Choice(id="revar", options=options).name == (
        "revar (confidence_scale=0.1, initial_visits=3)"
    )
    assert Choice(id="revar", label="mine", options=options).name == "mine"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("revar", {}),
        ("revar:", {}),
        ("revar:confidence_scale=0.1", {"confidence_scale": 0.1}),
        ("revar:confidence-scale=0.1", {"confidence_scale": 0.1}),
        (
            "revar: initial_visits = 3 , known_transitions = true",
            {"initial_visits": 3, "known_transitions": True},
        ),
        ("revar:confidence_scale=1e-3,", {"confidence_scale": 1e-3}),
    ],
)
def test_choices_on_a_command_line(text: str, options: dict[str, Any]) -> None:
    choice = parse_choice(text, strategies)
    assert choice == Choice(id="revar", options=options)
    assert build_strategy(choice) == ReducedVariance(**options)


def test_words_on_a_command_line_stay_words() -> None:
    choice = parse_choice("tree:reward_law=two-point,depth=3", problems)
    assert choice.options == {"reward_law": "two-point", "depth": 3}
    assert build_problem(choice).mdp.reward_law == "two-point"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flw", "unknown strategy 'flw'; did you mean 'flow'?"),
        ("flw:a=1", "unknown strategy 'flw'; did you mean 'flow'?"),
        (
            "revar:0.1",
            "strategy 'revar:0.1': '0.1' is no option; write id:option=value",
        ),
        (
            "revar:confidence_scale=1,confidence-scale=2",
            "strategy 'revar:confidence_scale=1,confidence-scale=2' has the option "
            "'confidence_scale' twice",
        ),
    ],
)
def test_bad_choices_on_a_command_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_choice(text, strategies)
    assert str(caught.value) == message


def test_sizes() -> None:
    experiment = small(episodes=[10, 20], quick={"runs": 2, "episodes": 7})
    full, quick = experiment.at_size(quick=False), experiment.at_size(quick=True)
    assert (full.runs, full.episodes, full.quick) == (5, (10, 20), None)
    assert (quick.runs, quick.episodes, quick.quick) == (2, 7, None)
    assert small().at_size(quick=True) == small()  # it has no quick version
    assert full.digest() != quick.digest()
    # What is run is the same whatever the size that was not run.
    assert full.digest() == small(episodes=[10, 20]).digest()


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    lines = SMALL_TOML.strip().splitlines()
    scalars, rest = lines[:5], lines[5:]
    shuffled = "\n".join([*reversed(scalars), *rest])
    assert shuffled != SMALL_TOML
    digest = parse_experiment(SMALL_TOML, "").digest()
    assert parse_experiment(shuffled, "").digest() == digest
    one = small(problems=[{"id": "tree", "options": {"depth": 2, "common": 0.9}}])
    other = small(problems=[{"options": {"common": 0.9, "depth": 2}, "id": "tree"}])
    assert one.digest() == other.digest()


CHANGES: list[dict[str, Any]] = [
    {"name": "other"},
    {"title": "Other"},
    {"question": "Other?"},
    {"runs": 6},
    {"episodes": 41},
    {"episodes": [40]},  # estimated at the end alone
    {"problems": ["example-1"]},
    {"problems": [{"id": "bandit", "label": "five arms"}, "example-1"]},
    {"problems": ["example-1", {"id": "bandit", "label": "arms"}]},
    {"strategies": ["on-policy", "revar"]},
    {"strategies": ["on-policy", {"id": "revar", "options": {"confidence_scale": 0.5}}]},
    {"estimators": ["importance-sampling"]},
    {"known_transitions": True},
    {"quick": {"runs": 2, "episodes": 3}},
    {"answer": "limit"},
    {"figures": []},
    {"tables": ["exact"]},
    {"unstated": ["Nothing."]},
    {"command": "revar reproduce small"},
]


def test_the_digest_changes_with_every_field() -> None:
    changes = {field for change in CHANGES for field in change}
    assert changes == set(Experiment.__struct_fields__)
    digests = [small().digest(), *(small(**change).digest() for change in CHANGES)]
    assert len(set(digests)) == len(digests)
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)


def test_a_declaration_survives_json() -> None:
    experiment = small(strategies=[{"id": "revar", "options": {"confidence_scale": 0.1}}])
    again = msgspec.json.decode(msgspec.json.encode(experiment), type=Experiment)
    assert again == experiment
    assert again.digest() == experiment.digest()


def test_every_file_is_known() -> None:
    assert sorted([*PAPER, CRITICS, "demo"]) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != CRITICS])
def test_built_in_experiments_can_be_run_and_reported(name: str) -> None:
    experiment = check_experiment(load_built_in(name))
    assert experiment.name == name
    check_report(experiment)


@pytest.mark.parametrize("name", PAPER)
def test_experiments_of_the_paper_have_a_quick_version_and_say_what_is_open(name: str) -> None:
    experiment = load_built_in(name)
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
            "flow, coverage, peers, compare, rare-failure, critics",
        ),
        (
            "../built_in/demo",
            "unknown experiment '../built_in/demo'; there are tree, gridworld, ablation, regret, "
            "examples, flow, coverage, peers, compare, rare-failure, critics",
        ),
    ],
)
def test_unknown_built_in_names(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_built_in(name)
    assert str(caught.value) == message

"""Results in notebooks and tables: short texts, HTML, columns, pickles."""

import pickle
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revar
from revar import progress
from revar.errors import MissingExtraError
from tests.environments.custom import Corridor

LONGEST = 400  # characters of a repr
SETTINGS: dict[str, Any] = {"episodes": 40, "horizon": 9, "seed": 1}
POLICIES: Any = {"fair": "uniform", "<b>right</b>": [[0.2, 0.8]] * 3}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """One of every kind of result."""
    problem = revar.find_problem("gridworld")
    on_policy: Any = {**SETTINGS, "strategy": "on-policy"}
    return {
        "value": revar.evaluate(Corridor(3), "uniform", **on_policy),
        "critic": revar.evaluate(
            "CartPole-v1", "uniform", critics=["linear"], **{**SETTINGS, "resets": 0}
        ),
        "mean": revar.evaluate("Pendulum-v1", "uniform", method="mean", **SETTINGS),
        "comparison": revar.compare(Corridor(3), POLICIES, **on_policy),
        "paired": revar.compare(Corridor(3), POLICIES, method="mean", **SETTINGS),
        "simulation": revar.simulate(problem.mdp, problem.policy, "on-policy", episodes=9, runs=3),
        "simulations": revar.simulate(
            problem.mdp, revar.Values([problem.policy] * 2), "on-policy", episodes=9, runs=3
        ),
    }


KINDS = ("value", "critic", "mean", "comparison", "paired", "simulation", "simulations")


class Markup(HTMLParser):
    """Counts tags, and sees that they are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_a_small_table_and_a_picture(kind: str, results: dict[str, Any]) -> None:
    shown = Markup(results[kind]._repr_html_())
    assert not shown.open
    assert shown.tags.count("tr") >= 2
    assert shown.tags.count("img") == (0 if kind.startswith("simulation") else 1)
    assert "b" not in shown.tags  # what a policy is called is no markup


def test_without_matplotlib_there_is_the_table_alone(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = Markup(results["value"]._repr_html_())
    assert "table" in shown.tags and "img" not in shown.tags


@pytest.mark.parametrize("kind", KINDS)
def test_results_survive_pickling(kind: str, results: dict[str, Any]) -> None:
    again = pickle.loads(pickle.dumps(results[kind]))
    assert repr(again) == repr(results[kind])
    assert again._repr_html_() == results[kind]._repr_html_()
    assert str(again.to_dict()) == str(results[kind].to_dict())


def things(results: dict[str, Any]) -> Iterator[Any]:
    problem = revar.find_problem("gridworld")
    yield from results.values()
    yield from (problem, problem.mdp, problem.question)
    yield revar.Task.of(problem.mdp, problem.policy, budget=9)
    yield revar.optimal_flow(problem.mdp, problem.policy, tolerance=0.1)
    yield revar.sampling_proportions(problem.mdp, problem.policy)
    yield revar.epsilon_greedy(problem.policy, 0.1, 4)
    yield revar.uniform_policy(1000)
    for kind in ("value", "critic", "comparison"):
        yield from (results[kind].dataset, results[kind].findings, results[kind].checkpoints[-1])
    yield from (results["value"].statistics, results["value"].dataset[0])
    yield results["comparison"].ranking
    yield results["critic"].findings.corrected


def test_reprs_are_a_line(results: dict[str, Any]) -> None:
    for thing in things(results):
        text = repr(thing)
        assert len(text) <= LONGEST, (type(thing), len(text))
        assert "\n" not in text and "array(" not in text
        assert type(thing).__name__ in text


@pytest.mark.parametrize("kind", [*KINDS, "dataset", "episodes"])
def test_columns_become_frames(kind: str, results: dict[str, Any]) -> None:
    pandas, polars = import_module("pandas"), import_module("polars")
    thing = {
        **results,
        "dataset": results["value"].dataset,
        "episodes": results["critic"].dataset,
    }[kind]
    first, second = thing.to_pandas(), thing.to_polars()
    assert isinstance(first, pandas.DataFrame) and isinstance(second, polars.DataFrame)
    assert list(first.columns) == second.columns == list(thing.columns())
    assert len(first) == len(second) > 0
    for name in second.columns:
        assert first[name].tolist() == second[name].to_list() == list(thing.columns()[name])


def test_datasets_have_a_row_for_each_step(results: dict[str, Any]) -> None:
    data = results["value"].dataset
    columns = data.to_dict()
    assert [columns["episode"][0], columns["episode"][-1]] == [0, len(data) - 1]
    last = data.start[1:] - 1
    assert columns["reward"].sum() == data.rewards.sum()
    # States are what they are in the environment, not the order they were met in.
    assert set(columns["state"].tolist()) == {0, 1, 2}
    assert set(columns["successor"][last].tolist()) <= {-1, 0, 1, 2}
    played = results["critic"].dataset
    steps = played.to_dict()
    assert [name for name in steps if name.startswith("observation")] == [
        f"observation_{number}" for number in range(4)
    ]
    assert steps["terminated"].sum() == played.terminated.sum()
    assert np.array_equal(steps["observation_2"], played.observations[:, 2])


def test_labels_that_are_tuples_become_texts() -> None:
    episode = revar.Trajectory.of([0, 1], [0, 1], [1.0, 2.0])
    data = revar.Dataset.of([episode], labels=((0, 1), (2, 3)))
    columns = data.to_dict()
    assert columns["state"].tolist() == ["(0, 1)", "(2, 3)"]
    assert columns["successor"].tolist() == ["(2, 3)", ""]


def test_what_was_found_is_plain(results: dict[str, Any]) -> None:
    value = results["value"]
    numbers = value.to_dict()
    assert numbers["value"] == value.value
    assert numbers["interval"] == list(value.interval)
    assert value.columns()["value"][-1] == value.value
    assert (value.columns()["low"][-1], value.columns()["high"][-1]) == value.interval
    compared = results["comparison"]
    assert compared.to_dict()["values"]["fair"]["value"] == compared.values["fair"].value
    assert compared.columns()["policy"][0] == compared.best
    simulated = results["simulation"]
    assert simulated.to_dict()["mse"] == simulated.mse.tolist()
    assert len(simulated.columns()["estimate"]) == 3 * len(simulated.checkpoints)


def test_frames_need_their_extra(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtraError, match=r"pip install 'revar-rl\[tables\]'"):
            getattr(results["value"].dataset, f"to_{name}")()


class Display:
    """What IPython's display handle is asked to show."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, content: str) -> None:
        self.shown.append(content)


def test_the_bar_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for IPython: rich's own bar would show nothing without ipywidgets."""
    handle = Display()
    module = ModuleType("IPython.display")
    vars(module).update(HTML=str, display=lambda content, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.0)
    with revar.progress_bar("a<b", "steps") as show:
        show(0, None)
        show(25, 100)
        show(50, 100, "fitting critics")
    first, second, third, last = handle.shown
    assert first == "<progress></progress> a&lt;b"
    assert second.startswith("<progress value='25' max='100'></progress> a&lt;b 25 of 100 steps, ")
    assert "a&lt;b fitting critics 50 of 100" in third
    assert last == ""


def test_the_bar_of_a_notebook_leaves_compiling_out(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, now = Display(), [0.0]
    module = ModuleType("IPython.display")
    vars(module).update(HTML=str, display=lambda content, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with progress._notebook_bar("flow", "episodes") as show:
        for now[0], done, what in (1, 1, ""), (2, 2, progress.COMPILING), (62, 2, ""), (63, 3, ""):
            show(done, 100, what)
    compiling, after = handle.shown[1], handle.shown[3]
    assert compiling.endswith(" flow compiling (first run only) 2 of 100 episodes")
    assert after.endswith(" flow 3 of 100 episodes, 97 s left")


def test_campaigns_are_a_line_too() -> None:
    storage = revar.open_storage("memory:")
    table = {state: [0.2, 0.3, 0.5] for state in range(30)}
    campaign = revar.Campaign.create(storage, "ads", horizon=5, episodes=20, policy=table)
    assert repr(campaign) == "Campaign('ads')"
    assert repr(campaign.start_episode()) == "CampaignEpisode(number=0, steps=0, over=False)"
    assert repr(campaign.status()) == "Status('ads': 0 of 20 episodes finished, 1 open)"

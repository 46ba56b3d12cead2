"""Budgets of steps or cost in simulations: what is spent, when estimates are made, mistakes."""

import json
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from revar import Best, Difference, Limits, Question, TabularMDP, Values, simulate
from revar.errors import InputError
from revar.estimators import find_estimator
from revar.problems import problems
from revar.simulation.result import SimulationResult

GRID = problems.find("gridworld")()
COSTS = np.random.default_rng(4).exponential(size=GRID.policy.shape) + 0.01


def played(strategy: Any = "on-policy", asked: Any = None, **options: Any) -> SimulationResult:
    settings = {"runs": 4, "seed": 2, **options}
    return simulate(GRID.mdp, GRID.policy if asked is None else asked, strategy, **settings)


def chance(short: float = 0.9) -> TabularMDP:
    """One action; the first step costs next to nothing, and seldom leads to one that costs much."""
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0, 1] = 1.0 - short
    return TabularMDP(transitions, np.ones((2, 1)), np.ones((2, 1)), [1.0, 0.0], 2)


@pytest.mark.parametrize("compiled", [None, False])
def test_episodes_that_are_cheaper_than_any_behavior_expects(compiled: bool | None) -> None:
    """How many episodes a budget pays for is not known beforehand: the log has to grow."""
    cost = np.array([[1e-3], [10.0]])
    result = simulate(
        chance(),
        np.ones((2, 1)),
        "on-policy",
        budget=5.0,
        cost=cost,
        runs=200,
        keep_episodes=True,
        compiled=compiled,
    )
    expected = 5.0 / (1e-3 + 0.1 * 10.0)
    assert result.episodes.max() > 4 * expected
    for run, data in enumerate(result.datasets):
        assert result.episodes[run] == len(data)
        assert result.spent[run] == pytest.approx(cost[data.states, data.actions].sum())
        np.testing.assert_array_equal(
            np.bincount(data.states, minlength=2), result.visits[run, :, 0]
        )


def test_a_long_log_is_that_of_the_visits() -> None:
    result = played(episodes=5000, runs=2, keep_episodes=True, checkpoints=[5000])
    for run, data in enumerate(result.datasets):
        assert len(data) == 5000
        visits = np.zeros(GRID.policy.shape, dtype=np.int64)
        np.add.at(visits, (data.states, data.actions), 1)
        np.testing.assert_array_equal(visits, result.visits[run])


@pytest.mark.parametrize("strategy", ["flow", "on-policy", "revar"])
def test_checkpoints_are_in_the_unit(strategy: str) -> None:
    """At a checkpoint the estimate is that of the episodes until it was reached."""
    points = [50, 51, 200, 1000]
    result = played(strategy, steps=1000, checkpoints=points, keep_episodes=True)
    assert result.checkpoints.tolist() == points
    for run, data in enumerate(result.datasets):
        for place, point in enumerate(points):
            ends = data.start[1:]
            count = 1 + int(np.argmax(ends >= point))
            short = simulate(
                GRID.mdp, GRID.policy, strategy, steps=1000, runs=1, seed=2, first_run=run,
                checkpoints=[min(int(ends[count - 1]), 1000)],
            )  # fmt: skip
            assert short.estimates[0, 0] == result.estimates[run, place]


def test_default_checkpoints() -> None:
    assert played(steps=1000).checkpoints[[0, -1]].tolist() == [1, 1000]
    paid = played(budget=300.0, cost=COSTS)
    assert paid.checkpoints[-1] == 300.0
    assert (np.diff(paid.checkpoints) > 0).all()


@pytest.mark.parametrize("unit", ["steps", "cost"])
def test_estimators_of_episodes_get_those_until_the_checkpoint(unit: str) -> None:
    budget: dict[str, Any] = {"steps": 900} if unit == "steps" else {"budget": 800.0, "cost": COSTS}
    points = [100, 333, 800]
    estimator = find_estimator("per-decision-importance-sampling")
    result = played(estimator=estimator, checkpoints=points, keep_episodes=True, **budget)
    from revar import Task

    task = Task.of(GRID.mdp, GRID.policy)
    visit_cost = COSTS if unit == "cost" else np.ones(COSTS.shape)
    for run, data in enumerate(result.datasets):
        spent = np.cumsum(visit_cost[data.states, data.actions])[data.start[1:] - 1]
        for place, point in enumerate(points):
            count = 1 + int(np.argmax(spent >= point))
            expected = estimator.estimate(task, data.head(count))
            assert result.estimates[run, place] == expected.value
            assert result.standard_errors[run, place] == pytest.approx(expected.standard_error)


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize(
    ("budget", "total"),
    [({"steps": 400}, 1600), ({"budget": 150.5, "cost": COSTS}, 602)],
)
def test_progress_is_in_the_unit(budget: dict[str, Any], total: int, compiled: bool | None) -> None:
    calls: list[tuple[int, int]] = []
    played(compiled=compiled, progress=lambda *seen: calls.append(seen), **budget)
    done = [count for count, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (total, total)
    assert {seen for _, seen in calls} == {total}


INTERRUPTED = """
import json, signal
import revar
from revar.problems import problems

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it otherwise
said = False
def progress(done, total):
    global said
    if done >= 3 * 5000 and not said:
        said = True
        print("playing", flush=True)

problem = problems.find("gridworld")()
result = revar.simulate(
    problem.mdp, problem.policy, "on-policy", steps=5000, runs=300_000, checkpoints=[5000],
    progress=progress,
)
print(json.dumps([result.complete, result.runs, result.unit, result.spent.min(),
                  result.spent.max(), len(result.episodes)]), flush=True)
"""


def test_an_interrupt_gives_back_the_runs_that_spent_their_budget() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "playing\n"
        process.send_signal(signal.SIGINT)
        complete, runs, unit, least, most, episodes = json.loads(process.stdout.readline())
        assert process.wait(10) == 0
    assert (complete, unit) == (False, "steps")
    assert 0 < runs == episodes < 300_000
    assert 5000 <= least <= most < 5000 + GRID.mdp.horizon


NEEDED = int(GRID.policy[0].argmax())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs one budget: .*; got none"),
        ({"episodes": 5, "steps": 9}, "needs one budget: .*; got episodes= and steps="),
        ({"budget": 5.0}, "cost= what a step costs; give both"),
        ({"steps": 5, "cost": COSTS}, "give both, or episodes= or steps= alone"),
        ({"steps": 0}, "steps is 0; it must be a whole number of at least 1"),
        ({"budget": 0.0, "cost": COSTS}, r"budget is 0.0; it must be positive"),
        ({"budget": 5.0, "cost": -COSTS}, r"cost of state 0, action 0 is -.*; it must not be neg"),
        ({"budget": 5.0, "cost": 0 * COSTS}, "with this cost no visit costs anything"),
        ({"budget": 5.0, "cost": "fuel"}, "cost is 'fuel'; it must be \"steps\" or an array"),
        ({"budget": 5.0, "cost": COSTS[:2]}, r"cost has shape \(2, 4\); it must be"),
        ({"steps": 9, "checkpoints": [3, 10]}, "checkpoints must increase from at least 1 to at"),
        ({"steps": 9, "checkpoints": [2.5]}, "checkpoints must be whole numbers of steps"),
        ({"budget": 5.0, "cost": COSTS, "checkpoints": [0]}, "must increase from above 0 to at"),
        (
            {"budget": 5.0, "cost": COSTS, "strategy": "revar"},
            "revar needs to know the number of episodes, or of steps, in advance",
        ),
        (
            {"budget": 5.0, "cost": COSTS, "strategy": "cb-var"},
            "cb-var needs to know the number of episodes, or of steps, in advance",
        ),
        (
            {"strategy": "revar", "limits": Limits(max_ratio=2)},
            "strategy 'revar' knows no limits; those that do are flow, flow-oracle, on-policy",
        ),
        ({"limits": 3}, r"limits is 3; it must be a revar.Limits, or None"),
        ({"limits": Limits(min_return=50.0)}, r"min_return is 50.0; no allowed behavior returns"),
        (
            {"limits": Limits(min_return="9000%")},
            'min_return is "9000%", which is 12.*; no allowed',
        ),
        ({"limits": Limits(forbidden=[(0, NEEDED)])}, "limits keep collection from ever visiting"),
        ({"limits": Limits(forbidden=[0, 1, 2, 3])}, "limits leave no action in state 0"),
        ({"limits": Limits(forbidden=[(99, 0)])}, r"forbidden names the pair \(99, 0\); there are"),
        ({"limits": Limits(forbidden=[("a", 0)])}, r"forbidden names the pair \('a', 0\)"),
        (
            {"limits": Limits(max_sums=[(COSTS, -1.0)])},
            "max_sums 0 is at most -1; no allowed behavior has less than",
        ),
        ({"limits": Limits(max_sums=[("fuel", 1)])}, "amounts of fuel are given by a name; on a"),
        ({"limits": Limits(max_sums=[(min, 1)])}, "amounts of max_sums 0 are given by a function"),
    ],
)
def test_mistakes_are_one_sentence(options: dict[str, Any], message: str) -> None:
    if not {"episodes", "steps", "budget"} & set(options) and options:
        options = {"episodes": 20, **options}
    with pytest.raises(InputError, match=message) as refused:
        played(**{"strategy": "flow", **options})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min_return": "abc"}, "min_return is 'abc'; it must be a number, or a share of the"),
        ({"max_ratio": 0.5}, "max_ratio is 0.5; it must be a finite number of at least 1"),
        ({"max_sums": [(COSTS, "much")]}, "max_sums 0 is at most 'much'; it must be a finite"),
        ({"confidence": 1.0}, r"confidence of limits is 1.0; it must lie between 0 and 1"),
        ({"forbidden": "2"}, "forbidden is '2'; it must be a bool array"),
    ],
)
def test_limits_that_are_none(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(**fields)


def second_policy() -> Any:
    shifted = GRID.policy * np.random.default_rng(1).exponential(size=GRID.policy.shape)
    totals = shifted.sum(axis=1, keepdims=True)
    return np.divide(shifted, totals, out=np.zeros_like(shifted), where=totals > 0)


@pytest.mark.parametrize("kind", [Difference, Values, Best])
@pytest.mark.parametrize(
    "conditions",
    [{"steps": 6000}, {"episodes": 600, "limits": Limits(max_ratio=2)}],
    ids=["steps", "ratio"],
)
def test_several_policies_are_estimated_without_bias(kind: Any, conditions: Any) -> None:
    """The bias of certainty equivalence is of order 1/K, and below a standard error here."""
    policies = (GRID.policy, second_policy())
    asked: Question = kind(*policies) if kind is Difference else kind(policies)
    result = played("flow", asked, runs=200, seed=9, checkpoints=None, **conditions)
    truth = np.atleast_1d(result.true_value)
    last = result.estimates[:, -1].reshape(200, -1)
    errors = last.std(axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(last.mean(axis=0) - truth) < 4.0 * errors).all()

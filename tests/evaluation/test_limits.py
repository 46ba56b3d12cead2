"""Limits on collection in environments: read, refused beforehand, kept, and reported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revar
from revar import EvaluationError, Limits
from revar.errors import InputError
from tests.environments.custom import Corridor, Priced
from tests.evaluation.test_budgets import PRICED, WAYS, same_run

GRID = revar.find_problem("gridworld")
LIMITS = Limits(max_ratio=3.0, min_return="90%", max_sums=[("risk", 0.9), ("energy", 14.0)])
LEFT = np.tile([0.5, 0.5, 0.0, 0.0], (16, 1))


@pytest.mark.parametrize(
    "forbidden",
    [
        np.tile([True, False, False, False], (16, 1)),
        [(6, 0)],
        [(9, 3), (np.int64(6), 0)],
        [0],
    ],
)
def test_what_the_policy_takes_cannot_be_forbidden(forbidden: Any) -> None:
    limits = Limits(forbidden=forbidden)
    message = r"limits forbid action 0 in state \d, which the target policy takes there with prob"
    with pytest.raises(InputError, match=message) as caught:
        revar.evaluate("FrozenLake-v1", LEFT, episodes=9, limits=limits)
    assert not isinstance(caught.value, EvaluationError)
    other = revar.evaluate(
        "FrozenLake-v1", LEFT[:, ::-1], episodes=9, limits=Limits(forbidden=[1]), seed=0
    )
    assert other.episodes == 9
    assert not np.any(other.dataset.actions == 1)


def test_an_array_may_take_what_is_forbidden_only_where_nobody_comes() -> None:
    """An environment does not tell where that is: the sentence says what to do."""
    limits = Limits(forbidden=[0])
    policy = np.tile([0.0, 0.5, 0.5, 0.0], (16, 1))
    policy[5] = [1.0, 0.0, 0.0, 0.0]  # a hole, in which every episode ends
    message = "forbid action 0 in state 5, .*; if no episode comes there, give the policy another"
    with pytest.raises(InputError, match=message):
        revar.evaluate("FrozenLake-v1", policy, episodes=9, limits=limits)
    with pytest.raises(InputError, match=r"the estimate cannot do without it$"):
        revar.evaluate("FrozenLake-v1", "uniform", episodes=9, limits=limits)
    policy[5] = policy[0]
    both = Limits(forbidden=[0, (3, 3), (5, 3)])
    result = revar.evaluate("FrozenLake-v1", policy, episodes=9, limits=both, seed=0)
    assert not np.any(result.dataset.actions == 0)
    assert "1 action and 2 pairs not taken, in every plan" in result.table()


def test_functions_are_asked_about_what_is_named_and_noticed_where_they_are_met() -> None:
    env = Priced()
    with pytest.raises(InputError, match="limits forbid action 1 in state 2"):
        revar.evaluate(
            env,
            lambda seen: [0.5, 0.5],
            steps=50,
            horizon=9,
            limits=Limits(forbidden=[(2, 1)]),
        )
    assert env.steps == 0
    stays_at_last: Any = lambda seen: [0.5, 0.5] if seen < 2 else [0.0, 1.0]  # noqa: E731
    with pytest.raises(EvaluationError, match="limits forbid action 0 in state 0"):
        revar.evaluate(env, stays_at_last, steps=50, horizon=9, limits=Limits(forbidden=[0]))


def test_pairs_are_named_by_observation() -> None:
    def stick_on_18(hand: Any) -> list[float]:
        return [1.0, 0.0] if hand[0] >= 18 else [0.0, 1.0]

    limits = Limits(forbidden=[((20, 10, 0), 1), ((20, 10, 1), 1)])
    result = revar.evaluate("Blackjack-v1", stick_on_18, episodes=9, seed=0, limits=limits)
    assert result.kept[0].name == "forbidden"
    assert "2 pairs not taken, in every plan" in result.table()
    with pytest.raises(InputError, match=r"forbid action 0 in state \(20, 10, 0\)"):
        revar.evaluate(
            "Blackjack-v1", stick_on_18, episodes=9, limits=Limits(forbidden=[((20, 10, 0), 0)])
        )
    bins = revar.Bins([[0.0], [0.0], [0.0], [0.0]])
    cart: dict[str, Any] = {"episodes": 3, "bins": bins, "seed": 0, "horizon": 20}
    with pytest.raises(InputError, match=r"limits forbid action 1 in state \(1, 0, 1, 0\)"):
        revar.evaluate(
            "CartPole-v1", "uniform", limits=Limits(forbidden=[((1.0, -1.0, 0.1, -2.0), 1)]), **cart
        )


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(forbidden=[(77, 0)]), r"forbidden names observation 77, which does not belong to"),
        (Limits(forbidden=[7]), "forbidden names action 7; there are 2 actions"),
        (
            Limits(forbidden=np.eye(2, dtype=bool)),
            r"forbidden has shape \(2, 2\);.*\(3, 2\)",
        ),
        (Limits(max_sums=[(np.ones((4, 2)), 1)]), r"of max_sums 0 has shape \(4, 2\);.*\(3, 2\)"),
        ({"max_ratio": 2}, "it must be a revar.Limits, or None"),
    ],
)
def test_limits_that_do_not_fit_are_refused(limits: Any, message: str) -> None:
    env = Priced()
    with pytest.raises(InputError, match=message):
        revar.evaluate(env, "uniform", steps=50, horizon=9, limits=limits)
    assert env.steps == 0


def test_strategies_that_know_no_limits_say_so() -> None:
    with pytest.raises(InputError, match="strategy 'revar' knows no limits"):
        revar.evaluate(
            Corridor(),
            "uniform",
            strategy="revar",
            episodes=5,
            horizon=9,
            limits=Limits(max_ratio=2),
        )


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(min_return=99), "min_return is 99.0; no allowed behavior returns more than"),
        (Limits(min_return="4000%"), 'min_return is "4000%", which is'),
        (Limits(max_sums=[("steps", 1.5)]), "steps is at most 1.5; no allowed behavior has less"),
        (Limits(max_sums=[(lambda s, a: 2.0, 1.5)]), "max_sums 0 is at most 1.5; no allowed"),
    ],
)
def test_on_a_model_the_impossible_is_refused_beforehand(limits: Limits, message: str) -> None:
    for env in ("gridworld", GRID, GRID.mdp):
        with pytest.raises(InputError, match=message) as caught:
            revar.evaluate(env, GRID.policy, episodes=5, limits=limits)
        assert not isinstance(caught.value, EvaluationError)


def test_on_a_model_only_what_is_reached_counts() -> None:
    mdp = revar.TabularMDP(
        np.array([[[0.0, 0.5], [0.0, 0.5]], [[0.0, 0.0], [0.0, 0.0]]]),
        np.ones((2, 2)),
        np.ones((2, 2)),
        [0.0, 1.0],
        horizon=2,
    )
    policy = np.array([[0.5, 0.5], [1.0, 0.0]])
    forbid = Limits(forbidden=[1])  # taken in a state that is never entered
    assert revar.evaluate(mdp, policy, episodes=5, limits=forbid, seed=0).episodes == 5
    with pytest.raises(InputError, match="limits forbid action 0 in state 1"):
        revar.evaluate(mdp, policy, episodes=5, limits=Limits(forbidden=[(1, 0)]))
    with pytest.raises(InputError, match="with this cost no visit costs anything"):
        revar.evaluate(mdp, policy, budget=5, cost=lambda s, a: 0.0)


def test_a_floor_that_nothing_earns_is_reported_in_an_environment() -> None:
    result = revar.evaluate(
        Corridor(), "uniform", steps=600, horizon=9, seed=0, limits=Limits(min_return=3.0)
    )
    (kept,) = result.kept
    assert not kept.kept
    assert kept.limit == 3.0
    assert "cannot be kept: min_return is 3.0; no allowed behavior returns more than" in (
        result.table()
    )
    # Without data that would allow more, the target policy collects.
    share = result.statistics.visits[0, 1] / result.statistics.visits[0].sum()
    assert share == pytest.approx(0.5, abs=0.1)


def test_what_was_realised_is_reported() -> None:
    result = revar.evaluate(
        Priced(), "uniform", steps=4000, horizon=9, seed=0, discount=0.9, limits=LIMITS
    )
    kept = {limit.name: limit for limit in result.kept}
    assert list(kept) == ["max_ratio", "min_return", "risk", "energy"]
    data = result.dataset
    returns = np.array([0.9 ** np.arange(len(each)) @ each.rewards for each in data])  # [episode]
    floor = kept["min_return"]
    assert floor.realised == pytest.approx(returns.mean())
    assert floor.standard_error == pytest.approx(returns.std(ddof=1) / np.sqrt(len(returns)))
    assert floor.limit == pytest.approx(result.value - 0.1 * abs(result.value))
    risks = [each.amounts["risk"].sum() for each in data]
    assert kept["risk"].realised == pytest.approx(np.mean(risks))
    assert all(limit.kept for limit in result.kept)
    table = result.table()
    for title in ("max_ratio ", "min_return ", "sum of risk ", "sum of energy "):
        assert any(line.startswith(title) for line in table.splitlines())


def test_no_more_often_than_the_ratio() -> None:
    free, narrow = (
        revar.evaluate("gridworld", None, episodes=600, seed=1, limits=limits)
        for limits in (None, Limits(max_ratio=1.0))
    )
    deviations = []
    for result in (free, narrow):
        visits = result.statistics.run_statistics(result.task.states).visits
        often = visits.sum(axis=1) > 300
        times, wanted = visits[often].sum(axis=1, keepdims=True), result.task.policy[often]
        off = np.abs(visits[often] / times - wanted)
        deviations.append((off / np.sqrt(wanted * (1 - wanted) / times)).max())
    # Actions are drawn from the policy itself: no share is further off than draws may be.
    assert deviations[1] < 4 < deviations[0]


@pytest.mark.parametrize("way", WAYS)
def test_limits_survive_workers_and_resuming(way: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    options: dict[str, Any] = {"steps": 1500, "horizon": 9, "seed": 5, "limits": LIMITS, **way}
    whole = revar.evaluate(PRICED, "uniform", **options)
    assert set(whole.dataset.amounts) == {"risk", "energy"}

    def leave(done: int, total: int) -> None:
        if done > 700:
            raise SystemExit

    with pytest.raises(SystemExit):
        revar.evaluate(PRICED, "uniform", save=path, progress=leave, **options)
    for limits in (None, Limits(max_ratio=3.0, min_return="90%", max_sums=[("risk", 0.9)])):
        with pytest.raises(InputError, match=r"the file was collected with limits = confidence"):
            revar.evaluate(PRICED, "uniform", resume=path, **{**options, "limits": limits})
    resumed = revar.evaluate(PRICED, "uniform", resume=path, **options)
    assert same_run(resumed, whole)
    assert resumed.kept == whole.kept
    if way.get("engine") == "inline":
        options.pop("engine")
        assert same_run(revar.evaluate(PRICED, "uniform", **options), whole)


def test_a_comparison_keeps_limits_too() -> None:
    policies = {"walk": np.tile([0.3, 0.7], (3, 1)), "stay": np.tile([0.6, 0.4], (3, 1))}
    result = revar.compare(Priced(), policies, steps=2500, horizon=9, seed=0, limits=LIMITS)
    values = [each.value for each in result.values.values()]
    floor = next(limit for limit in result.kept if limit.name == "min_return")
    assert floor.limit == pytest.approx(np.mean(values) - 0.1 * abs(np.mean(values)))
    assert all(limit.kept for limit in result.kept)
    assert "min_return at least" in result.table()
    with pytest.raises(InputError, match="which target policy 'stay' takes there"):
        revar.compare(
            Priced(),
            {"walk": np.tile([0.0, 1.0], (3, 1)), "stay": policies["stay"]},
            steps=50,
            horizon=9,
            limits=Limits(forbidden=[0]),
        )

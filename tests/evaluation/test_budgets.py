"""Budgets of steps or cost: what is spent, what it is spent on, and what is claimed for it."""

import os
import signal
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest

import revar
from revar import EvaluationError
from revar.datasets import load_collected
from revar.errors import InputError
from revar.estimators.alternatives import each_alone
from revar.model.budget import Budget
from tests.collection.test_collection import same_data
from tests.environments.custom import Corridor, Priced, energy

LAKE = revar.find_problem("frozenlake", epsilon=0.2)
TABLE = np.array([[energy(place, action) for action in range(2)] for place in range(3)])
PRICED = "tests.environments.custom:Priced"
WAYS: list[dict[str, Any]] = [
    {},
    {"environments": 4},
    {"workers": 2, "engine": "inline"},
    {"workers": 2},
]


def same_run(one: Any, other: Any) -> bool:
    amounts = one.dataset.amounts.keys() == other.dataset.amounts.keys() and all(
        np.array_equal(values, other.dataset.amounts[name])
        for name, values in one.dataset.amounts.items()
    )
    return amounts and same_data(one.dataset, other.dataset) and one.value == other.value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("strategy", ["flow", "on-policy"])
def test_no_more_than_an_episode_over(way: dict[str, Any], strategy: str) -> None:
    result = revar.evaluate(
        "FrozenLake-v1",
        LAKE.policy,
        strategy=strategy,
        steps=3000,
        discount=0.99,
        seed=1,
        **way,
    )
    lengths = np.diff(result.dataset.start)
    assert result.spent == result.steps == lengths.sum() == result.statistics.visits.sum()
    assert result.steps - lengths[-1] < 3000 <= result.steps
    assert result.stopped == "budget"
    assert result.complete
    assert result.budget == Budget(3000, "steps")
    assert abs(result.value - revar.policy_value(LAKE.mdp, LAKE.policy)) < 5 * result.standard_error


@pytest.mark.parametrize("way", WAYS)
def test_a_cost_in_any_form_gives_the_same_run(way: dict[str, Any]) -> None:
    one, other, third = (
        revar.evaluate(PRICED, "uniform", budget=900.5, cost=cost, horizon=9, seed=3, **way)
        for cost in ("energy", energy, TABLE)
    )
    assert same_run(one, other)
    # How dear a step can be is known of an array alone, so that more may be begun side by side.
    assert same_run(one, third) or way
    assert third.spent < 900.5 + 9 * 3
    data = one.dataset
    assert np.array_equal(data.amounts["cost"], TABLE[data.states, data.actions])
    assert one.spent == data.amounts["cost"].sum() == pytest.approx(one.alternatives.spent)
    assert one.spent - data.amounts["cost"][data.start[-2] :].sum() < 900.5 <= one.spent


def test_a_cost_of_one_is_a_budget_of_steps() -> None:
    plain = revar.evaluate(Corridor(), "uniform", steps=400, horizon=9, seed=3)
    named = revar.evaluate(Corridor(), "uniform", budget=400, cost="steps", horizon=9, seed=3)
    ones = revar.evaluate(
        Corridor(), "uniform", budget=400, cost=np.ones((3, 2)), horizon=9, seed=3
    )
    assert same_run(plain, named)
    assert same_data(plain.dataset, ones.dataset)
    assert ones.spent == plain.spent
    assert ones.gain == pytest.approx(plain.gain)


@pytest.mark.parametrize("way", WAYS[:3])
@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_resuming_in_the_middle_gives_the_same_run(
    way: dict[str, Any], suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"data{suffix}"
    options: dict[str, Any] = {"budget": 700, "cost": "energy", "horizon": 9, "seed": 5, **way}
    whole = revar.evaluate(PRICED, "uniform", **options)

    def leave(done: float, total: float) -> None:
        assert total == 700
        if done > 300:
            raise SystemExit

    with pytest.raises(SystemExit):
        revar.evaluate(PRICED, "uniform", save=path, progress=leave, **options)
    stored = revar.load_dataset(path)
    assert 300 < stored.amounts["cost"].sum() < 700
    resumed = revar.evaluate(PRICED, "uniform", resume=path, **options)
    assert same_run(resumed, whole)
    assert resumed.checkpoints == whole.checkpoints
    assert resumed.spent == whole.spent
    more = revar.evaluate(PRICED, "uniform", resume=path, **{**options, "budget": 900})
    assert same_data(more.dataset.head(whole.episodes), whole.dataset)
    assert 900 <= more.spent < 900 + 9 * 3
    again = revar.evaluate(PRICED, "uniform", resume=path, **{**options, "budget": 900})
    assert same_data(again.dataset, more.dataset)
    assert again.value == pytest.approx(more.value, rel=1e-12)


def test_resuming_with_another_budget_or_cost_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    options: dict[str, Any] = {"horizon": 9, "seed": 5}
    revar.evaluate(PRICED, "uniform", budget=300, cost=energy, save=path, **options)
    before = path.read_bytes()

    def dearer(place: Any, action: Any) -> float:
        return energy(place, action) + float(place == 2)

    for budget, message in (
        ({"episodes": 500}, "collected with budget unit = cost; now it is episodes"),
        ({"budget": 400, "cost": "energy"}, "collected with cost = a function; now it is 'energy'"),
        ({"budget": 400, "cost": TABLE}, "collected with cost = a function; now it is an array"),
        ({"budget": 400, "cost": dearer}, r"cost of action \d in state 2 is [23]; now it is [34]$"),
        ({"budget": 200, "cost": energy}, r"has spent a cost of 30.*, more than the 200 that are"),
    ):
        with pytest.raises(InputError, match=message):
            revar.evaluate(PRICED, "uniform", resume=path, **budget, **options)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({}, "needs one budget: episodes=, steps=, or budget= with cost=; got none"),
        ({"episodes": 5, "steps": 50}, "got episodes= and steps="),
        ({"budget": 5}, "budget= says how much may be spent, cost= what a step costs; give both"),
        ({"steps": 50, "cost": "energy"}, "or episodes= or steps= alone"),
        ({"steps": 0}, "steps is 0; it must be a whole number of at least 1"),
        ({"budget": 0, "cost": "energy"}, "budget is 0; it must be positive"),
        ({"budget": 9, "cost": -TABLE}, "cost of action 0 in state 0 is -1; it must not be neg"),
        ({"budget": 9, "cost": TABLE * np.nan}, "action 0 in state 0 is nan; it must be finite"),
        ({"budget": 9, "cost": np.ones((2, 2))}, r"cost has shape \(2, 2\); .* it is \(3, 2\)"),
        ({"budget": 9, "cost": np.zeros((3, 2))}, "cost is 0 everywhere"),
        ({"budget": 9, "cost": [["a"]]}, "cost is not an array of numbers"),
    ],
)
def test_bad_budgets_are_refused_before_anything_is_collected(
    budget: dict[str, Any], message: str
) -> None:
    env = Priced()
    for ask in (revar.evaluate, revar.compare):
        policies: Any = "uniform" if ask is revar.evaluate else {"a": "uniform", "b": "uniform"}
        with pytest.raises(InputError, match=message):
            ask(env, policies, horizon=9, **budget)
    assert env.steps == 0


def no_answer(place: Any, action: Any) -> float:
    raise KeyError("tariff")


@pytest.mark.parametrize(
    ("env", "cost", "message"),
    [
        (Priced(silent=40), "energy", r"info has no 'energy' after action \d in state \d"),
        (Priced(silent=40, odd=-2.0), "energy", "the cost of action .* is -2; it must not be neg"),
        (Priced(silent=40, odd=np.inf), "energy", "the cost of action .* is inf; it must be fin"),
        (Priced(), lambda place, action: -float(place > 1), r"state 2 is -1; it must not be neg"),
        (
            Priced(),
            lambda place, action: "much" if place > 1 else 1.0,
            "'much', which is no number",
        ),
    ],
)
def test_costs_that_go_wrong_keep_what_is_complete(env: Any, cost: Any, message: str) -> None:
    with pytest.raises(EvaluationError, match=rf"^episode \d+: .*{message}") as caught:
        revar.evaluate(env, "uniform", budget=5000, cost=cost, horizon=9, seed=2)
    if env.silent > 0:  # others go wrong in the first episode
        result = caught.value.result
        assert result is not None
        assert result.episodes > 3
        assert 0 < result.spent == result.dataset.amounts["cost"].sum() <= 5000
        assert result.statistics.episodes == result.episodes
        assert "of 5,000, error" in result.table()


def test_a_function_that_raises_is_named() -> None:
    with pytest.raises(EvaluationError, match="gives cost raised KeyError at observation 0"):
        revar.evaluate(Priced(), "uniform", budget=50, cost=no_answer, horizon=9)


def test_a_budget_that_is_never_spent_ends() -> None:
    message = "1,000 episodes in a row have cost nothing"
    with pytest.raises(EvaluationError, match=message) as caught:
        revar.evaluate(Corridor(), "uniform", budget=5, cost=lambda s, a: 0.0, horizon=9, seed=0)
    assert caught.value.result is not None
    assert caught.value.result.episodes == 1000


def test_a_cost_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(InputError, match="cost cannot be sent to another process"):
        revar.evaluate(PRICED, "uniform", budget=50, cost=lambda s, a: 1.0, horizon=9, workers=2)


def test_masks_of_vector_environments_are_read() -> None:
    def made(silent: int) -> Any:
        return lambda: Priced(silent=silent)

    vector = gymnasium.vector.SyncVectorEnv([made(-1), made(30)])
    with pytest.raises(EvaluationError, match="info has no 'energy'") as caught:
        revar.evaluate(vector, "uniform", budget=5000, cost="energy", horizon=9, seed=2)
    assert caught.value.result is not None


def test_a_prior_brings_its_costs_or_gets_them() -> None:
    earlier = revar.evaluate(PRICED, "uniform", episodes=100, horizon=9, seed=8)
    options: dict[str, Any] = {"budget": 200, "cost": energy, "horizon": 9, "seed": 1}
    result = revar.evaluate(PRICED, "uniform", prior=earlier.dataset, **options)
    data = earlier.dataset
    paid = TABLE[data.states, data.actions].sum()
    assert result.prior_episodes == 100
    assert result.alternatives.spent == pytest.approx(result.spent + paid)
    assert 200 <= result.spent < 200 + 27


def test_gains_are_per_unit_of_the_budget() -> None:
    """Per episode flow wins where it loses per step; with a budget of steps it does not lose."""
    lake: dict[str, Any] = {"discount": 0.99, "seed": 4}
    by_episode = revar.evaluate("FrozenLake-v1", LAKE.policy, episodes=1000, **lake)
    assert by_episode.gain > 1.2
    assert by_episode.gain_per_step < 0.95
    assert "times as many episodes for this error, but 0." in by_episode.table()
    steps = by_episode.steps
    by_step = revar.evaluate("FrozenLake-v1", LAKE.policy, steps=steps, **lake)
    assert by_step.gain == pytest.approx(by_step.gain_per_step)
    assert by_step.gain > 0.95
    assert by_step.standard_error < by_episode.standard_error
    assert "episodes for this error" not in by_step.table()
    assert f"{by_step.steps:,} steps of {steps:,}, the whole budget" in by_step.table()


def test_on_policy_buys_nothing_in_any_unit() -> None:
    exact = revar.estimation_variance(LAKE.mdp, LAKE.policy, LAKE.policy)
    steps = revar.occupancy(LAKE.mdp, LAKE.policy).sum()
    for budget in (
        {"episodes": 1500},
        {"steps": 36_000},
        {"budget": 72_000, "cost": np.full((16, 4), 2.0)},
    ):
        result = revar.evaluate(
            "FrozenLake-v1",
            LAKE.policy,
            strategy="on-policy",
            discount=0.99,
            seed=2,
            **budget,
        )
        assert result.gain == pytest.approx(1.0, abs=0.1)
        assert result.gain_per_step == pytest.approx(1.0, abs=0.1)
        assert result.alternatives.episode_steps == pytest.approx(steps, rel=0.1)
        need = result.alternatives.on_policy_steps(0.01)
        assert need == pytest.approx(exact * steps / 0.01**2, rel=0.15)


def test_a_half_width_is_looked_at_in_the_unit() -> None:
    options: dict[str, Any] = {"horizon": 10, "seed": 0}
    wide = revar.evaluate(Corridor(5), "uniform", steps=40_000, half_width=0.1, **options)
    assert wide.stopped == "half-width"
    assert wide.half_width <= 0.1
    assert wide.quantile > 2.2
    planned = [40_000 / 2**k for k in range(7)]
    passed = [max(time for time in planned if time <= each.spent) for each in wide.checkpoints]
    assert all(
        each.spent - time < 10 and each.episodes >= 100
        for each, time in zip(wide.checkpoints, passed, strict=True)
    )
    few = revar.evaluate(Corridor(5), "uniform", steps=500, half_width=0.5, **options)
    assert [each.episodes for each in few.checkpoints] == [few.episodes]
    assert few.episodes < 100


def test_progress_is_in_the_unit() -> None:
    seen: list[tuple[Any, Any]] = []
    result = revar.evaluate(
        Corridor(), "uniform", steps=50, horizon=9, seed=0, progress=lambda *at: seen.append(at)
    )
    assert seen[-1] == (result.steps, 50)
    assert all(isinstance(done, int) and total == 50 for done, total in seen)


def test_a_comparison_says_what_a_test_would_need_in_the_unit() -> None:
    mixed = {"leaning": LAKE.policy, "uniform": np.full((16, 4), 0.25)}
    options: dict[str, Any] = {"discount": 0.99, "seed": 0}
    result = revar.compare("FrozenLake-v1", mixed, steps=6000, **options)
    assert 6000 <= result.spent == result.steps < 6100
    assert result.on_policy_spending == result.on_policy_steps
    table = result.table()
    assert "on-policy steps" in table
    assert "on-policy episodes" not in table
    assert f"{result.steps:,} steps of 6,000" in table
    # The mean returns of each policy's own episodes, and as many of them as is best.
    alone = each_alone(result.task, result.statistics)
    ((other, error),) = [(name, each.standard_error) for name, each in result.differences.items()]
    apart = sum((each.return_variance * each.episode_steps) ** 0.5 for each in alone) ** 2
    needed = result.mean_return_spending[other]
    assert needed == pytest.approx(apart / error**2)
    assert needed > result.on_policy_spending[other]
    assert f"by mean returns it would take {needed:,.0f} steps against {other}" in table
    by_episode = revar.compare("FrozenLake-v1", mixed, episodes=300, **options)
    assert by_episode.on_policy_spending == by_episode.on_policy_episodes
    assert "on-policy episodes  on-policy steps" in by_episode.table()
    needed = by_episode.mean_return_spending[other]
    assert f"would take {needed:,.0f} episodes against {other}" in by_episode.table()
    assert f"{by_episode.steps:,} steps" in by_episode.table()
    decided = revar.compare("FrozenLake-v1", mixed, steps=200_000, decide=0.95, **options)
    assert decided.stopped == "decided"
    assert decided.spent < 100_000
    assert decided.checkpoints[-1].spent == decided.spent


def test_the_figure_is_in_the_unit() -> None:
    result = revar.evaluate(Corridor(), "uniform", steps=2000, horizon=9, seed=0)
    axes = result.plot().axes[0]
    assert axes.get_xlabel() == "steps"
    assert axes.lines[0].get_xdata()[-1] == result.steps


def test_ctrl_c_keeps_what_complete_episodes_cost(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    options: dict[str, Any] = {"budget": 900, "cost": "energy", "horizon": 9, "seed": 5}
    whole = revar.evaluate(PRICED, "uniform", **options)

    def press(done: float, total: float) -> None:
        if done > 200:
            os.kill(os.getpid(), signal.SIGINT)

    half = revar.evaluate(PRICED, "uniform", save=path, progress=press, **options)
    assert half.stopped == "interrupted"
    assert half.spent == half.dataset.amounts["cost"].sum()
    assert 200 < half.spent < 240
    assert half.checkpoints[-1].spent == half.spent
    assert half.task.cost is not None
    assert same_run(revar.evaluate(PRICED, "uniform", resume=path, **options), whole)


def test_files_from_before_there_were_other_budgets_are_resumed(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    options: dict[str, Any] = {"horizon": 9, "seed": 5, "strategy": "on-policy"}
    revar.evaluate(PRICED, "uniform", episodes=20, save=path, **options)
    dataset, conditions = load_collected(path)
    assert conditions is not None
    assert conditions.episodes == conditions.budget_amount == 20
    old = msgspec.structs.replace(conditions, budget_amount=None)
    revar.save_dataset(dataset, path, conditions=old)
    whole = revar.evaluate(PRICED, "uniform", episodes=30, **options)
    assert same_run(revar.evaluate(PRICED, "uniform", episodes=30, resume=path, **options), whole)

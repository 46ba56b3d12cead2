"""Several policies compared from shared episodes: results, stopping, and all ways to collect."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revar
from revar import ComparisonResult, compare, evaluate_data, find_problem, policy_value
from revar.collection.checkpoints import checkpoint_times, quantile
from revar.errors import InputError
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.evaluation.goals import ComparisonGoal
from revar.model.budget import Budget
from tests.environments.custom import Corridor
from tests.evaluation.test_trouble import Signalling

SLOW, QUICK, HALF = [0.7, 0.3], [0.2, 0.8], [0.5, 0.5]
GRID = find_problem("gridworld")
ROWS = {"A": [0.05, 0.45, 0.45, 0.05], "B": [0.15, 0.35, 0.35, 0.15], "C": [0.25] * 4}


def constant(row: Any) -> Any:
    return lambda _: np.array(row)


CORRIDOR = {"slow": constant(SLOW), "quick": constant(QUICK), "half": constant(HALF)}
POLICIES = {name: np.tile(row, (16, 1)) for name, row in ROWS.items()}


def same(one: ComparisonResult, other: ComparisonResult) -> bool:
    """Whether both hold the same episodes and the same numbers."""
    joint, again = one.ranking.joint, other.ranking.joint
    return (
        np.array_equal(one.dataset.actions, other.dataset.actions)
        and np.array_equal(one.dataset.rewards, other.dataset.rewards)
        and np.array_equal(joint.values, again.values)
        and np.array_equal(joint.covariance, again.covariance)
    )


@pytest.fixture(scope="module")
def result() -> ComparisonResult:
    return compare(Corridor(), CORRIDOR, episodes=400, horizon=12, seed=1)


def test_values_and_differences_are_those_of_the_data(result: ComparisonResult) -> None:
    joint = CertaintyEquivalence().joint_estimate(result.task, result.statistics)
    assert list(result.values) == ["slow", "quick", "half"]
    for number, value in enumerate(result.values.values()):
        assert value.value == joint.values[number]
        assert value.standard_error == pytest.approx(np.sqrt(joint.covariance[number, number]))
    difference = result.difference("quick", "slow")
    row = np.array([-1.0, 1.0, 0.0])
    assert difference.value == pytest.approx(joint.values @ row)
    assert difference.standard_error == pytest.approx(np.sqrt(row @ joint.covariance @ row))
    assert result.difference("slow", "quick").value == -difference.value


def test_every_policy_alone_would_give_its_value(result: ComparisonResult) -> None:
    for name, policy in CORRIDOR.items():
        alone = evaluate_data(result.dataset, policy, horizon=12)
        assert alone.value == result.values[name].value
        assert alone.standard_error == result.values[name].standard_error
        assert alone.interval == pytest.approx(result.values[name].interval)


def test_the_true_values_lie_in_the_intervals() -> None:
    """Together, with a chance of at least 1 - 3/1000 each."""
    result = compare("gridworld", POLICIES, episodes=3000, seed=2, confidence=0.999)
    truth = {name: policy_value(GRID.mdp, policy) for name, policy in POLICIES.items()}
    for name, value in result.values.items():
        assert value.interval[0] < truth[name] < value.interval[1]
    for name, difference in result.differences.items():
        low, high = difference.interval
        assert low < truth[result.best] - truth[name] < high
    assert sum(result.chances_of_best.values()) == pytest.approx(1.0)
    assert max(result.chances_of_best, key=result.chances_of_best.__getitem__) == result.best


def test_intervals_of_differences_hold_together(result: ComparisonResult) -> None:
    """Bonferroni's quantile for two differences; one difference alone has the normal one."""
    name, difference = next(iter(result.differences.items()))
    reach = difference.interval[1] - difference.value
    assert reach == pytest.approx(quantile(0.975) * difference.standard_error)
    alone = result.difference(result.best, name)
    assert alone.interval[1] - alone.value == pytest.approx(
        quantile(0.95) * difference.standard_error
    )


def test_the_table_says_what_an_a_b_test_would_have_taken() -> None:
    """By closed forms, on-policy episodes apart have 162.27 where this flow has about 16.6."""
    chosen = {name: POLICIES[name] for name in ("A", "B")}
    result = compare("gridworld", chosen, episodes=4000, seed=5)
    (other,) = result.differences
    ratio = result.on_policy_episodes[other] / result.episodes
    # Costs are estimated: the ratio of two variances, each known to about a tenth.
    assert ratio == pytest.approx(162.27 / 16.614, rel=0.25)
    lines = result.table().splitlines()
    assert lines[0].split()[0] == "policy"
    assert lines[1].startswith(result.best)
    assert f"{result.on_policy_episodes[other]:,.0f}" in lines[2]
    assert str(result) in result.table()


def test_stored_episodes_give_the_same_comparison(result: ComparisonResult) -> None:
    stored = evaluate_data(result.dataset, CORRIDOR, horizon=12)
    assert same(stored, result)
    assert stored.best == result.best
    by_env = evaluate_data(result.dataset, CORRIDOR, horizon=12, env=Corridor())
    assert same(by_env, result)


# -- ways to collect ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["flow", "on-policy", "uniform", "ros"])
def test_resuming_gives_what_an_uninterrupted_run_gives(strategy: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"horizon": 12, "strategy": strategy, "seed": 4}
    whole = compare(Signalling(-1), CORRIDOR, episodes=300, **options)
    path = tmp_path / "episodes.npz"
    stopped = compare(Signalling(300), CORRIDOR, episodes=300, save=path, **options)
    assert stopped.stopped == "interrupted"
    assert not stopped.complete
    again = compare(Signalling(-1), CORRIDOR, episodes=300, resume=path, **options)
    assert same(again, whole)


def test_another_set_of_policies_cannot_go_on(tmp_path: Path) -> None:
    path = tmp_path / "episodes.npz"
    two = {name: CORRIDOR[name] for name in ("slow", "quick")}
    compare(Corridor(), two, episodes=20, horizon=12, seed=1, save=path)
    options: dict[str, Any] = {"episodes": 30, "horizon": 12, "resume": path}
    with pytest.raises(InputError, match="collected with names = "):
        compare(Corridor(), CORRIDOR, **options)
    with pytest.raises(InputError, match="collected with question = best; now it is values"):
        compare(Corridor(), two, question="values", **options)
    with pytest.raises(InputError, match="collected for another policy"):
        compare(Corridor(), {**two, "slow": constant(HALF)}, **options)
    with pytest.raises(InputError, match="collected with names = "):
        revar.evaluate(Corridor(), constant(SLOW), **options)


def test_workers_play_the_same_as_this_process() -> None:
    policies = {"own": None, "uniform": "uniform"}
    options: dict[str, Any] = {"episodes": 200, "seed": 3, "workers": 2}
    assert same(
        compare("gridworld", policies, **options),
        compare("gridworld", policies, engine="inline", **options),
    )


def test_side_by_side_and_with_earlier_episodes() -> None:
    earlier = compare("gridworld", POLICIES, episodes=100, seed=1)
    result = compare(
        "gridworld", POLICIES, episodes=100, seed=2, environments=4, prior=earlier.dataset
    )
    assert result.prior_episodes == 100
    assert result.ranking.joint.episodes == 200


def test_an_error_keeps_what_was_collected() -> None:
    with pytest.raises(revar.EvaluationError, match="policy 'late'") as caught:
        compare(
            Corridor(length=6),
            {"half": constant(HALF), "late": lambda state: HALF if state < 5 else [1.0]},
            episodes=500,
            horizon=6,
            seed=0,
        )
    assert caught.value.result.episodes > 0
    assert set(caught.value.result.values) == {"half", "late"}


# -- deciding ----------------------------------------------------------------------------------


def test_it_stops_as_soon_as_the_best_is_known() -> None:
    result = compare(Corridor(), CORRIDOR, episodes=20_000, horizon=12, seed=1, decide=0.95)
    assert result.stopped == "decided"
    assert result.decided
    assert result.complete
    assert result.best == "quick"
    assert result.episodes in checkpoint_times(20_000, 1.5)
    assert str(result.verdict) == "quick is the best (95% confidence)"
    times = checkpoint_times(20_000, 1.5)
    assert result.ranking.quantile_of_differences == quantile(0.975, times)
    assert all(difference.interval[0] > 0 for difference in result.differences.values())


def test_a_tie_is_a_result() -> None:
    """One policy twice, under two names, and another that is worse."""
    policies = {"one": constant(QUICK), "two": constant(QUICK), "slow": constant(SLOW)}
    result = compare(
        Corridor(), policies, episodes=20_000, horizon=12, seed=1, decide=0.9, indifference=0.05
    )
    assert result.stopped == "decided"
    assert str(result.verdict) == (
        "one and two are the best: no difference to one larger than 0.05 (90% confidence)"
    )
    arms = revar.TabularMDP(np.zeros((1, 2, 1)), [[1.0, 1.0]], [[1.0, 0.5]], [1.0], 1)
    alike = compare(
        arms,
        {"one": np.array([[0.2, 0.8]]), "two": np.array([[0.8, 0.2]])},
        episodes=20_000,
        seed=1,
        indifference=0.1,
    )
    assert alike.stopped == "decided"
    assert str(alike.verdict) == "no difference larger than 0.1 (95% confidence)"


def test_a_tie_of_all_names_no_best() -> None:
    policies = dict.fromkeys(("a", "b", "c"), constant(HALF))
    result = compare(Corridor(), policies, episodes=200, horizon=12, seed=1, indifference=0.01)
    assert str(result.verdict) == "no difference to a larger than 0.01 (95% confidence)"


def test_policies_that_do_nearly_the_same_are_not_told_apart_by_rounding() -> None:
    policies = {"a": constant(HALF), "b": constant([0.5 + 1e-13, 0.5 - 1e-13])}
    result = compare(Corridor(), policies, episodes=300, horizon=12, seed=1, decide=0.95)
    assert not result.decided
    low, high = result.difference("a", "b").interval
    assert low < 0.0 < high


class Jackpot(Corridor):
    """One step: action 0 pays about half; action 1 pays 20, but in one of twenty cases."""

    def step(self, action: Any) -> Any:
        noise = float(self.np_random.normal())
        won = 20.0 * float(self.np_random.random() < 0.05)
        return 0, won if action else 0.5 + 0.1 * noise, True, False, {}


def test_rare_wins_are_waited_for() -> None:
    """An arm that has shown one outcome so far has an unknown variance, not none."""
    policies = {"safe": constant([1.0, 0.0]), "bold": constant([0.0, 1.0])}
    for seed in range(40):
        result = compare(Jackpot(1), policies, episodes=3000, horizon=1, seed=seed, decide=0.95)
        assert result.best == "bold" or not result.decided


def test_nothing_is_decided_where_nothing_varied() -> None:
    arms = revar.TabularMDP(np.zeros((1, 2, 1)), [[1.0, 0.9]], [[0.0, 0.0]], [1.0], 1)
    policies = {"one": np.array([[1.0, 0.0]]), "two": np.array([[0.0, 1.0]])}
    few = compare(arms, policies, episodes=10, seed=1)
    assert not few.decided
    assert compare(arms, policies, episodes=2000, seed=1, decide=0.95).decided


def test_nothing_is_decided_about_what_was_not_seen() -> None:
    """Action 0 was never taken: a policy that takes it cannot be judged."""
    data = compare(
        Corridor(), {"a": constant([0.0, 1.0]), "b": constant([0.0, 1.0])}, episodes=50, horizon=12
    ).dataset
    result = evaluate_data(replace(data, labels=data.labels), CORRIDOR, horizon=12)
    assert not result.decided
    assert "too little is known of slow, quick and half" in str(result)
    assert "of the episodes of slow rest on no data" in result.table()


def test_goals_fill_in_their_defaults() -> None:
    goal = ComparisonGoal.of(("a", "b"), "best", None, None, 0.1, Budget(100))
    assert goal.deciding
    assert goal.confidence == 0.95
    assert not ComparisonGoal.of(("a", "b"), "best", 0.9, None, None, Budget(100)).deciding
    assert ComparisonGoal.of(("a", "b"), "best", None, 0.99, None, Budget(100)).confidence == 0.99


# -- figures and bad input ---------------------------------------------------------------------


def test_the_forest_plot_is_drawn(result: ComparisonResult, tmp_path: Path) -> None:
    figure = result.plot(tmp_path / "forest.png")
    assert (tmp_path / "forest.png").stat().st_size > 10_000
    values, differences = figure.axes
    assert values.get_yticklabels()[0].get_text() == result.best
    assert differences.get_xlabel() == f"value of {result.best} minus that of the policy"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": {"a": constant(HALF)}}, r"at least two policies to compare; got \['a'\]"),
        ({"policies": [HALF, SLOW]}, "policies are a list; they must be a mapping from names"),
        ({"policies": {"a": HALF, "": HALF}}, "the name of a policy is ''; it must be 1 to 60"),
        ({"policies": {"a": constant(HALF), 3: HALF}}, "the name of a policy is 3; it must be"),
        (
            {"policies": {"a": np.full((3, 2), 0.5), "b": np.full((3, 3), 1 / 3)}},
            r"policy 'b': policy has shape \(3, 3\); for these observations it is \(3, 2\)",
        ),
        (
            {"policies": {"a": constant(HALF), "b": constant([0.5, 0.25, 0.25])}},
            "target policy 'b' in state 0 gives probabilities of shape",
        ),
        ({"question": "worst"}, "question is 'worst'; it must be one of best, values, difference"),
        ({"question": "difference"}, "a difference is between two policies; there are 3"),
        ({"decide": 1.0}, "decide is 1.0; it must lie between 0 and 1"),
        ({"decide": 0.9, "confidence": 0.95}, "decide is 0.9 and confidence 0.95"),
        ({"indifference": np.inf}, "indifference is inf; it must be positive"),
        ({"policies": {"a": constant(HALF), "b": None}}, "policy 'b': no policy is given"),
        ({"indifference": -0.1}, "indifference is -0.1; it must be positive"),
        ({"episodes": 0}, "episodes is 0; it must be a whole number of at least 1"),
        ({"strategy": "flow-oracle"}, "needs the true model"),
    ],
)
def test_bad_input_gets_one_sentence(changes: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"policies": CORRIDOR, "episodes": 10, "horizon": 12, **changes}
    with pytest.raises(InputError, match=message):
        compare(Corridor(), options.pop("policies"), **options)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(TypeError, match=r"compare\(\) got an unexpected keyword argument 'half'"):
        compare(Corridor(), CORRIDOR, episodes=10, half=1)  # type: ignore[call-arg]


def test_names_that_look_like_formulas_are_drawn(tmp_path: Path) -> None:
    policies = {r"$\frac$": constant(HALF), "slow": constant(SLOW)}
    compare(Corridor(), policies, episodes=60, horizon=12, seed=1).plot(tmp_path / "forest.png")


def test_unknown_names_are_refused(result: ComparisonResult) -> None:
    with pytest.raises(InputError, match="there is no policy 'fast'; there are slow, quick, half"):
        result.difference("fast", "slow")


def test_stored_policies_must_have_as_many_actions(result: ComparisonResult) -> None:
    with pytest.raises(InputError, match="policy 'b' has 3 actions, and policy 'a' has 2"):
        evaluate_data(
            result.dataset,
            {"a": constant(HALF), "b": constant([0.5, 0.25, 0.25])},
            horizon=12,
        )

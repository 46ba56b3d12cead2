"""evaluate on real environments: values, horizons, seeds, vectors, stopping, prior data."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import revar
from revar.errors import InputError
from revar.model.trajectory import ENDED
from tests.collection.test_collection import same_data
from tests.environments.custom import HALF, Corridor, Faulty


def corridor_value(length: int, horizon: int) -> float:
    """By the plainest recursion: each step costs 1/2 on average, the end pays 1."""
    values = np.zeros(length + 1)
    for _ in range(horizon):
        values[:length] = 0.5 * (values[:length] + np.append(values[1:length], 1.0)) - 0.5
    return float(values[0])


@pytest.mark.parametrize("strategy", ["on-policy", "uniform", "revar", "flow"])
def test_the_value_of_a_custom_environment(strategy: str) -> None:
    """Twelve steps: a third of the episodes is cut, which a wrong treatment would show."""
    result = revar.evaluate(
        Corridor(5), lambda seen: HALF, strategy=strategy, episodes=600, horizon=10, seed=3
    )
    assert abs(result.value - corridor_value(5, 10)) < 4 * result.standard_error
    assert result.standard_error < 0.05
    assert len(result.dataset) == result.episodes == result.statistics.episodes == 600
    assert result.complete
    assert result.interval == pytest.approx(
        (
            result.value - 1.959964 * result.standard_error,
            result.value + 1.959964 * result.standard_error,
        )
    )


def test_ends_and_cuts_are_kept_apart() -> None:
    result = revar.evaluate(Corridor(5), "uniform", episodes=200, horizon=10, seed=3)
    data = result.dataset
    last = data.successors[data.start[1:] - 1]
    lengths = np.diff(data.start)
    assert np.all(lengths[last != ENDED] == 10)
    assert {bool(end) for end in last == ENDED} == {True, False}
    assert np.all(data.successors[np.delete(np.arange(data.states.size), data.start[1:] - 1)] >= 0)


def test_an_environment_that_truncates_before_the_horizon_is_no_end() -> None:
    """Cut after four steps, the value over ten is still found: a cut is not an end."""
    limited = gymnasium.wrappers.TimeLimit(Corridor(5), 7)
    result = revar.evaluate(limited, "uniform", episodes=800, horizon=10, seed=1)
    assert np.diff(result.dataset.start).max() == 7
    assert abs(result.value - corridor_value(5, 10)) < 4 * result.standard_error


def test_only_the_first_reset_is_seeded() -> None:
    env = Faulty("none")
    revar.evaluate(env, "uniform", episodes=5, horizon=9, seed=12)
    assert env.resets == [12, None, None, None, None]


def test_same_seed_same_result() -> None:
    one, other, third = (
        revar.evaluate("FrozenLake-v1", "uniform", episodes=80, seed=seed) for seed in (4, 4, 5)
    )
    assert same_data(one.dataset, other.dataset)
    assert one.value == other.value
    assert not same_data(one.dataset, third.dataset)
    drawn = revar.evaluate("FrozenLake-v1", "uniform", episodes=30)
    again = revar.evaluate("FrozenLake-v1", "uniform", episodes=30, seed=drawn.seed)
    assert same_data(drawn.dataset, again.dataset)


def test_the_reward_of_a_successor_enters_the_statistics() -> None:
    """On the lake the reward is a function of the successor: no noise is left given it."""
    result = revar.evaluate("FrozenLake-v1", "uniform", episodes=300, seed=0)
    observed = result.statistics.run_statistics(result.task.states)
    assert set(observed.outcome_reward_mean.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("strategy", ["flow", "on-policy"])
def test_several_environments_side_by_side(strategy: str) -> None:
    one, other, *others = (
        revar.evaluate(
            "FrozenLake-v1", "uniform", strategy=strategy, episodes=302, seed=seed, environments=4
        )
        for seed in (0, *range(12))
    )
    assert same_data(one.dataset, other.dataset)
    assert one.value == other.value
    assert len(one.dataset) == 302
    mdp = revar.from_gymnasium("FrozenLake-v1")
    exact = revar.policy_value(mdp, np.full((16, 4), 0.25))
    # Over seeds: rewards are so rare that a low value has a low standard error, too.
    values = np.array([result.value for result in (other, *others)])
    assert abs(values.mean() - exact) < 4 * values.std(ddof=1) / np.sqrt(values.size)


def test_vectors_of_other_kinds_of_environments() -> None:
    for env in ("gridworld", revar.find_problem("gridworld"), "tests.environments.custom:Corridor"):
        result = revar.evaluate(env, "uniform", episodes=7, horizon=8, environments=3, seed=0)
        assert len(result.dataset) == 7
    own = gymnasium.vector.SyncVectorEnv([lambda: Corridor(3)] * 2)
    assert len(revar.evaluate(own, "uniform", episodes=5, horizon=8, seed=0).dataset) == 5
    made = gymnasium.make_vec("Blackjack-v1", num_envs=3)
    assert len(revar.evaluate(made, "uniform", episodes=10, seed=0).dataset) == 10
    with pytest.raises(InputError, match="from an id, a factory or a model"):
        revar.evaluate(Corridor(3), "uniform", episodes=5, horizon=8, environments=2)
    same_step = gymnasium.vector.SyncVectorEnv(
        [lambda: Corridor(3)], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )
    with pytest.raises(InputError, match="it must be NEXT_STEP"):
        revar.evaluate(same_step, "uniform", episodes=5, horizon=8)


def test_blackjack_and_taxi_run_out_of_the_box() -> None:
    def stick_on_18(hand: Any) -> list[float]:
        return [1.0, 0.0] if hand[0] >= 18 else [0.0, 1.0]

    cards = revar.evaluate("Blackjack-v1", stick_on_18, episodes=400, seed=0)
    assert -1 < cards.value < 1
    assert cards.task.horizon == 20
    taxi = revar.evaluate("Taxi-v4", "uniform", episodes=20, seed=0)
    assert taxi.task.horizon == 200
    assert taxi.value < -100


def test_an_endless_environment_needs_a_horizon() -> None:
    with pytest.raises(InputError, match=r"CliffWalking-v1 has no time limit.*give horizon="):
        revar.evaluate("CliffWalking-v1", "uniform", episodes=3)
    assert revar.evaluate("CliffWalking-v1", "uniform", episodes=3, horizon=30).episodes == 3


def test_a_half_width_stops_early_at_a_look() -> None:
    wide = revar.evaluate(Corridor(5), "uniform", episodes=5000, horizon=10, half_width=0.1, seed=0)
    assert wide.stopped == "half-width"
    assert wide.half_width <= 0.1
    assert wide.episodes in (100, 200, 400, 800)
    assert wide.quantile > 2.2  # there were several checkpoints
    never = revar.evaluate(
        Corridor(5), "uniform", episodes=150, horizon=10, half_width=1e-6, seed=0
    )
    assert never.stopped == "budget"
    assert "not enough for a half-width" in never.table()


def test_prior_data_teaches_and_is_not_collected_again() -> None:
    earlier = revar.evaluate(Corridor(5), "uniform", strategy="uniform", episodes=300, horizon=10)
    result = revar.evaluate(
        Corridor(5), "uniform", episodes=50, horizon=10, prior=earlier.dataset, seed=0
    )
    assert len(result.dataset) == result.episodes == 50
    assert result.prior_episodes == 300
    assert result.statistics.episodes == 350
    assert result.standard_error < earlier.standard_error
    assert "and 300 earlier ones" in str(result)


def test_two_policies_from_one_dataset() -> None:
    """One collection with uniform actions; both values are found from it."""
    mdp = revar.from_gymnasium("FrozenLake-v1", discount=0.99)
    lake = revar.evaluate(
        "FrozenLake-v1", "uniform", strategy="uniform", episodes=3000, discount=0.99, seed=0
    )
    for share in (0.25, 0.4):
        policy = np.full((16, 4), (1 - share) / 3)
        policy[:, 1] = share
        result = revar.evaluate_data(lake.dataset, policy, horizon=100, discount=0.99)
        exact = revar.policy_value(mdp, policy)
        assert abs(result.value - exact) < 4 * result.standard_error < 0.2
        same = revar.evaluate_data(
            lake.dataset, lambda seen, row=policy: row[seen], horizon=100, discount=0.99
        )
        assert same.value == result.value


def test_the_comparison_with_on_policy_is_fair() -> None:
    """Collected on-policy, it says that nothing was bought; with flow, what theory says."""
    mdp = revar.from_gymnasium("FrozenLake-v1", discount=0.99)
    policy = np.full((16, 4), 0.25)
    ratio = revar.estimation_variance(mdp, policy, policy) / revar.optimal_flow(mdp, policy).limit
    on_policy, flow = (
        revar.evaluate("FrozenLake-v1", policy, strategy=name, episodes=3000, discount=0.99, seed=1)
        for name in ("on-policy", "flow")
    )
    assert on_policy.gain == pytest.approx(1.0, abs=0.15)
    assert flow.gain == pytest.approx(ratio, rel=0.35)
    exact = np.sqrt(revar.return_variance(mdp, policy) / 3000)
    assert flow.alternatives.monte_carlo == pytest.approx(exact, rel=0.15)


def test_the_result_reads_well() -> None:
    result = revar.evaluate("FrozenLake-v1", "uniform", episodes=150, seed=0)
    assert str(result).startswith("value 0.0")
    assert "95% interval [" in str(result)
    assert "from 150 episodes" in str(result)
    table = result.table()
    for name in ("value", "standard error", "95% interval", "on-policy instead", "bought"):
        assert any(line.startswith(name) for line in table.splitlines())


def test_a_table_of_a_few_episodes_leaves_out_what_cannot_be_needed() -> None:
    """Where single visits alone vary, on-policy collection without end is predicted no error."""
    rng = np.random.default_rng(0)
    chances = rng.uniform(0.02, 0.3, (50, 5))
    shop = revar.TabularMDP(
        *(np.zeros((50, 5, 50)), chances, np.sqrt(chances * (1 - chances))),
        *(rng.dirichlet(np.ones(50)), 1),
        reward_law="bernoulli",
    )
    policy = rng.dirichlet(np.ones(5), size=50)
    tables = [
        revar.evaluate(shop, policy, episodes=20, strategy="on-policy", seed=seed).table()
        for seed in range(3)
    ]
    assert not any("inf for" in table or "nan" in table for table in tables)
    assert any("on-policy instead" not in table for table in tables)


def test_the_figure_is_drawn(tmp_path: Any) -> None:
    result = revar.evaluate("FrozenLake-v1", "uniform", episodes=250, seed=0)
    figure = result.plot(tmp_path / "lake.png")
    assert (tmp_path / "lake.png").stat().st_size > 10_000
    axes = figure.axes[0]
    assert axes.get_xlabel() == "episodes"
    assert len(axes.lines[0].get_xdata()) == len(result.checkpoints) == 3


def test_the_title_fits_and_one_episode_is_a_point(tmp_path: Any) -> None:
    prior = revar.evaluate("FrozenLake-v1", "uniform", episodes=20, seed=0).dataset
    result = revar.evaluate("FrozenLake-v1", "uniform", episodes=5, seed=1, prior=prior)
    figure = result.plot()
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    title = figure.axes[0].title
    assert " ".join(title.get_text().split()) == str(result)
    assert "rest on no data" in str(result)
    box = title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    one = revar.evaluate("FrozenLake-v1", "uniform", episodes=1, seed=0)
    axes = one.plot(tmp_path / "one.png").axes[0]
    assert axes.lines[0].get_xdata() == [1]
    assert axes.lines[0].get_ydata() == [one.value]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/lake.png", "there is no folder"),
        ("lake.xyz", "lake.xyz: figures are saved as one of .*png"),
        ("", "is a folder; the figure needs a file"),
    ],
)
def test_where_no_figure_can_be_saved(name: str, message: str, tmp_path: Any) -> None:
    result = revar.evaluate("FrozenLake-v1", "uniform", episodes=5, seed=0)
    with pytest.raises(InputError, match=message):
        result.plot(tmp_path / name)


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    revar.evaluate(
        "FrozenLake-v1",
        "uniform",
        episodes=20,
        seed=0,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(i, 20) for i in range(1, 21)]

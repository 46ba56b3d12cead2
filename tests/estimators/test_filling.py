"""What stands in for missing data: no value depends on where zero is, no error is forgotten."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from revar import Dataset, Task, find_problem, return_variance, simulate
from revar.estimators import CertaintyEquivalence, estimators
from tests.plain_filling import Observed, error_of, filled
from tests.plain_model import Floats, PlainModel, general_model, layered_model
from tests.plain_simulation import dataset


def endless(seed: int) -> PlainModel:
    """Every episode lasts until the horizon; some actions are none of the policy's."""
    model = general_model(seed, by_outcome=bool(seed % 2))
    rng = np.random.default_rng(seed)
    chance = model.chance.copy()
    chance[:, :, rng.integers(model.states)] += 0.1
    chance[:, :, -1] = 0.0
    policy = model.policy * (rng.random(model.policy.shape) < 0.8)
    policy = np.where(policy.sum(axis=1, keepdims=True) > 0, policy, model.policy)
    return replace(
        model,
        chance=chance / chance.sum(axis=2, keepdims=True),
        policy=policy / policy.sum(axis=1, keepdims=True),
    )


def layered(seed: int) -> PlainModel:
    """Every episode ends after the last of four layers."""
    model = layered_model(seed, by_outcome=bool(seed % 2))
    chance = model.chance.copy()
    chance[:5, :, -1] = 0.0
    return replace(model, chance=chance / chance.sum(axis=2, keepdims=True))


KINDS = {"endless": endless, "layered": layered}
models = st.builds(
    lambda kind, seed: KINDS[kind](seed), st.sampled_from(sorted(KINDS)), st.integers(0, 10_000)
)


def steps_of(model: PlainModel) -> float:
    """Of an episode, each discounted."""
    return float(sum(model.discount**t for t in range(model.horizon)))


def paying(model: PlainModel, reward: float) -> PlainModel:
    constant = np.full(model.chance.shape, reward)
    return replace(model, mean=constant, std=np.zeros(model.chance.shape))


def some_behavior(model: PlainModel, seed: int) -> Floats:
    """Any behavior, that may leave actions out."""
    rng = np.random.default_rng(seed)
    behavior = rng.dirichlet(np.full(model.actions, 0.3), size=model.states)
    keep = (rng.random(behavior.shape) < 0.5) & (behavior > 0)
    behavior = np.where(keep.any(axis=1, keepdims=True), behavior * keep, behavior)
    return np.asarray(behavior / behavior.sum(axis=1, keepdims=True))


def some_data(model: PlainModel, seed: int, episodes: int) -> Dataset:
    return dataset(model, some_behavior(model, seed), episodes, np.random.default_rng(seed))


def shifted(data: Dataset, by: float) -> Dataset:
    return replace(data, rewards=data.rewards + by)


@given(models, st.integers(0, 10_000), st.integers(1, 12), st.booleans())
def test_rewards_of_one_are_worth_the_number_of_steps(
    model: PlainModel, seed: int, episodes: int, known: bool
) -> None:
    model = paying(model, 1.0)
    data = some_data(model, seed, episodes)
    estimator = CertaintyEquivalence(known_transitions=known)
    found = estimator.estimate(Task.of(model.mdp(), model.policy), data)
    assert found.value == pytest.approx(steps_of(model), rel=1e-12)


@given(models, st.integers(0, 10_000), st.integers(1, 12), st.booleans(), st.floats(-100, 100))
def test_certainty_equivalence_does_not_depend_on_where_zero_is(
    model: PlainModel, seed: int, episodes: int, known: bool, by: float
) -> None:
    data = some_data(model, seed, episodes)
    task = Task.of(model.mdp(), model.policy)
    estimator = CertaintyEquivalence(known_transitions=known)
    before, after = estimator.estimate(task, data), estimator.estimate(task, shifted(data, by))
    moved = by * steps_of(model)
    size = 1.0 + abs(by) * model.horizon
    assert after.value - before.value == pytest.approx(moved, rel=1e-12, abs=1e-12 * size)
    # What single visits and gaps may miss is told by how unlike visits are, at whatever step.
    oracle, seen = filled(model, data), Observed.of(model, data).rewards
    often = all(len(rewards) > 1 for place, rewards in seen.items() if oracle.weights[place] > 0)
    if often and before.unvisited_probability == 0.0:
        assert after.standard_error == pytest.approx(
            before.standard_error, rel=1e-6, abs=1e-6 * size
        )


@pytest.mark.parametrize(
    "estimator_id", ["monte-carlo", "corrected-return", "smallest-error", "certainty-equivalence"]
)
@given(models, st.integers(0, 10_000), st.integers(2, 40), st.floats(-100, 100))
def test_estimates_of_on_policy_data_do_not_depend_on_where_zero_is(
    estimator_id: str, model: PlainModel, seed: int, episodes: int, by: float
) -> None:
    data = dataset(model, model.policy, episodes, np.random.default_rng(seed))
    task = Task.of(model.mdp(), model.policy)
    estimator = estimators.find(estimator_id)()
    before, after = estimator.estimate(task, data), estimator.estimate(task, shifted(data, by))
    moved = by * steps_of(model)
    size = 1.0 + abs(by) * model.horizon
    # Shares that are taken off have a jump at none: there rounding decides.
    assert after.value - before.value == pytest.approx(moved, rel=1e-9, abs=1e-9 * size)


def test_few_episodes_of_a_lake_err_little_more_than_their_mean_return() -> None:
    """Weighed by the policy alone, the few visits of a state are worth less: 1.39 +- .05 times."""
    lake = find_problem("frozenlake", epsilon=0.5)
    played = simulate(
        *(lake.mdp, lake.policy, "on-policy"), episodes=10, runs=3000, seed=1, checkpoints=[10]
    )
    mean_return = return_variance(lake.mdp, lake.policy) / 10
    assert played.mse[0] < 1.1 * mean_return + 3.0 * played.mse_standard_error[0]


@given(models, st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4))
def test_actions_that_the_policy_never_takes_change_nothing(
    model: PlainModel, seed: int, episodes: int, more: int
) -> None:
    data = some_data(model, seed, episodes)
    chance, mean, std = (
        np.concatenate([array, np.repeat(array[:, :1], more, axis=1)], axis=1)
        for array in (model.chance, model.mean, model.std)
    )
    policy = np.concatenate([model.policy, np.zeros((model.states, more))], axis=1)
    wider = replace(model, chance=chance, mean=mean, std=std, policy=policy)
    one, other = (
        CertaintyEquivalence().estimate(Task.of(each.mdp(), each.policy), found)
        for each, found in ((model, data), (wider, replace(data, action_count=None)))
    )
    assert other.value == pytest.approx(one.value, rel=1e-9, abs=1e-9)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9, abs=1e-9)


@given(models, st.integers(0, 10_000), st.integers(1, 30))
def test_intervals_have_a_width_unless_nothing_varied(
    model: PlainModel, seed: int, episodes: int
) -> None:
    rng = np.random.default_rng(seed)
    noiseless = rng.random(model.policy.shape) < 0.7
    model = replace(model, std=np.where(noiseless[:, :, None], 0.0, model.std))
    data = some_data(model, seed, episodes)
    found = CertaintyEquivalence().estimate(Task.of(model.mdp(), model.policy), data)
    oracle, observed = filled(model, data), Observed.of(model, data)
    counting = {
        place: seen for place, seen in observed.rewards.items() if oracle.weights[place] > 0
    }
    assume(counting)
    varied = any(len(set(seen)) > 1 for seen in counting.values())
    once = any(len(seen) == 1 for seen in counting.values())
    alike = len({reward for seen in counting.values() for reward in seen}) == 1
    if varied or (once and not alike):
        low, high = found.interval
        assert high > low
    elif found.standard_error == 0.0:
        # Then each visit of a pair was followed by the same.
        error = error_of(observed, oracle)
        assert error.variance == pytest.approx(0.0, abs=1e-20)

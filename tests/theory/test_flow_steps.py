"""Each step of the optimal-flow solver: what it may never do, on random models."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import TabularMDP, occupancy, one_step_costs
from revar.model.arrays import Layers, Outcomes
from revar.model.structure import reachable_layers
from revar.theory.flow_steps import (
    LEAST_SHARE,
    accelerated_sweeps,
    best_mixture,
    best_reply,
    extrapolate,
    flow_of,
    mix,
    objective,
    sweep,
)
from tests.plain_model import Floats
from tests.theory.random_models import random_model

ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Instance:
    """A model's costs, what has been collected, and two behaviors to go on with."""

    mdp: TabularMDP
    costs: Floats  # [S, A]
    prior: Floats  # [S, A]
    episodes: float
    behavior: Floats  # [L, S, A] every share positive
    other: Floats  # [L, S, A]

    @classmethod
    def drawn(cls, seed: int, known: bool, visited: bool) -> "Instance":
        model = random_model(seed)
        mdp = model.mdp()
        rng = np.random.default_rng(seed)
        shape = (mdp.horizon, mdp.states)
        tables = [rng.dirichlet(np.ones(mdp.actions), size=shape) for _ in range(2)]
        visits = rng.integers(0, 30, size=model.policy.shape) * rng.integers(
            0, 2, size=model.policy.shape
        )
        return cls(
            mdp,
            one_step_costs(mdp, model.policy, known_transitions=known),
            visits.astype(np.float64) if visited else np.zeros(model.policy.shape),
            float(rng.integers(1, 100)) if visited else 1.0,
            0.99 * tables[0] + 0.01 / mdp.actions,
            tables[1],
        )

    @property
    def model(self) -> tuple[Outcomes, Floats, Layers]:
        """The arguments that most steps begin with."""
        outcomes, initial = self.mdp.arrays.outcomes, self.mdp.arrays.initial
        everything = np.ones(self.costs.shape, dtype=bool)
        return outcomes, initial, reachable_layers(outcomes, initial, everything, self.mdp.horizon)

    def visits(self, behavior: Floats) -> Floats:
        """X(s,a) by the library's other recursion."""
        return np.asarray(occupancy(self.mdp, behavior).sum(axis=0))

    def error(self, visits: Floats) -> float:
        """F = sum C / (N + m X) over the pairs that cost anything."""
        needed = self.costs > 0
        with np.errstate(divide="ignore"):
            each = self.costs[needed] / (self.prior + self.episodes * visits)[needed]
        return float(each.sum())

    def prices(self, visits: Floats) -> Floats:
        """m C / (N + m X)^2, as the solver computes them."""
        prices = np.zeros(self.costs.shape)
        objective(self.costs, self.prior, self.episodes, visits, prices)
        return prices

    def room(self) -> Floats:
        return np.zeros((2, self.mdp.states + 1))


instances = st.builds(Instance.drawn, st.integers(0, 100_000), st.booleans(), st.booleans())


@given(instances)
def test_flows_and_prices(instance: Instance) -> None:
    flow, visits = np.zeros(instance.behavior.shape), np.zeros(instance.costs.shape)
    flow_of(*instance.model, instance.behavior, flow, visits, instance.room())
    np.testing.assert_allclose(flow, occupancy(instance.mdp, instance.behavior), atol=1e-15)
    np.testing.assert_allclose(visits, instance.visits(instance.behavior), atol=1e-14)
    prices = np.ones(instance.costs.shape)
    value = objective(instance.costs, instance.prior, instance.episodes, visits, prices)
    assert value == pytest.approx(instance.error(visits), rel=1e-12)
    needed = instance.costs > 0
    assert not prices[~needed].any()
    for s, a in np.argwhere(needed):
        step = 1e-6 * (instance.prior[s, a] / instance.episodes + visits[s, a])
        slopes = []
        for sign in (1.0, -1.0):
            moved = np.array(visits)
            moved[s, a] += sign * step
            slopes.append(instance.costs[s, a] / (instance.prior + instance.episodes * moved)[s, a])
        assert prices[s, a] == pytest.approx((slopes[1] - slopes[0]) / (2 * step), rel=1e-6)


@given(instances)
def test_sweeps_never_increase_the_error(instance: Instance) -> None:
    behavior = np.array(instance.behavior)
    outcomes, _, layers = instance.model
    errors = [instance.error(instance.visits(behavior))]
    for _ in range(25):
        sweep(
            outcomes, layers, instance.prices(instance.visits(behavior)), behavior, instance.room()
        )
        errors.append(instance.error(instance.visits(behavior)))
    assert np.all(np.diff(errors) <= (ROUNDING - 1) * errors[0])
    np.testing.assert_allclose(behavior.sum(axis=2), 1.0, rtol=1e-12)


@given(instances, st.integers(1, 60))
def test_accelerated_sweeps_never_end_above_their_start(instance: Instance, count: int) -> None:
    behavior = np.array(instance.behavior)
    accelerated_sweeps(
        *instance.model, instance.costs, instance.prior, instance.episodes, behavior, count
    )
    start, end = (instance.error(instance.visits(b)) for b in (instance.behavior, behavior))
    assert end <= start * ROUNDING
    np.testing.assert_allclose(behavior.sum(axis=2), 1.0, rtol=1e-12)


@given(instances, st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_accelerated_sweeps_end_when_they_gain_little(instance: Instance, tolerance: float) -> None:
    """Later for a smaller tolerance; and what is left is below or equal to where they began."""
    arguments = (*instance.model, instance.costs, instance.prior, instance.episodes)
    errors = []
    for share in (1.0, tolerance, 0.0):
        behavior = np.array(instance.behavior)
        accelerated_sweeps(*arguments, behavior, 400, share)
        errors.append(instance.error(instance.visits(behavior)))
        np.testing.assert_allclose(behavior.sum(axis=2), 1.0, rtol=1e-12)
    start = instance.error(instance.visits(instance.behavior))
    assert start * ROUNDING**3 >= errors[0] * ROUNDING**2 >= errors[1] * ROUNDING >= errors[2]


def test_a_large_tolerance_ends_at_once() -> None:
    """Long before the optimum: an end that never came would give as little as all sweeps do."""
    instance = Instance.drawn(3, known=False, visited=False)
    errors = []
    for tolerance in (1.0, 1e-2, 0.0):
        behavior = np.array(instance.behavior)
        accelerated_sweeps(
            *instance.model,
            instance.costs,
            instance.prior,
            instance.episodes,
            behavior,
            400,
            tolerance,
        )
        errors.append(instance.error(instance.visits(behavior)))
    assert errors[0] > 1.01 * errors[1] > 1.01 * errors[2]


def test_momentum_pays() -> None:
    """What accelerated sweeps are for: closer to the optimum than as many plain ones."""
    better = 0
    for seed in range(3, 100, 5):  # Garnet graphs
        instance = Instance.drawn(seed, known=False, visited=False)
        plain, fast = np.array(instance.behavior), np.array(instance.behavior)
        outcomes, _, layers = instance.model
        for _ in range(60):
            prices = instance.prices(instance.visits(plain))
            sweep(outcomes, layers, prices, plain, instance.room())
        accelerated_sweeps(
            *instance.model, instance.costs, instance.prior, instance.episodes, fast, 60
        )
        errors = [instance.error(instance.visits(behavior)) for behavior in (plain, fast)]
        better += errors[1] <= errors[0] * ROUNDING
    assert better >= 18


@given(instances, st.booleans())
def test_mixtures(instance: Instance, towards_reply: bool) -> None:
    outcomes, initial, layers = instance.model
    behavior, other = np.array(instance.behavior), np.array(instance.other)
    visits = instance.visits(behavior)
    if towards_reply:
        best_reply(outcomes, initial, layers, instance.prices(visits), other, instance.room())
    other_visits = instance.visits(other)
    share = best_mixture(instance.costs, instance.prior, instance.episodes, visits, other_visits)
    assert 0.0 <= share <= 1.0

    def mixed(part: float) -> float:
        return instance.error(visits + part * (other_visits - visits))

    assert mixed(share) <= mixed(0.0) * ROUNDING
    assert mixed(share) <= min(mixed(part) for part in np.linspace(0, 1, 51)) * (1 + 1e-9)

    flow, other_flow = occupancy(instance.mdp, behavior), occupancy(instance.mdp, other)
    expected = flow + share * (other_flow - flow)
    mix(layers, behavior, flow, visits, other_flow, other_visits, share)
    np.testing.assert_allclose(flow, expected, atol=1e-15)
    np.testing.assert_allclose(occupancy(instance.mdp, behavior), expected, atol=1e-13)
    np.testing.assert_allclose(visits, expected.sum(axis=0), atol=1e-13)


@given(instances, st.integers(0, 1000))
def test_prices_bound_the_error_from_below(instance: Instance, seed: int) -> None:
    """Cauchy and Schwarz: (sum sqrt(C p))^2 <= F * sum p (N + m X), and X earns what it can."""
    rng = np.random.default_rng(seed)
    prices = rng.exponential(size=instance.costs.shape) ** 3
    outcomes, initial, layers = instance.model
    reply = np.zeros(instance.behavior.shape)
    earned = best_reply(outcomes, initial, layers, prices, reply, instance.room())
    for behavior in (instance.behavior, instance.other):
        visits = instance.visits(behavior)
        assert (prices * visits).sum() <= earned * ROUNDING
        possible = (prices * instance.prior).sum() + instance.episodes * earned
        bound = np.sqrt(instance.costs * prices).sum() ** 2 / possible
        assert bound <= instance.error(visits) * ROUNDING
    # The reply earns it, by one action at each step.
    flow, visits = np.zeros(reply.shape), np.zeros(instance.costs.shape)
    flow_of(*instance.model, reply, flow, visits, instance.room())
    assert (prices * visits).sum() == pytest.approx(earned, rel=1e-12)
    assert set(np.unique(reply)) <= {0.0, 1.0}


@given(instances, st.integers(1, 20))
def test_actions_left_out_stay_out(instance: Instance, count: int) -> None:
    """A strategy may refuse actions: a share of zero is never raised, whatever it would lead to."""
    rng = np.random.default_rng(count)
    taken = rng.random(instance.behavior.shape) < 0.5
    taken[..., 0] = True
    start = instance.behavior * taken
    start /= start.sum(axis=2, keepdims=True)
    # Costs count only where the behavior still leads; the others stand for nothing to be learned.
    costs = np.where(instance.visits(start) > 0, instance.costs, 0.0)
    behavior = np.array(start)
    accelerated_sweeps(*instance.model, costs, instance.prior, instance.episodes, behavior, count)
    assert not behavior[~taken].any()
    np.testing.assert_allclose(behavior.sum(axis=2), 1.0, rtol=1e-12)


def test_where_nothing_is_worth_a_visit_shares_stay() -> None:
    instance = Instance.drawn(3, known=False, visited=False)
    outcomes, _, layers = instance.model
    behavior = np.array(instance.behavior)
    sweep(outcomes, layers, np.zeros(instance.costs.shape), behavior, instance.room())
    np.testing.assert_array_equal(behavior, instance.behavior)


@given(instances, st.floats(0.0, 1.0))
def test_extrapolation(instance: Instance, momentum: float) -> None:
    *_, layers = instance.model
    behavior, before = instance.behavior, instance.other
    entered = occupancy(instance.mdp, behavior).sum(axis=2) > 0
    result = np.zeros(behavior.shape)
    extrapolate(layers, behavior, before, momentum, result)
    np.testing.assert_allclose(result[entered].sum(axis=1), 1.0, rtol=1e-12)
    assert result[entered].min() > 0.5 * LEAST_SHARE
    # A small step goes straight on; shares of at least 0.0025 keep what is left of second order.
    extrapolate(layers, behavior, before, 1e-5, result)
    straight = behavior + 1e-5 * (behavior - before)
    np.testing.assert_allclose(result[entered], straight[entered], atol=2e-7)

"""What is to come under a plan: the error it leaves, and the steps that make it smaller."""

from math import exp
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled_in_place, inlined
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes
from revar.model.tables import total
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.transitions import own_share
from revar.theory.caps import keep_within
from revar.theory.flow_steps import accelerated_sweeps, flow_of
from revar.theory.limited_steps import limited_objective, limited_sweeps


class Ahead(NamedTuple):
    """What a plan is made for: visits to come, on top of those that were made."""

    transitions: Outcomes  # as far as they are credible
    layers: Layers
    already: FloatArray  # [S, A] visits
    budget: float  # that the plan looks ahead
    visit_cost: FloatArray  # [S, A]


def error_ahead(task: TaskArrays, ahead: Ahead, costs: FloatArray, behavior: FloatArray) -> float:
    """F when the budget ahead has been spent with a behavior [L, S, A]."""
    states, actions = costs.shape
    visits = np.zeros((states, actions))
    spare = np.zeros((2, states + 1))
    flow = np.zeros(behavior.shape)
    flow_of(ahead.transitions, task.initial, ahead.layers, behavior, flow, visits, spare)
    value, _ = limited_objective(
        *(costs, ahead.already, ahead.budget, task.episode_cost, ahead.visit_cost, visits),
        np.zeros((states, actions)),
    )
    return value


def visits_ahead(
    task: TaskArrays, ahead: Ahead, behavior: FloatArray, longest: float
) -> tuple[FloatArray, float]:
    """The visits of each pair when the budget ahead has been spent with a behavior, [S, A].

    And how many episodes that takes. Episodes that come to a state without data are taken to last
    up to `longest` steps: what they cost from there on is known of none.
    """
    states, actions = ahead.already.shape
    visits = np.zeros((states, actions))
    flow = np.zeros((task.horizon, states, actions))
    spare = np.zeros((2, states + 1))
    flow_of(ahead.transitions, task.initial, ahead.layers, behavior, flow, visits, spare)
    each = task.episode_cost
    if each == 0.0:
        unknown = ahead.already.sum(axis=1) == 0.0
        usual = total(ahead.visit_cost * ahead.already) / total(ahead.already)
        left = np.maximum(0.0, longest - 1.0 - np.arange(task.horizon)).reshape((-1, 1, 1))
        each = total(ahead.visit_cost * visits) + usual * total((flow * left)[:, unknown])
    episodes = ahead.budget / each
    return ahead.already + episodes * visits, episodes


def plan_pays(
    task: TaskArrays,
    ahead: Ahead,
    costs: FloatArray,
    gaps: FloatArray,
    behavior: FloatArray,
    steps: float,
) -> bool:
    """Whether a plan leaves a smaller error than the target policy, its doubt allowed for.

    Episodes of the target policy last so many `steps`.

    A plan that rests on estimated costs looks better than it is: of a pair that has T visits when
    it is made, the expected error is 1 + 1/T times as large. Plans to come will know more: half of
    the visits to come are counted. The target policy does not depend on estimates. A pair that is
    not visited until all is spent leaves what may be missed there, `gaps` [S, A].
    """
    on_policy = np.zeros((task.horizon, *costs.shape))
    on_policy[:] = task.policy
    visits, _ = visits_ahead(task, ahead, behavior, task.horizon)
    instead, _ = visits_ahead(task, ahead, on_policy, steps)
    planned, unplanned = _errors_left(costs, gaps, ahead.already, visits, instead)
    return planned < unplanned


@compiled_in_place
def _errors_left(
    costs: FloatArray,
    gaps: FloatArray,
    already: FloatArray,
    visits: FloatArray,
    instead: FloatArray,
) -> tuple[float, float]:
    """The errors of a plan with its doubt, and of what is done instead."""
    planned = 0.0
    unplanned = 0.0
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            cost, gap, before = costs[s, a], gaps[s, a], already[s, a]
            if cost > 0.0 or gap > 0.0:
                known = max(1.0, 0.5 * (before + visits[s, a]))
                planned += _error_left(cost * (1.0 + 1.0 / known), gap, before, visits[s, a])
                unplanned += _error_left(cost, gap, before, instead[s, a])
    return planned, unplanned


@inlined
def _error_left(cost: float, gap: float, already: float, visits: float) -> float:
    """What a pair adds to the error when so many visits are expected."""
    missed = exp(already - visits) if gap > 0.0 else 0.0
    return missed * gap + (1.0 - missed) * cost / max(1.0, visits)


def improve_freely(
    task: TaskArrays,
    ahead: Ahead,
    costs: FloatArray,
    behavior: FloatArray,
    count: int,
    tolerance: float,
) -> None:
    """Improve a behavior by at most `count` sweeps: episodes count alike, all is free."""
    accelerated_sweeps(
        *(ahead.transitions, task.initial, ahead.layers, costs, ahead.already, ahead.budget),
        *(behavior, count, tolerance),
    )


def improve_within(
    task: TaskArrays,
    ahead: Ahead,
    costs: FloatArray,
    behavior: FloatArray,
    count: int,
    tolerance: float,
) -> None:
    """The same where visits cost something, or shares have caps."""
    nothing = np.zeros(costs.shape)
    improve_by_worth(task, ahead, costs, nothing, nothing, behavior, count, tolerance)


def improve_by_worth(
    task: TaskArrays,
    ahead: Ahead,
    costs: FloatArray,
    worth: FloatArray,
    later: FloatArray,
    behavior: FloatArray,
    count: int,
    tolerance: float,
) -> None:
    """The same where visits are worth something by themselves, `worth` + discount^t `later`."""
    limited_sweeps(
        ahead.transitions,
        task.initial,
        ahead.layers,
        task.limits.caps,
        costs,
        ahead.already,
        ahead.budget,
        task.episode_cost,
        ahead.visit_cost,
        worth,
        later,
        task.discount,
        behavior,
        count,
        tolerance,
    )


def be_cautious(
    task: TaskArrays, ahead: Ahead, visits: IntArray, needed: float, behavior: FloatArray
) -> None:
    """Trust a plan as far as the data goes, within caps."""
    if needed > 0.0:
        keep_to_policy(behavior, ahead.layers, task.policy, visits, needed)
        if task.limited:
            keep_within(behavior, ahead.layers, task.limits.caps)


@compiled_in_place
def keep_to_policy(
    behavior: FloatArray, layers: Layers, policy: FloatArray, visits: IntArray, prior: float
) -> None:
    """Keep T / (T + n) of the share of a pair of T visits; the rest is the policy's.

    Mixing the transitions of a state's actions is not enough. It makes their differences smaller,
    but how often a plan takes each depends on the ratio of the differences, which it keeps.
    """
    start, layer_states = layers
    horizon, _, actions = behavior.shape
    for t in range(horizon):
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = 0.0
            for a in range(actions):
                own = own_share(visits[s, a], prior)
                behavior[t, s, a] = own * behavior[t, s, a] + (1.0 - own) * policy[s, a]
                total += behavior[t, s, a]
            if total > 0.0:
                for a in range(actions):
                    behavior[t, s, a] /= total

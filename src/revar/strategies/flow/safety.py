"""Plans that keep limits on sums, with confidence, where the model has to be estimated.

A floor on the return, and a limit on a sum of amounts, ask that some G(b) is at least a number, or
a share of what the target policy has: G(b) - c G(pi) >= least. Here G is estimated, and has an
error; a plan is safe when the inequality holds with `quantile` standard errors to spare.
"""

from math import inf, sqrt

import numpy as np

from revar.model.arrays import FloatArray, RunStatistics
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.ahead import Ahead, be_cautious, error_ahead, improve_by_worth
from revar.strategies.flow.assessment import Safety, assess, safety_of
from revar.strategies.flow.tuning import Tuning
from revar.theory.flow_steps import flow_of, mix

# The multiplier of a sum is raised by FACTOR until the plan is safe, at most so often, and then
# halved in on as often as HALVINGS. Sums that are limited together take turns.
FACTOR = 4.0
RAISES = 10
HALVINGS = 5
ROUNDS = 2
TURNS = 3  # what a visit does to the error is found anew so often for each multiplier


def keep_sums(
    task: TaskArrays,
    ahead: Ahead,
    statistics: RunStatistics,
    costs: FloatArray,
    needed: float,
    known_transitions: bool,
    tuning: Tuning,
    behavior: FloatArray,
) -> None:
    """Overwrite a plan by one that is safe; the target policy is, as far as anything is known."""
    sums = task.limits.most.size
    count = sums + (1 if task.limits.has_floor else 0)
    limits = [safety_of(task, statistics, known_transitions, tuning, i) for i in range(count)]
    multipliers = np.zeros(count)
    safe = True
    for _ in range(ROUNDS):
        safe = True
        for i in range(count):
            room, _ = assess(task, ahead.layers, limits[i], behavior)
            if room < 0.0:
                safe = False
                _raise_multiplier(
                    task, ahead, limits, costs, needed, multipliers, i, room, behavior
                )
        if safe:
            break
    for i in range(count):
        room, _ = assess(task, ahead.layers, limits[i], behavior)
        safe = safe and room >= 0.0
    if not safe:
        _mix_with_policy(task, ahead, limits, behavior)


def _raise_multiplier(
    task: TaskArrays,
    ahead: Ahead,
    limits: list[Safety],
    costs: FloatArray,
    needed: float,
    multipliers: FloatArray,
    number: int,
    room: float,
    behavior: FloatArray,
) -> None:
    """Make visits worth so much by a limit that the plan has room below it, and no more."""
    visits = limits[number].seen.visits
    tuning = limits[number].tuning
    low, high = 0.0, inf
    tried = multipliers[number]
    if tried == 0.0:
        tried = error_ahead(task, ahead, costs, behavior) / -room / FACTOR
    kept = behavior.copy()
    point = behavior.copy()
    for turn in range(RAISES + HALVINGS):
        multipliers[number] = tried
        for _ in range(TURNS):
            worth, later = _own_worth(task, ahead, limits, multipliers, point)
            improve_by_worth(
                *(task, ahead, costs, worth, later, point, int(tuning.sweeps), tuning.settled)
            )
        be_cautious(task, ahead, visits, needed, point)
        room, _ = assess(task, ahead.layers, limits[number], point)
        if room >= 0.0:
            high = tried
            kept[:] = point
        else:
            low = tried
        if high == inf:
            if turn >= RAISES:
                break
            tried *= FACTOR
        else:
            tried = sqrt(low * high) if low > 0.0 else high / FACTOR
    multipliers[number] = high if high < inf else low
    behavior[:] = kept if high < inf else point


def _own_worth(
    task: TaskArrays,
    ahead: Ahead,
    limits: list[Safety],
    multipliers: FloatArray,
    behavior: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What visits are worth by the limits: at any step, and discounted."""
    worth = np.zeros(task.policy.shape)
    later = np.zeros(task.policy.shape)
    for i in range(multipliers.size):
        if multipliers[i] > 0.0:
            _, slope = assess(task, ahead.layers, limits[i], behavior)
            if i < task.limits.most.size:
                worth += multipliers[i] * slope
            else:
                later += multipliers[i] * slope
    return worth, later


def _mix_with_policy(
    task: TaskArrays,
    ahead: Ahead,
    limits: list[Safety],
    behavior: FloatArray,
) -> None:
    """As much of the plan as is safe; the other episodes are the target policy's."""
    states, actions = task.policy.shape
    spare = np.zeros((2, states + 1))
    plan_flow = np.zeros(behavior.shape)
    plan_visits = np.zeros((states, actions))
    flow_of(ahead.transitions, task.initial, ahead.layers, behavior, plan_flow, plan_visits, spare)
    mixed = behavior.copy()
    low, high = 0.0, 1.0
    behavior[:] = task.policy
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        mixed[:] = task.policy
        flow = np.zeros(behavior.shape)
        visits = np.zeros((states, actions))
        flow_of(ahead.transitions, task.initial, ahead.layers, mixed, flow, visits, spare)
        mix(ahead.layers, mixed, flow, visits, plan_flow, plan_visits, share)
        safe = True
        for i in range(len(limits)):
            room, _ = assess(task, ahead.layers, limits[i], mixed)
            safe = safe and room >= 0.0
        if safe:
            low = share
            behavior[:] = mixed
        else:
            high = share

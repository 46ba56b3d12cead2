"""Exact answers by listing every trajectory of a small model: slow, and hard to get wrong."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.plain_model import Floats, PlainModel


@dataclass(frozen=True)
class Path:
    """One way an episode can go, with its probability and the moments of its return."""

    probability: float
    steps: tuple[tuple[int, int, int], ...]  # (state, action, outcome)
    return_mean: float
    return_variance: float


def paths(
    model: PlainModel, behavior: Floats | None = None, *, start: int | None = None, step: int = 0
) -> Iterator[Path]:
    """Every trajectory of positive probability under [S,A] or [L,S,A] (or the target policy).

    With `start` given: from that state at that step, to the horizon.
    """
    table = model.policy if behavior is None else behavior
    by_step = np.broadcast_to(table, (model.horizon, model.states, model.actions))
    initial = model.initial if start is None else np.eye(model.states)[start]
    stack: list[tuple[Path, int]] = [
        (Path(float(initial[s]), (), 0.0, 0.0), s) for s in range(model.states) if initial[s] > 0
    ]
    while stack:
        path, state = stack.pop()
        t = step + len(path.steps)
        if state == model.states or t == model.horizon:
            yield path
            continue
        factor = model.discount ** len(path.steps)
        for action in range(model.actions):
            for outcome in range(model.states + 1):
                chance = by_step[t, state, action] * model.chance[state, action, outcome]
                if chance == 0:
                    continue
                grown = Path(
                    path.probability * chance,
                    (*path.steps, (state, action, outcome)),
                    path.return_mean + factor * model.mean[state, action, outcome],
                    path.return_variance + (factor * model.std[state, action, outcome]) ** 2,
                )
                stack.append((grown, outcome))


def value(model: PlainModel) -> float:
    """The expected return of the target policy."""
    return sum(path.probability * path.return_mean for path in paths(model))


def state_values(model: PlainModel) -> Floats:
    """v_t(s), [L+1, S]."""
    values = np.zeros((model.horizon + 1, model.states))
    for t in range(model.horizon):
        for s in range(model.states):
            every = paths(model, start=s, step=t)
            values[t, s] = sum(path.probability * path.return_mean for path in every)
    return values


def variance_of_return(model: PlainModel) -> float:
    """The variance of the return of one episode of the target policy."""
    second = sum(
        path.probability * (path.return_variance + path.return_mean**2) for path in paths(model)
    )
    return second - value(model) ** 2


def occupancy(model: PlainModel, behavior: Floats) -> Floats:
    """The probability of taking a in s at step t, [L, S, A]."""
    visits = np.zeros((model.horizon, model.states, model.actions))
    for path in paths(model, behavior):
        for t, (state, action, _) in enumerate(path.steps):
            visits[t, state, action] += path.probability
    return visits


def action_values(model: PlainModel) -> Floats:
    """q_t(s,a), [L, S, A]."""
    ahead = np.zeros((model.horizon, model.states + 1))
    ahead[:, :-1] = state_values(model)[1:]
    reward = (model.chance * model.mean).sum(axis=2)
    return np.asarray(
        reward + model.discount * np.einsum("sap,tp->tsa", model.chance, ahead, optimize=False)
    )


def estimate_moments(model: PlainModel, behavior: Floats, estimator: str) -> tuple[float, float]:
    """Mean and variance of one episode's estimate: "ordinary", "per-decision", "doubly-robust".

    Given the path an estimate is c + sum_t w_t R_t: its own mean and variance are added up over
    all paths of the behavior.
    """
    by_step = np.broadcast_to(behavior, (model.horizon, model.states, model.actions))
    values, q = state_values(model), action_values(model)
    mean = second = 0.0
    for path in paths(model, behavior):
        ratio = [model.policy[s, a] / by_step[t, s, a] for t, (s, a, _) in enumerate(path.steps)]
        so_far = np.cumprod([1.0, *ratio])  # of the actions before each step
        constant = 0.0
        weights = []
        for t, (s, a, _) in enumerate(path.steps):
            factor = model.discount**t
            weights.append(factor * (so_far[-1] if estimator == "ordinary" else so_far[t + 1]))
            if estimator == "doubly-robust":
                constant += factor * (so_far[t] * values[t, s] - so_far[t + 1] * q[t, s, a])
        centre = constant + sum(
            weight * model.mean[step] for weight, step in zip(weights, path.steps, strict=True)
        )
        spread = sum(
            (weight * model.std[step]) ** 2
            for weight, step in zip(weights, path.steps, strict=True)
        )
        mean += path.probability * centre
        second += path.probability * (centre**2 + spread)
    return mean, second - mean**2


def probability_of_meeting(model: PlainModel, pairs: set[tuple[int, int]]) -> float:
    """The probability that an episode of the target policy takes one of these pairs."""
    return sum(
        path.probability
        for path in paths(model)
        if any((state, action) in pairs for state, action, _ in path.steps)
    )

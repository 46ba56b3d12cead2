"""Certainty equivalence in plain NumPy, gaps filled: forward by masses, and from raw rewards.

A pair without data takes the mean of the policy's other actions in its state: by their shares, or
by the shares over the chance that visits of the state show them, whichever errs less. Mass on
states without data is shared out, in proportion, to those with data that are occupied at the same
step; where there are none, each further step pays the mean reward of all visits, and ends as often.
"""

from dataclasses import dataclass, replace

import numpy as np

from revar import Dataset
from tests.plain_model import Floats, PlainModel


@dataclass(frozen=True)
class Observed:
    """What the visits of each pair showed, raw."""

    rewards: dict[tuple[int, int], list[float]]
    outcomes: dict[tuple[int, int], list[int]]

    @classmethod
    def of(cls, model: PlainModel, data: Dataset) -> "Observed":
        found = cls({}, {})
        for s, a, reward, successor in zip(
            data.states.tolist(),
            data.actions.tolist(),
            data.rewards.tolist(),
            data.successors.tolist(),
            strict=True,
        ):
            found.rewards.setdefault((s, a), []).append(reward)
            found.outcomes.setdefault((s, a), []).append(
                model.states if successor < 0 else successor
            )
        return found

    @property
    def usual_reward(self) -> float:
        return float(np.mean([reward for seen in self.rewards.values() for reward in seen]))

    def going_on(self, states: int) -> float:
        return float(np.mean([o < states for seen in self.outcomes.values() for o in seen]))


def tried_shares(model: PlainModel, observed: Observed) -> Floats:
    """The policy among actions with data; rows of states without any are zero."""
    has_data = np.zeros(model.policy.shape)
    for place in observed.rewards:
        has_data[place] = 1.0
    return _scaled(model.policy * has_data)


def balanced_shares(model: PlainModel, observed: Observed) -> Floats:
    """The same where rare actions with data stand for rare ones without any."""
    shares = tried_shares(model, observed)
    for s in range(model.states):
        visits = {a: len(observed.rewards.get((s, a), [])) for a in range(model.actions)}
        if any(visits[a] == 0 for a in range(model.actions) if model.policy[s, a] > 0):
            missed = (1 - model.policy[s]) ** sum(visits.values())
            for a in np.flatnonzero(shares[s]):
                shares[s, a] = model.policy[s, a] / (1 - missed[a])
    return _scaled(shares)


def _scaled(shares: Floats) -> Floats:
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(shares, total, out=np.zeros_like(shares), where=total > 0))


@dataclass(frozen=True)
class Filled:
    """The value and how it depends on each visit."""

    value: float
    table: Floats  # [L+1, S+1] values, of states that can be occupied
    weights: Floats  # [S, A]
    gains: Floats  # [S, A, S+1]
    ahead: Floats  # [S, A] their means
    untried: Floats  # [S, A] weight of pairs without data where others have some
    missed: Floats  # [A] what filling takes from each action's weight, over all states
    policy: Floats  # [S, A]
    tilt: float  # what filling adds to the policy's mean preference, summed over steps
    unknown: Floats  # [S] weight of states without data
    unknown_error: float
    adrift_error: float


def filled(model: PlainModel, data: Dataset) -> Filled:
    """The value from whole episodes."""
    return fill(model, Observed.of(model, data))


def fill(model: PlainModel, observed: Observed) -> Filled:
    """In that way of the two which leaves the smaller error."""
    one = fill_by(tried_shares(model, observed), model, observed)
    other = fill_by(balanced_shares(model, observed), model, observed)
    left, instead = (
        error_of(
            observed,
            replace(found, missed=found.untried.sum(axis=0), tilt=0.0),
            spread_counts=False,
        )
        for found in (one, other)
    )
    return other if instead.variance < (1 - 1e-9) * left.variance else one


def fill_by(shares: Floats, model: PlainModel, observed: Observed) -> Filled:
    """Mass forward, step by step; then values backward."""
    known = shares.sum(axis=1) > 0
    reward = np.zeros(model.policy.shape)
    chance = np.zeros(model.chance.shape)
    for place, seen in observed.rewards.items():
        reward[place] = np.mean(seen)
        chance[place] = np.bincount(observed.outcomes[place], minlength=model.states + 1) / len(
            seen
        )
    usual, going_on = observed.usual_reward, observed.going_on(model.states)
    mass, lost_before = model.initial.copy(), 0.0
    occupied = np.zeros((model.horizon, model.states))
    adrift = np.zeros(model.horizon)
    unknown = np.zeros(model.states)
    value = 0.0
    for t in range(model.horizon):
        fading = model.discount**t
        unknown += fading * np.where(known, 0.0, mass)
        lost = lost_before + mass[~known].sum()
        here = np.where(known, mass, 0.0)
        lost_before = 0.0
        if here.sum() > 0:
            here *= 1.0 + lost / here.sum()
        elif lost > 0:
            value += fading * lost * usual
            adrift[t] = fading * lost
            lost_before = going_on * lost
        pairs = here[:, None] * shares
        value += fading * (pairs * reward).sum()
        occupied[t] = here
        mass = np.einsum("sa,sap->p", pairs, chance)[:-1]
    table = np.zeros((model.horizon + 1, model.states + 1))
    weights = np.zeros(model.policy.shape)
    gains = np.zeros(model.chance.shape)
    spread = adrift_error = typical = 0.0
    for t in reversed(range(model.horizon)):
        here, fading = occupied[t], model.discount**t
        worth = reward + model.discount * chance @ table[t + 1]
        values = (shares * worth).sum(axis=1)
        typical = (
            here @ values / here.sum()
            if here.sum() > 0
            else (usual + model.discount * going_on * typical)
        )
        adrift_error += adrift[t] * abs(typical)
        spread += fading * here @ (values - typical) ** 2
        table[t, :-1] = np.where(known, values, typical)
        pairs = fading * here[:, None] * shares
        weights += pairs
        gains += model.discount * pairs[:, :, None] * table[t + 1]
    without = np.ones(model.policy.shape)
    for place in observed.rewards:
        without[place] = 0.0
    untried = weights.sum(axis=1, keepdims=True) * model.policy * without
    total = weights.sum()
    unknown_error = np.sqrt(spread / total) if total > 0 else 0.0
    ahead = (chance * gains).sum(axis=2)
    taken = weights.sum(axis=1, keepdims=True) * model.policy - weights
    less = np.where(untried.sum(axis=1, keepdims=True) > 0, taken, 0.0)
    return Filled(
        *(value, table, weights, gains, ahead, untried, less.sum(axis=0), model.policy),
        -float((less * model.policy).sum()),
        *(unknown, unknown_error, adrift_error),
    )


def filled_rewards(model: PlainModel, data: Dataset) -> Floats:
    """Mean rewards [S, A], those of pairs without data filled, for transitions that are known."""
    observed = Observed.of(model, data)
    shares = tried_shares(model, observed)
    means = np.zeros(model.policy.shape)
    for place, seen in observed.rewards.items():
        means[place] = np.mean(seen)
    by_state = (shares * means).sum(axis=1)
    by_state[shares.sum(axis=1) == 0] = observed.usual_reward
    for s in range(model.states):
        for a in range(model.actions):
            if (s, a) not in observed.rewards:
                means[s, a] = by_state[s]
    return means


def filled_where_known(model: PlainModel, data: Dataset) -> Filled:
    """The same with the true transitions, so that rewards alone have gaps."""
    observed = Observed.of(model, data)
    rewards = filled_rewards(model, data)
    table = np.zeros((model.horizon + 1, model.states + 1))
    for t in reversed(range(model.horizon)):
        worth = rewards + model.discount * model.chance @ table[t + 1]
        table[t, :-1] = (model.policy * worth).sum(axis=1)
    weights = np.zeros(model.policy.shape)
    gains = np.zeros(model.chance.shape)
    mass = model.initial
    for t in range(model.horizon):
        pairs = model.discount**t * mass[:, None] * model.policy
        weights += pairs
        gains += model.discount * pairs[:, :, None] * table[t + 1]
        mass = np.einsum("s,sa,sap->p", mass, model.policy, model.chance)[:-1]
    seen = np.zeros(model.policy.shape, dtype=bool)
    for place in observed.rewards:
        seen[place] = True
    known = np.any(seen & (model.policy > 0), axis=1)
    gaps = np.where(seen, 0.0, weights)
    untried = np.where(known[:, None], gaps, 0.0)
    shares = tried_shares(model, observed)
    apart = (weights * (rewards - observed.usual_reward) ** 2).sum() / weights.sum()
    less = untried - untried.sum(axis=1, keepdims=True) * shares
    return Filled(
        float(model.initial @ table[0, :-1]),
        table,
        weights,
        gains,
        (model.chance * gains).sum(axis=2),
        untried,
        less.sum(axis=0),
        model.policy,
        -(less * model.policy).sum(),
        np.where(known, 0.0, gaps.sum(axis=1)),
        np.sqrt(apart),
        0.0,
    )


@dataclass(frozen=True)
class Error:
    """The variance of an estimate, from the visits, and from gaps; degrees of freedom."""

    visits: float
    gaps: float
    freedom: float

    @property
    def variance(self) -> float:
        return self.visits + self.gaps


def error_of(
    observed: Observed,
    found: Filled,
    *,
    known_transitions: bool = False,
    spread_counts: bool = True,
) -> Error:
    """From what each single visit was worth, W r + g.

    A pair with one visit has the variance of others; the spread of all counts as one more.
    """
    samples = {
        place: found.weights[place] * np.array(seen)
        + (0.0 if known_transitions else found.gains[place][observed.outcomes[place]])
        for place, seen in observed.rewards.items()
        if found.weights[place] > 0
    }
    often = {place: worths for place, worths in samples.items() if len(worths) > 1}
    freedom = sum(len(worths) - 1 for worths in often.values())
    parts = {place: np.var(worths, ddof=1) / len(worths) for place, worths in often.items()}
    worth = {
        place: np.mean(observed.rewards[place]) + found.ahead[place] / found.weights[place]
        for place in samples
    }
    once = [place for place in samples if place not in often]
    alone = 0.0
    if once:
        usual = np.inf if spread_counts else 0.0
        if freedom:
            weight = np.array([found.weights[place] for place in samples])
            means = np.array([worth[place] for place in samples])
            spread = weight @ (means - weight @ means / weight.sum()) ** 2 / weight.sum()
            squares = [
                len(worths) * np.var(worths) / found.weights[place] ** 2
                for place, worths in often.items()
            ]
            usual = sum(squares) / freedom
            if spread_counts:
                usual = (sum(squares) + spread) / (freedom + 1)
        for place in once:
            parts[place] = usual * found.weights[place] ** 2
            alone += parts[place]
    squares = sum(parts[place] ** 2 / (len(samples[place]) - 1) for place in often)
    squares += alone**2 / max(1, freedom)
    total = sum(parts.values())
    degrees = np.inf
    if squares > 0:
        degrees = 1.0 if np.isinf(squares) else max(1.0, total**2 / squares)
    return Error(total, _error_of_gaps(found, worth, parts), degrees)


def _error_of_gaps(
    found: Filled, worth: dict[tuple[int, int], float], parts: dict[tuple[int, int], float]
) -> float:
    """What filled pairs and states may miss."""
    actions = found.weights.shape[1]
    compared: dict[int, list[tuple[float, float, float]]] = {a: [] for a in range(actions)}
    for (s, a), own in worth.items():
        here = [b for b in range(actions) if b != a and (s, b) in worth]
        if here:
            weight = np.array([found.weights[s, b] for b in here])
            others = weight @ [worth[s, b] for b in here] / weight.sum()
            noise = parts[s, a] / found.weights[s, a] ** 2
            noise += sum(parts[s, b] for b in here) / weight.sum() ** 2
            entered = weight.sum() + found.weights[s, a]
            compared[a].append((entered, own - others, noise))
    everything = [row for rows in compared.values() for row in rows]
    weight = np.array([found.weights[place] for place in worth])
    means = np.array(list(worth.values()))
    usual = 0.0
    if everything:
        usual = _mean_square(everything)
    elif weight.size:
        usual = weight @ (means - weight @ means / weight.sum()) ** 2 / weight.sum()
    error = (found.unknown**2).sum() * found.unknown_error**2 + found.adrift_error**2
    own = (actions - 1) / actions
    by_action = 0.0
    for a in range(actions):
        alone = common = usual
        if compared[a]:
            entered, apart, _ = np.array(compared[a]).T
            alone = _mean_square(compared[a])
            mean = entered @ apart / entered.sum()
            common = min(alone, mean**2 + (entered**2).sum() / entered.sum() ** 2 * alone)
        error += alone * (found.untried[:, a] ** 2).sum()
        by_action += own * common * found.missed[a] ** 2
    tilted = (found.tilt * _evident_slope(found, worth, parts)) ** 2
    return float(error + max(by_action, tilted))


def _evident_slope(
    found: Filled, worth: dict[tuple[int, int], float], parts: dict[tuple[int, int], float]
) -> float:
    """The slope of worth by preference within states, if it is three standard errors from zero."""
    rows = []  # state, weight, preference, worth, noise; less what is the mean of the state
    for s in {s for s, _ in worth}:
        here = [a for a in range(found.weights.shape[1]) if (s, a) in worth]
        weight = found.weights[s, here]
        worths = np.array([worth[s, a] for a in here])
        plain = found.policy[s, here]
        preference = plain - weight @ plain / weight.sum()
        worths = worths - weight @ worths / weight.sum()
        noise = np.array([parts[s, a] for a in here])
        rows += [(s, *row) for row in zip(weight, plain, preference, worths, noise, strict=True)]
    if not rows:
        return 0.0
    states, weight, plain, preference, worths, noise = np.array(rows).T

    def slope_of(kept: Floats) -> float:
        square = (kept * weight * preference**2).sum()
        if square <= 1e-9 * (weight * preference**2).sum():
            return np.inf
        return float((kept * weight * preference * worths).sum() / square)

    square = (weight * preference**2).sum()
    if square <= 1e-9 * (weight * plain**2).sum() or np.isinf(noise).any():
        return 0.0
    everywhere = slope_of(np.ones(weight.size))
    left_out = sum((slope_of(states != s) - everywhere) ** 2 for s in set(states))
    doubt = max((preference**2 * noise).sum() / square**2, left_out)
    return everywhere if everywhere**2 > 9 * doubt else 0.0


def _mean_square(rows: list[tuple[float, float, float]]) -> float:
    entered, apart, noise = np.array(rows).T
    return float(max(0.0, entered @ (apart**2 - noise)) / entered.sum())

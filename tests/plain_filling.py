"""Certainty equivalence in plain NumPy, gaps filled: forward by masses, and from raw rewards.

A pair without data takes the mean of the policy's other actions in its state: by their shares, by
the shares over the chance that visits of the state show them, or by how often they were taken,
whichever errs least. Mass on
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
        taken = [int(a) for a in np.flatnonzero(model.policy[s])]
        visits = {a: len(observed.rewards.get((s, a), [])) for a in taken}
        if min(visits.values()) == 0:
            missed = (1 - model.policy[s]) ** sum(visits.values())
            for a in np.flatnonzero(shares[s]):
                shares[s, a] = model.policy[s, a] / (1 - missed[a])
    return _scaled(shares)


def taken_shares(model: PlainModel, observed: Observed) -> Floats:
    """The same where actions of a state with gaps count by their visits."""
    shares = tried_shares(model, observed)
    for s in range(model.states):
        actions = np.flatnonzero(model.policy[s])
        visits = np.array([len(observed.rewards.get((s, int(a)), [])) for a in actions])
        if visits.min() == 0:
            shares[s, actions] = visits
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
    unknown: Floats  # [S] weight of states without data
    unknown_error: float
    adrift_error: float
    policy: Floats  # [S, A]
    slope: float = 0.0  # what is added for each unit of preference that standing in loses
    slope_error: float = 0.0  # of the value


def filled(model: PlainModel, data: Dataset) -> Filled:
    """The value from whole episodes."""
    return fill(model, Observed.of(model, data))


def fill(model: PlainModel, observed: Observed) -> Filled:
    """In that way of the three which leaves the smallest error, and then corrected."""
    shares, found, left = tried_shares(model, observed), None, np.inf
    for way in (tried_shares, balanced_shares, taken_shares):
        other = fill_by(way(model, observed), model, observed)
        error = error_of(observed, all_amiss(other), spread_counts=False).variance
        if found is None or error < (1 - 1e-9) * left:
            shares, found, left = way(model, observed), other, error
    assert found is not None
    return corrected(found, fill_by(shares, model, observed, slope=1.0), observed)


def all_amiss(found: Filled) -> Filled:
    """With whatever is weighed too little or too much in states with gaps."""
    apart = found.weights.sum(axis=1, keepdims=True) * found.policy - found.weights
    amiss = np.where(found.untried.sum(axis=1, keepdims=True) > 0, abs(apart), 0.0)
    missed = np.maximum(found.untried.sum(axis=0), abs(found.missed))
    return replace(found, untried=amiss, missed=missed)


def corrected(found: Filled, more: Filled, observed: Observed) -> Filled:
    """With the slope of preference that the result shows, too; `more` has a slope of 1."""
    slope, doubt = evident_slope(found, more, observed)
    each = more.value - found.value
    return replace(
        found,
        value=found.value + slope * each,
        table=found.table + slope * (more.table - found.table),
        gains=found.gains + slope * (more.gains - found.gains),
        ahead=found.ahead + slope * (more.ahead - found.ahead),
        slope=slope,
        slope_error=doubt * each,
    )


def preference_lost(shares: Floats, model: PlainModel, observed: Observed) -> Floats:
    """How much less preferred actions are than those which stand in for them, [S]."""
    lost = ((model.policy - shares) * model.policy).sum(axis=1)
    for s in range(model.states):
        if all((s, int(a)) in observed.rewards for a in np.flatnonzero(model.policy[s])):
            lost[s] = 0.0
    return np.asarray(lost)


def fill_by(shares: Floats, model: PlainModel, observed: Observed, *, slope: float = 0.0) -> Filled:
    """Mass forward, step by step; then values backward.

    A step of a state with gaps pays `slope` times the mean preference that is lost there.
    """
    known = shares.sum(axis=1) > 0
    lost = slope * preference_lost(shares, model, observed)
    reward = np.zeros(model.policy.shape)
    chance = np.zeros(model.chance.shape)
    for place, seen in observed.rewards.items():
        reward[place] = np.mean(seen) + lost[place[0]]
        chance[place] = np.bincount(observed.outcomes[place], minlength=model.states + 1) / len(
            seen
        )
    usual, going_on = observed.usual_reward, observed.going_on(model.states)
    usual += float(np.mean([lost[s] for (s, _), seen in observed.rewards.items() for _ in seen]))
    mass, lost_before, value = model.initial.copy(), 0.0, 0.0
    occupied = np.zeros((model.horizon, model.states))
    adrift = np.zeros(model.horizon)
    unknown = np.zeros(model.states)
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
        *(value, table, weights, gains, ahead, untried, less.sum(axis=0)),
        *(unknown, unknown_error, adrift_error, model.policy),
    )


def filled_rewards(model: PlainModel, data: Dataset, slope: float = 0.0) -> Floats:
    """Mean rewards [S, A], those of pairs without data filled, for transitions that are known.

    These pay `slope` times as much more as they are preferred to those that stand in.
    """
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
                if shares[s].any():
                    means[s, a] += slope * (model.policy[s, a] - shares[s] @ model.policy[s])
    return means


def filled_where_known(model: PlainModel, data: Dataset) -> Filled:
    """The same with the true transitions, so that rewards alone have gaps."""
    found, more = (_filled_where_known(model, data, slope) for slope in (0.0, 1.0))
    return corrected(found, more, Observed.of(model, data))


def _filled_where_known(model: PlainModel, data: Dataset, slope: float) -> Filled:
    observed = Observed.of(model, data)
    rewards = filled_rewards(model, data, slope)
    table = np.zeros((model.horizon + 1, model.states + 1))
    for t in reversed(range(model.horizon)):
        worth = rewards + model.discount * model.chance @ table[t + 1]
        table[t, :-1] = (model.policy * worth).sum(axis=1)
    weights = np.zeros(model.policy.shape)
    mass = model.initial
    for t in range(model.horizon):
        pairs = model.discount**t * mass[:, None] * model.policy
        weights += pairs
        mass = np.einsum("s,sa,sap->p", mass, model.policy, model.chance)[:-1]
    seen = np.zeros(model.policy.shape, dtype=bool)
    for place in observed.rewards:
        seen[place] = True
    known = np.any(seen & (model.policy > 0), axis=1)
    gaps = np.where(seen, 0.0, weights)
    untried = np.where(known[:, None], gaps, 0.0)
    shares = tried_shares(model, observed)
    plain = filled_rewards(model, data)
    apart = (weights * (plain - observed.usual_reward) ** 2).sum() / weights.sum()
    less = untried - untried.sum(axis=1, keepdims=True) * shares
    return Filled(
        float(model.initial @ table[0, :-1]),
        table,
        weights,
        np.zeros(model.chance.shape),
        np.zeros(model.policy.shape),
        untried,
        less.sum(axis=0),
        np.where(known, 0.0, gaps.sum(axis=1)),
        np.sqrt(apart),
        0.0,
        model.policy,
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


@dataclass(frozen=True)
class _Visits:
    """What single visits of pairs are worth, W r + g."""

    often: dict[tuple[int, int], Floats]  # of pairs with more visits than one
    once: list[tuple[int, int]]
    worth: dict[tuple[int, int], float]  # means, in units of weight
    seen: float  # sum of squares within pairs, in units of weight
    freedom: int

    @classmethod
    def of(cls, observed: Observed, found: Filled) -> "_Visits":
        samples = {
            place: found.weights[place] * np.array(seen)
            + found.gains[place][observed.outcomes[place]]
            for place, seen in observed.rewards.items()
            if found.weights[place] > 0
        }
        often = {place: worths for place, worths in samples.items() if len(worths) > 1}
        return cls(
            often,
            [place for place in samples if place not in often],
            {
                place: np.mean(observed.rewards[place]) + found.ahead[place] / found.weights[place]
                for place in samples
            },
            sum(
                len(worths) * np.var(worths) / found.weights[place] ** 2
                for place, worths in often.items()
            ),
            sum(len(worths) - 1 for worths in often.values()),
        )

    def errors(self, found: Filled, usual: float) -> dict[tuple[int, int], float]:
        """What pairs add to the variance, if single visits vary as is usual."""
        parts = {
            place: np.var(worths, ddof=1) / len(worths) for place, worths in self.often.items()
        }
        return parts | {place: usual * found.weights[place] ** 2 for place in self.once}

    def errors_wherever_zero_is(self, found: Filled) -> dict[tuple[int, int], float]:
        return self.errors(found, self.seen / max(1, self.freedom))


def error_of(observed: Observed, found: Filled, *, spread_counts: bool = True) -> Error:
    """A pair with one visit has the variance of others; the spread of all counts as one more."""
    visits = _Visits.of(observed, found)
    parts = visits.errors_wherever_zero_is(found)
    gaps = _error_of_gaps(found, visits.worth, parts)
    if visits.once and spread_counts:
        usual = np.inf
        if visits.freedom:
            weight = np.array([found.weights[place] for place in visits.worth])
            means = np.array(list(visits.worth.values()))
            spread = weight @ (means - weight @ means / weight.sum()) ** 2 / weight.sum()
            usual = (visits.seen + spread) / (visits.freedom + 1)
        parts = visits.errors(found, usual)
    squares = sum(parts[place] ** 2 / (len(worths) - 1) for place, worths in visits.often.items())
    squares += sum(parts[place] for place in visits.once) ** 2 / max(1, visits.freedom)
    total = sum(parts.values())
    degrees = np.inf
    if squares > 0:
        degrees = 1.0 if np.isinf(squares) else max(1.0, total**2 / squares)
    return Error(total, gaps, degrees)


def _error_of_gaps(
    found: Filled, worth: dict[tuple[int, int], float], parts: dict[tuple[int, int], float]
) -> float:
    """What filled pairs and states may miss, besides what preference explains."""
    actions = found.weights.shape[1]
    worth = {place: own - found.slope * found.policy[place] for place, own in worth.items()}
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
    taken = int(np.count_nonzero((found.weights + found.untried).any(axis=0)))
    own = (taken - 1) / max(1, taken)
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
    return float(error + by_action + found.slope_error**2)


def evident_slope(found: Filled, more: Filled, observed: Observed) -> tuple[float, float]:
    """The slope of worth by preference within states, and its standard error.

    That which is found where it was added; `more` says what adding 1 does. Zeros, if it is not
    three standard errors from zero.
    """
    visits = _Visits.of(observed, found)
    added = _Visits.of(observed, more).worth
    parts = visits.errors_wherever_zero_is(found)
    rows = []  # state, weight, preference, and less the mean of the state; worths, noise
    for s in {s for s, _ in visits.worth}:
        here = [(s, a) for a in range(found.weights.shape[1]) if (s, a) in visits.worth]
        plain, weight = (
            np.array([of[place] for place in here]) for of in (found.policy, found.weights)
        )
        preference = plain - weight @ plain / weight.sum()
        columns = [[of[place] for place in here] for of in (visits.worth, added, parts)]
        rows += [(s, *row) for row in zip(weight, plain, preference, *columns, strict=True)]
    if not rows or found.untried.sum() == 0:
        return 0.0, 0.0
    states, weight, plain, preference, worths, others, noise = np.array(rows).T

    def slope_of(kept: Floats) -> float:
        square = (kept * weight * preference**2).sum()
        before, after = (
            (kept * weight * preference * each).sum() / square for each in (worths, others)
        )
        return float(before / (1.0 - (after - before)))

    def lever_of(kept: Floats) -> float:
        return float((kept * weight * preference * (preference - (others - worths))).sum())

    square, lever = (weight * preference**2).sum(), lever_of(np.ones(weight.size))
    if square <= 1e-9 * (weight * plain**2).sum() or lever <= 1e-9 * square:
        return 0.0, 0.0
    slope = slope_of(np.ones(weight.size))
    left_out = 0.0
    for s in set(states):
        if lever_of(states != s) <= 1e-9 * lever:
            return 0.0, 0.0
        left_out += (slope_of(states != s) - slope) ** 2
    doubt = max((preference**2 * noise).sum() / lever**2, left_out)
    return (slope, float(np.sqrt(doubt))) if slope**2 > 9 * doubt else (0.0, 0.0)


def _mean_square(rows: list[tuple[float, float, float]]) -> float:
    entered, apart, noise = np.array(rows).T
    return float(max(0.0, entered @ (apart**2 - noise)) / entered.sum())

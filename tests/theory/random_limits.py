"""Random costs and limits of collection, for the random models: each kind alone, and together."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revar import (
    Best,
    Limits,
    Question,
    TabularMDP,
    occupancy,
    one_step_costs,
    policy_value,
)
from revar.theory.proportions import fallback_shares
from tests.plain_model import Floats, PlainModel
from tests.theory.convex_program import Conditions
from tests.theory.random_models import Booleans, entered_states, random_model
from tests.theory.random_questions import random_policies

KINDS = ("cost", "forbidden", "ratio", "floor", "sums", "together", "best")


@dataclass(frozen=True, eq=False)
class LimitedCase:
    """A model, a question, what is asked of `optimal_flow`, and the same in plain arrays."""

    mdp: TabularMDP
    question: Question
    known: bool
    cost: Any
    limits: Limits | None
    conditions: Conditions

    def behavior_keeps_limits(self, behavior: Floats) -> bool:
        """Whether shares, forbidden pairs and sums are kept to 1e-9 of what is limited."""
        flow = occupancy(self.mdp, behavior)
        entered = flow.sum(axis=2) > 0
        kept = [True]
        if self.conditions.forbidden is not None:
            kept.append(not behavior[:, self.conditions.forbidden][entered.any(axis=1)].any())
        if self.conditions.caps is not None:
            kept.append((behavior <= self.conditions.caps * (1 + 1e-9) + 1e-15)[entered].all())
        for amounts, most in self.conditions.sums:
            size = max(abs(most), float((np.abs(amounts) * flow).sum()))
            kept.append(float((amounts * flow).sum()) <= most + 1e-9 * size)
        return all(kept)


def limited_case(kind: str, number: int) -> LimitedCase:
    """Case `number` of a kind; kinds of models and of knowledge take turns."""
    rng = np.random.default_rng([number, KINDS.index(kind)])
    known = number % 2 == 1
    model = random_model(number)
    question = Question.of_value(model.policy)
    cost = rng.exponential(size=model.policy.shape) * (rng.random(model.policy.shape) < 0.7) + 0.05
    ratio = float(rng.choice([1.0, 1.3, 2.0, 5.0]))
    asked: Any = None
    limits: Limits | None = None
    if kind == "cost":
        asked = "steps" if number % 4 == 0 else cost
        plain = Conditions(cost=np.ones(cost.shape) if number % 4 == 0 else cost)
    elif kind == "forbidden":
        seed = number
        while (table := _forbidden(model, known, rng)) is None:
            seed += 1000
            model = random_model(seed)
        question = Question.of_value(model.policy)
        limits = Limits(forbidden=[(int(s), int(a)) for s, a in np.argwhere(table)])
        plain = Conditions(forbidden=table)
    elif kind == "ratio":
        limits, plain = _ratio(question, ratio)
    elif kind == "floor":
        limits, plain = _floor(model, rng.uniform(0.0, 0.8))
    elif kind == "sums":
        limits, plain = _sums(model, rng)
    elif kind == "best":
        question, asked = Best(random_policies(model, number, 3)), cost
        limits, plain = _ratio(question, 4.0)
        plain = replace(plain, cost=cost)
    else:
        asked, limits = cost, Limits(max_ratio=ratio, min_return="95%")
        plain = replace(_ratio(question, ratio)[1], cost=cost, sums=(_share(model, 0.95),))
    return LimitedCase(model.mdp(), question, known, asked, limits, plain)


def best_reply_value(model: PlainModel, amounts: Floats) -> float:
    """The largest expected sum of amounts [L, S, A] over all behaviors, by backward induction."""
    values = np.zeros(model.states + 1)
    for table in amounts[::-1]:
        values[:-1] = (table + model.chance @ values).max(axis=1)
    return float(model.initial @ values[:-1])


def _forbidden(model: PlainModel, known: bool, rng: np.random.Generator) -> Booleans | None:
    """Pairs that the estimate can do without, one of them at least within reach; or None."""
    costs = one_step_costs(model.mdp(), model.policy, known_transitions=known)
    table = (costs == 0) & (rng.random(costs.shape) < 0.6)
    table[np.arange(model.states), rng.integers(model.actions, size=model.states)] = False
    reached = entered_states(model, ~table)
    matters = bool((table & reached[:, None]).any())
    return table if matters and reached[costs.any(axis=1)].all() else None


def _ratio(question: Question, ratio: float) -> tuple[Limits, Conditions]:
    caps = np.minimum(1.0, ratio * fallback_shares(question.policy))
    return Limits(max_ratio=ratio), Conditions(caps=caps)


def _floor(model: PlainModel, part: float) -> tuple[Limits, Conditions]:
    """A floor between the target policy's value and the largest value of all."""
    mdp = model.mdp()
    value = policy_value(mdp, model.policy)
    rewards = _discounted(mdp)
    floor = value + part * (best_reply_value(model, rewards) - value)
    return Limits(min_return=floor), Conditions(sums=((-rewards, -floor),))


def _share(model: PlainModel, share: float) -> tuple[Floats, float]:
    """The floor at a share of the target policy's value, as a limit on a sum."""
    mdp = model.mdp()
    value = policy_value(mdp, model.policy)
    return -_discounted(mdp), -(value - (1.0 - share) * abs(value))


def _sums(model: PlainModel, rng: np.random.Generator) -> tuple[Limits, Conditions]:
    """Two sums: one below the target policy's, one above it."""
    mdp = model.mdp()
    flow = occupancy(mdp, model.policy)
    below = rng.uniform(0.1, 0.6)
    sums = []
    for part in (below, -0.5):
        table = rng.exponential(size=model.policy.shape)
        amounts = np.repeat(table[None], mdp.horizon, axis=0)
        on_policy = float((amounts * flow).sum())
        least = -best_reply_value(model, -amounts) if part > 0 else 0.0
        sums.append((amounts, on_policy - part * (on_policy - least)))
    limits = Limits(max_sums=[(amounts[0], most) for amounts, most in sums])
    return limits, Conditions(sums=tuple(sums))


def _discounted(mdp: TabularMDP) -> Floats:
    """What visits return, [L, S, A]."""
    now = mdp.discount ** np.arange(mdp.horizon)
    return np.asarray(now[:, None, None] * mdp.reward_mean)

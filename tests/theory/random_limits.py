"""Random costs and limits of collection, for the random models: each kind alone, and together."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar import Limits, Question, TabularMDP, occupancy, one_step_costs, policy_value
from revar.model.question import Best
from revar.model.task import check_question
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
    seed = number
    if kind == "forbidden":
        while (found := _forbidden(random_model(seed), known, rng)) is None:
            seed += 1000
        model = random_model(seed)
        limits = Limits(forbidden=[(int(s), int(a)) for s, a in np.argwhere(found)])
        question = Question.of_value(model.policy)
        plain = Conditions(forbidden=found)
        return LimitedCase(model.mdp(), question, known, None, limits, plain)
    model = random_model(seed)
    mdp = model.mdp()
    cost = rng.exponential(size=model.policy.shape) * (rng.random(model.policy.shape) < 0.7) + 0.05
    if kind == "cost":
        steps = number % 4 == 0
        plain = Conditions(cost=np.ones(cost.shape) if steps else cost)
        question = Question.of_value(model.policy)
        return LimitedCase(mdp, question, known, "steps" if steps else cost, None, plain)
    if kind == "best":
        question = Best(random_policies(model, seed, 3))
        limits, plain = _ratio(question, 4.0)
        plain = Conditions(cost=cost, caps=plain.caps)
        return LimitedCase(mdp, question, known, cost, limits, plain)
    question = Question.of_value(model.policy)
    ratio = float(rng.choice([1.0, 1.3, 2.0, 5.0]))
    if kind == "ratio":
        return LimitedCase(mdp, question, known, None, *_ratio(question, ratio))
    if kind == "floor":
        return LimitedCase(mdp, question, known, None, *_floor(model, mdp, rng.uniform(0.0, 0.8)))
    if kind == "sums":
        return LimitedCase(mdp, question, known, None, *_sums(model, mdp, rng))
    value = policy_value(mdp, model.policy)
    caps = _ratio(question, ratio)[1].caps
    limits = Limits(max_ratio=ratio, min_return="95%")
    sums = ((-_discounted(mdp, mdp.reward_mean), -(value - 0.05 * abs(value))),)
    return LimitedCase(
        mdp, question, known, cost, limits, Conditions(cost=cost, caps=caps, sums=sums)
    )


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


def _floor(model: PlainModel, mdp: TabularMDP, part: float) -> tuple[Limits, Conditions]:
    """A floor between the target policy's value and the largest value of all."""
    value = policy_value(mdp, model.policy)
    rewards = _discounted(mdp, mdp.reward_mean)
    floor = value + part * (best_reply_value(model, rewards) - value)
    return Limits(min_return=floor), Conditions(sums=((-rewards, -floor),))


def _sums(
    model: PlainModel, mdp: TabularMDP, rng: np.random.Generator
) -> tuple[Limits, Conditions]:
    """Two sums, kept by the target policy, or by what is between it and the best of the first."""
    question = check_question(mdp, model.policy)
    flow = occupancy(mdp, question.policy)
    limits, plain = [], []
    for part in (rng.uniform(0.1, 0.6), 0.0):
        table = rng.exponential(size=model.policy.shape)
        amounts = np.repeat(table[None], mdp.horizon, axis=0)
        on_policy = float((amounts * flow).sum())
        least = -best_reply_value(model, -amounts)
        most = on_policy - part * (on_policy - least) if not limits else 1.5 * on_policy
        limits.append((table, most))
        plain.append((amounts, most))
    return Limits(max_sums=limits), Conditions(sums=tuple(plain))


def _discounted(mdp: TabularMDP, table: Floats) -> Floats:
    return np.asarray(mdp.discount ** np.arange(mdp.horizon)[:, None, None] * table)

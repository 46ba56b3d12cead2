"""Limits of a collection in an environment: read, and refused where they cannot be kept."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from revar.collection import Collection
from revar.collection.states import States
from revar.environments.observations import StateEncoding
from revar.errors import InputError
from revar.evaluation.amounts import StepAmounts, describe
from revar.evaluation.target_policies import TargetPolicies, TargetPolicy
from revar.model.amounts import COST
from revar.model.arrays import FloatArray
from revar.model.budget import Budget
from revar.model.limits import Limits
from revar.model.mdp import TabularMDP
from revar.model.question import Combinations, Question
from revar.model.structure import reachable_layers
from revar.model.task import check_question
from revar.model.validation import as_floats
from revar.theory.restrictions import Restrictions


def encode_limits(limits: Limits, observations: StateEncoding, actions: int) -> Limits:
    """The limits with forbidden pairs named by the states that observations become."""
    forbidden = limits.forbidden
    if isinstance(forbidden, np.ndarray):
        wanted = (*observations.shape, actions)
        if forbidden.shape != wanted:
            raise InputError(
                f"forbidden has shape {forbidden.shape}; for these observations and actions it is "
                f"{wanted}"
            )
        places = np.argwhere(forbidden).tolist()
        pairs = [(observations.key_at(tuple(place)), action) for *place, action in places]
        return replace(limits, forbidden=pairs)
    encoded: list[Any] = []
    for entry in forbidden or ():
        seen, action = entry if isinstance(entry, tuple) else (None, entry)
        if action >= actions:
            raise InputError(f"forbidden names action {action}; there are {actions} actions")
        if not isinstance(entry, tuple):
            encoded.append(action)
            continue
        try:
            encoded.append((observations.key(seen), action))
        except Exception as error:
            raise InputError(
                f"forbidden names observation {seen!r}, which does not belong to "
                f"{observations.space}"
            ) from error
    return limits if forbidden is None else replace(limits, forbidden=encoded)


def check_beforehand(
    mdp: TabularMDP | None,
    collection: Collection,
    target: TargetPolicy | TargetPolicies,
    amounts: StepAmounts,
) -> None:
    """Refuse what cannot be kept or paid for, as far as it is known before anything is collected.

    Where the model is known, that is everything.
    """
    limits, budget = collection.limits, collection.budget
    if budget is None or (limits.none and not amounts.names):
        return
    if mdp is None:
        refuse_needed(collection.states, target, None)
        return
    model = TabularMDP(
        *(mdp.transitions, mdp.reward_mean, mdp.reward_std, mdp.initial),
        *(collection.horizon, collection.discount),
    )
    asked = question_on(model, target, collection.combinations)
    refuse_needed(collection.states, target, reached_states(model, asked.policies))
    refuse_impossible(model, asked, budget, limits, amounts)


def refuse_needed(
    states: States, target: TargetPolicy | TargetPolicies, met: Iterable[Any] | None
) -> None:
    """Refuse to forbid what a target policy takes, as far as that can be told beforehand.

    `met` are the states that the policies reach, where they are known. Otherwise the policy is
    asked about every pair that is named; of an action that is forbidden everywhere arrays tell,
    and with functions it is noticed when a state is met.
    """
    for entry in states.limits.forbidden or ():
        named, action = entry if isinstance(entry, tuple) else (None, entry)
        if named is None:
            candidates = target.states_taking(action) if met is None else met
        else:
            candidates = [named] if met is None or named in met else []
        for state in candidates:
            rows = target(state) if isinstance(target, TargetPolicies) else (target(state),)
            if not any(np.size(row) > action and row[action] > 0 for row in rows):
                continue
            try:
                states.check(state, None, target(state))
            except InputError as error:
                if met is not None or named is not None or target.takes_everywhere(action):
                    raise
                way_out = "if no episode comes there, give the policy another action there"
                raise InputError(f"{error}; {way_out}") from None


def refuse_impossible(
    mdp: TabularMDP, asked: Question, budget: Budget, limits: Limits, amounts: StepAmounts
) -> None:
    """Refuse limits that no behavior keeps, and costs of nothing, where the model is known."""
    known = amounts.tables(list(range(mdp.states)), mdp.actions)
    sums = [
        replace(limit, amounts=known[limit.name]) for limit in limits.sums if limit.name in known
    ]
    cost: Any = None if budget.by_episode else "steps"
    if budget.unit == "cost":
        cost = known.get(COST)
    Restrictions(mdp, asked, cost, replace(limits, max_sums=sums))


def question_on(
    mdp: TabularMDP, target: TargetPolicy | TargetPolicies, combinations: Combinations
) -> Question:
    """The question over the states of a known model."""
    rows = [np.atleast_2d(as_floats(target(state), "policy")) for state in range(mdp.states)]
    return check_question(mdp, Question.about(np.stack(rows, axis=1), combinations))


def reached_states(mdp: TabularMDP, policies: FloatArray) -> set[int]:
    """The states that any of the policies [J, S, A] can enter."""
    arrays = mdp.arrays
    every = [
        reachable_layers(arrays.outcomes, arrays.initial, policy > 0, mdp.horizon).states
        for policy in policies
    ]
    return set(np.concatenate(every).tolist())


def describe_limits(limits: Limits) -> str | None:
    """The limits as a file has them, to be compared with those of a run that goes on from it."""
    if limits.none:
        return None
    parts = [f"confidence {limits.confidence:g}"]
    if limits.forbidden:
        parts.append(f"forbidden {sorted(limits.forbidden, key=repr)}")
    if limits.max_ratio is not None:
        parts.append(f"max_ratio {limits.max_ratio:g}")
    if limits.min_return is not None:
        parts.append(f"min_return {limits.min_return}")
    for limit in limits.sums:
        parts.append(f"{limit.name} at most {limit.most!r} by {describe(limit.amounts)}")
    return ", ".join(parts)

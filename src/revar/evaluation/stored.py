"""A policy's value from stored episodes alone; one dataset serves any number of policies."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from revar.collection import Collection
from revar.datasets.files import Conditions, dataset_of, load_collected
from revar.environments.observations import Bins, StateEncoding, encoding_of, place_of
from revar.environments.opening import open_environment
from revar.errors import InputError
from revar.evaluation.amounts import StepAmounts
from revar.evaluation.comparison import ComparisonResult, JointCheckpoint
from revar.evaluation.findings import TableFindings
from revar.evaluation.goals import ComparisonGoal, ValueGoal
from revar.evaluation.limits import encode_limits
from revar.evaluation.result import EvaluationResult
from revar.evaluation.returns.stored import evaluate_episodes
from revar.evaluation.target_policies import (
    TargetPolicies,
    check_policies,
    name_policy,
    target_policy_of,
)
from revar.model.amounts import STEPS
from revar.model.budget import Budget
from revar.model.episodes import Episodes
from revar.model.limits import Limits, check_limits
from revar.model.trajectory import Dataset
from revar.model.validation import as_floats
from revar.policies.forms import (
    OrAction,
    SoftTable,
    ask_one_by_one,
    fit_table,
    load_policy,
    uniform_policy,
)
from revar.policies.interface import PolicyLike, ask_policy, refuse_class


@overload
def evaluate_data(
    dataset: Dataset | str | Path,
    policy: Mapping[str, PolicyLike],
    *,
    horizon: int,
    discount: float = ...,
    confidence: float = ...,
    env: Any = ...,
    bins: Bins | None = ...,
    env_options: dict[str, Any] | None = ...,
    indifference: float | None = ...,
) -> ComparisonResult: ...
@overload
def evaluate_data(
    dataset: Dataset | Episodes | str | Path,
    policy: PolicyLike | None,
    *,
    horizon: int,
    discount: float = ...,
    confidence: float = ...,
    env: Any = ...,
    bins: Bins | None = ...,
    env_options: dict[str, Any] | None = ...,
    method: str | None = ...,
    critics: Any = ...,
    resets: int | None = ...,
) -> EvaluationResult: ...
def evaluate_data(
    dataset: Dataset | Episodes | str | Path,
    policy: Any,
    *,
    horizon: int,
    discount: float = 1.0,
    confidence: float = 0.95,
    env: Any = None,
    bins: Bins | None = None,
    env_options: dict[str, Any] | None = None,
    indifference: float | None = None,
    method: str | None = None,
    critics: Any = None,
    resets: int | None = None,
) -> Any:
    """The value of `policy` by certainty equivalence, whatever behavior collected the episodes.

    Whole Episodes, as methods "critic" and "mean" keep them, tell the value of the policy that
    played them.

    Parameters
    ----------
    dataset
        The episodes, or the file that they were saved in.
    policy
        With `env` as in `evaluate`. Without it, a function is called with the states' labels, and
        an array is indexed by them. A mapping from names to policies compares them, as `compare`
        does. Of whole episodes None is the policy that played them.
    horizon
        Steps after which an episode is cut.
    discount
        Of what comes a step later.
    confidence
        Of the interval.
    env
        The environment of the episodes, or its name.
    bins
        Those that made a table of continuous observations.
    env_options
        For opening the environment.
    indifference
        In a comparison, a difference that does not matter.
    method, critics, resets
        For whole episodes, as in `evaluate`; `resets` need `env`.
    """
    returns = {"method": method, "critics": critics, "resets": resets}
    whole, known = _whole_episodes(dataset)
    if whole is not None:
        if isinstance(policy, Mapping):
            raise InputError(
                "whole episodes tell the value of the policy that played them; evaluate each "
                "policy on its own episodes"
            )
        return evaluate_episodes(
            whole,
            known,
            policy,
            horizon=horizon,
            discount=discount,
            confidence=confidence,
            env=env,
            env_options=env_options,
            **returns,
        )
    for name in (name for name, given in returns.items() if given is not None):
        raise InputError(f"{name} is for whole episodes; the dataset has states")
    data = dataset_of(dataset, "dataset")
    budget = Budget(max(1, len(data)))
    goal: ValueGoal | ComparisonGoal
    if isinstance(policy, Mapping):
        policies = check_policies(policy)
        names = tuple(policies)
        goal = ComparisonGoal.of(names, "best", confidence, None, indifference, budget)
    else:
        if indifference is not None:
            raise InputError("indifference is for the comparison of several policies")
        policies = {"": policy}
        goal = ValueGoal(confidence, None, budget)
    collection = learn_stored(data, policies, horizon, discount, env, bins, env_options)
    return goal.result(
        [JointCheckpoint(len(data), collection.joint_estimate(confidence), float(len(data)))],
        dataset=data,
        findings=TableFindings(statistics=collection.statistics, task=collection.task),
        strategy="stored data",
        seed=collection.seed,
        stopped="budget",
    )


def _whole_episodes(source: Any) -> tuple[Episodes | None, Conditions | None]:
    """Whole episodes, with their conditions where they are known; None for a table's data."""
    known = None
    if isinstance(source, str | Path):
        source, known = load_collected(source)
    return (source, known) if isinstance(source, Episodes) else (None, None)


def learn_stored(
    data: Dataset,
    policies: Mapping[str, Any],
    horizon: int,
    discount: float,
    env: Any,
    bins: Bins | None,
    env_options: dict[str, Any] | None = None,
    limits: Limits | None = None,
) -> Collection:
    """A collection that has learned from stored episodes and knows the policies in their states.

    With `limits`, also what steps add to limited sums.
    """
    if len(data) == 0:
        raise InputError("the dataset has no episodes")
    target: Any
    encoding = None
    if env is None:
        targets = {}
        for name, policy in policies.items():
            with name_policy(name):
                targets[name] = target_by_label(policy, data)
        target = TargetPolicies(targets) if len(targets) > 1 else next(iter(targets.values()))
    else:
        opened = open_environment(env, env_options)
        target = target_policy_of(opened, policies, bins)
        encoding = encoding_of(opened, bins)
        if opened is not env:
            opened.close()
    rows = target(data.label_of(int(data.states[0])))
    sizes = [np.size(row) for row in (rows if len(policies) > 1 else [rows])]
    for name, size in zip(policies, sizes, strict=True):
        if size != sizes[0]:
            raise InputError(
                f"policy {name!r} has {size} actions, and policy {next(iter(policies))!r} has "
                f"{sizes[0]}"
            )
    if data.actions.max() >= sizes[0]:
        raise InputError(
            f"action {data.actions.max()} in the data; the policy has {sizes[0]} actions"
        )
    actions, kept = max(sizes[0], 1), check_limits(limits)
    if not kept.none:
        kept, data = _note_amounts(data, kept, encoding, actions)
    collection = Collection(
        "on-policy",
        horizon=horizon,
        discount=discount,
        actions=actions,
        limits=kept,
        seed=0,
        names=tuple(policies),
    )
    collection.learn_from(data, target)
    return collection


def _note_amounts(
    data: Dataset, limits: Limits, encoding: StateEncoding | None, actions: int
) -> tuple[Limits, Dataset]:
    """The limits by label, and the data with what its steps add to their sums."""
    if encoding is None:
        arrays = [limits.forbidden, *(limit.amounts for limit in limits.sums)]
        shapes = [each.shape[:-1] for each in arrays if isinstance(each, np.ndarray)]
        shape = shapes[0] if shapes else ()
        first = data.first_label or (0,) * len(shape)
        encoding = StateEncoding(_itself, _itself, shape, first, "the data", single=len(shape) == 1)
    limits = encode_limits(limits, encoding, actions)
    reported = {}
    for limit in limits.sums:
        if isinstance(limit.amounts, str) and limit.amounts != STEPS:
            if limit.amounts not in data.amounts:
                known = ", ".join(data.amounts) or "none"
                raise InputError(
                    f"the data does not have the {limit.amounts!r} of its steps; it has {known}"
                )
            reported[limit.name] = data.amounts[limit.amounts]
    sources = StepAmounts(Budget(1), None, limits, encoding, actions)
    return limits, sources.add_known(replace(data, amounts=reported))


def _itself(label: Any) -> Any:
    return label


def target_by_label(policy: Any, data: Dataset) -> Any:
    """The policy as a function of a state's label."""
    if isinstance(policy, str | Path):
        policy = load_policy(str(policy))
    if isinstance(policy, str):
        if data.action_count is None:
            raise InputError(
                "the data does not say how many actions there are, so that 'uniform' needs env=... "
                "or an array"
            )
        return uniform_policy(data.action_count)
    refuse_class(policy)
    if isinstance(policy, SoftTable):
        policy = policy.table
    count = data.action_count
    if callable(policy):
        single = ask_one_by_one(policy)
        return partial(ask_policy, single if count is None else OrAction(single, count))
    table = as_floats(policy, "policy")
    if count is not None and data.first_label is not None and table.ndim == len(data.first_label):
        table = fit_table(policy, table, table.shape, count)

    def look_up(label: Any) -> Any:
        place = place_of(label, data.first_label)
        if place is None:
            raise InputError(f"state {label!r} has no place in an array; give env=... as well")
        if len(place) != table.ndim - 1 or any(
            index >= size for index, size in zip(place, table.shape, strict=False)
        ):
            raise InputError(f"the policy of shape {table.shape} has no state {label!r}")
        return table[place]

    return look_up

"""A policy's value from stored episodes alone; one dataset serves any number of policies."""

from pathlib import Path
from typing import Any

import numpy as np

from revar.collection import Collection
from revar.datasets.files import dataset_of
from revar.environments.observations import Bins, place_of
from revar.environments.opening import open_environment
from revar.errors import InputError
from revar.evaluation.checkpoints import quantile
from revar.evaluation.policies import SoftTable, load_policy, target_policy_of, uniform_policy
from revar.evaluation.result import Checkpoint, EvaluationResult
from revar.model.trajectory import Dataset
from revar.model.validation import as_floats, check_confidence


def evaluate_data(
    dataset: Dataset | str | Path,
    policy: Any,
    *,
    horizon: int,
    discount: float = 1.0,
    confidence: float = 0.95,
    env: Any = None,
    bins: Bins | None = None,
    env_options: dict[str, Any] | None = None,
) -> EvaluationResult:
    """The value of `policy` by certainty equivalence, whatever behavior collected the episodes.

    With `env`, an environment or its name, the policy is given as in `evaluate`. Without it, a
    function is called with the states' labels, and an array is indexed by them.
    """
    data = dataset_of(dataset, "dataset")
    check_confidence(confidence)
    collection = learn_stored(data, policy, horizon, discount, env, bins, env_options)
    estimate = collection.estimate(confidence)
    return EvaluationResult(
        estimate=estimate,
        dataset=data,
        statistics=collection.statistics,
        task=collection.task,
        strategy="stored data",
        seed=collection.seed,
        quantile=quantile(confidence),
        checkpoints=(Checkpoint(len(data), estimate),),
        stopped="budget",
    )


def learn_stored(
    data: Dataset,
    policy: Any,
    horizon: int,
    discount: float,
    env: Any,
    bins: Bins | None,
    env_options: dict[str, Any] | None = None,
) -> Collection:
    """A collection that has learned from stored episodes and knows the policy in their states."""
    if len(data) == 0:
        raise InputError("the dataset has no episodes")
    if env is None:
        target = target_by_label(policy, data)
    else:
        opened = open_environment(env, env_options)
        target = target_policy_of(opened, policy, bins)
        if opened is not env:
            opened.close()
    first = np.asarray(target(data.label_of(int(data.states[0]))))
    collection = Collection(
        "on-policy", horizon=horizon, discount=discount, actions=max(first.size, 1), seed=0
    )
    if data.actions.max() >= first.size:
        raise InputError(
            f"action {data.actions.max()} in the data; the policy has {first.size} actions"
        )
    collection.learn_from(data, target)
    return collection


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
    if isinstance(policy, SoftTable):
        policy = policy.table
    if callable(policy):
        return policy
    table = as_floats(policy, "policy")

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

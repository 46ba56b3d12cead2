"""Random questions about several policies, for the random models."""

from dataclasses import replace

import numpy as np

from revar import Best, Difference, Question, Values
from revar.theory.proportions import fallback_shares
from tests.plain_model import Floats, PlainModel
from tests.theory.random_models import random_model

KINDS = ("difference", "values", "combinations", "best")


def random_policies(model: PlainModel, seed: int, count: int) -> list[Floats]:
    """The model's own policy, and others that are far from it or near."""
    rng = np.random.default_rng([seed, count])
    complete = fallback_shares(model.policy)
    policies = [model.policy]
    while len(policies) < count:
        change = rng.choice([0.1, 0.3, 1.0])
        drawn = rng.dirichlet(np.ones(model.actions), size=model.states)
        policies.append((1.0 - change) * complete + change * drawn)
    return policies


def random_question(kind: str, seed: int) -> tuple[PlainModel, Question]:
    """Model number `seed` and a question about two to five policies."""
    rng = np.random.default_rng(seed)
    model = random_model(seed)
    if kind == "difference":
        return model, Difference(*random_policies(model, seed, 2))
    policies = random_policies(model, seed, int(rng.integers(3, 6)))
    if kind == "best":
        return model, Best(policies)
    weights = rng.exponential(size=len(policies)) * (np.arange(len(policies)) != 1)
    if kind == "values":
        return model, Values(policies, weights)
    return model, Question(policies, rng.normal(size=(len(policies), len(policies))), weights)


def models_of(model: PlainModel, question: Question) -> list[PlainModel]:
    """The model with each of the question's policies as its target."""
    return [replace(model, policy=policy) for policy in question.policies]

"""Models on which compiled and plain runs are compared: every structure, law and ending."""

from dataclasses import replace

import numpy as np

from revar import TabularMDP
from revar.model.rewards import RewardLaw
from revar.problems import Problem, problems
from revar.testing.problems import crossroads
from tests.plain_model import MODELS, PlainModel

LAWS = [law.label for law in RewardLaw]


def with_law(model: PlainModel, law: str) -> TabularMDP:
    """The model with rewards of that law, whose moments are changed where the law needs it."""
    mean, std = model.mean, model.std
    if law == "bernoulli":
        mean = 1.0 / (1.0 + np.exp(-mean))
        std = np.sqrt(mean * (1.0 - mean))
    elif law == "deterministic":
        std = np.zeros_like(std)
    moments = replace(model, mean=mean, std=std).mdp()
    by_outcome = moments.rewards_depend_on_outcome
    return TabularMDP(
        moments.transitions,
        mean if by_outcome else moments.reward_mean,
        std if by_outcome else moments.reward_std,
        moments.initial,
        moments.horizon,
        moments.discount,
        reward_law=law,
    )


def _drawn_problems() -> dict[str, Problem]:
    """Random models: several start states, endings, discounts; rewards by pair and by outcome."""
    found = {}
    for seed, (kind, build) in enumerate(MODELS.items()):
        for by_outcome in (False, True):
            for law in LAWS:
                model = build(seed, by_outcome=by_outcome)
                name = f"{kind}-{law}{'-by-outcome' if by_outcome else ''}"
                found[name] = Problem(name, with_law(model, law), model.policy)
    return found


PROBLEMS = {
    **_drawn_problems(),
    **{problem_id: problems.find(problem_id)() for problem_id in problems.ids()},
    "crossroads": crossroads(),
}

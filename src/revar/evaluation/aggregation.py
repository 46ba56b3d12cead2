"""Whether states that lump observations together can be trusted: the mean return as a witness."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from revar.environments.opening import open_environment
from revar.errors import InputError
from revar.evaluation.policies import ObservationPolicy
from revar.evaluation.result import EvaluationResult
from revar.model.arrays import FloatArray
from revar.model.validation import checked_count


@dataclass(frozen=True)
class AggregationCheck:
    """The estimate beside the mean return of fresh episodes of the policy itself."""

    value: float
    mean_return: float
    standard_error: float  # of their difference
    episodes: int

    @property
    def difference(self) -> float:
        """What the estimate is above the mean return."""
        return self.value - self.mean_return

    @property
    def deviations(self) -> float:
        """The difference in standard errors; beyond 3 it is no accident."""
        return self.difference / self.standard_error if self.standard_error > 0 else 0.0

    def __str__(self) -> str:
        verdict = "no sign of bias"
        if abs(self.deviations) > 3:
            verdict = "the states are too coarse for this policy: the estimate is biased"
        return (
            f"estimate {self.value:.4g}, mean return {self.mean_return:.4g} of {self.episodes} "
            f"episodes; difference {self.difference:+.3g} = {self.deviations:+.1f} standard "
            f"errors: {verdict}"
        )


def check_aggregation(
    result: EvaluationResult,
    env: Any,
    policy: ObservationPolicy,
    *,
    episodes: int = 200,
    seed: int = 0,
    env_options: dict[str, Any] | None = None,
) -> AggregationCheck:
    """Play the policy itself, on raw observations, and compare its mean return with the estimate.

    The mean return needs no states and cannot be biased by them. The check sees both effects of
    bins: that the policy acts by their centres, and that what follows is not Markov.
    """
    if not callable(policy):
        raise InputError("the check needs the policy as a function of the observation")
    returns = _returns(
        open_environment(env, env_options),
        policy,
        result.task.horizon,
        result.task.discount,
        checked_count(episodes, "episodes"),
        seed,
    )
    error = float(returns.std(ddof=1)) / sqrt(returns.size) if returns.size > 1 else np.inf
    return AggregationCheck(
        result.value,
        float(returns.mean()),
        float(np.hypot(error, result.standard_error)),
        int(returns.size),
    )


def _returns(
    env: Any, policy: ObservationPolicy, horizon: int, discount: float, episodes: int, seed: int
) -> FloatArray:
    rng = np.random.default_rng(seed)
    returns = np.zeros(episodes)
    first = int(env.action_space.start)
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed) if episode == 0 else env.reset()
        for step in range(horizon):
            row = np.asarray(policy(observation), dtype=np.float64)
            action = int(rng.choice(row.size, p=row / row.sum()))
            observation, reward, terminated, truncated, _ = env.step(action + first)
            returns[episode] += discount**step * float(reward)
            if terminated or truncated:
                break
    return returns

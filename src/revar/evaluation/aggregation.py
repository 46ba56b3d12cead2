"""Whether binned observations bias the estimate: it is compared with the mean return."""

from dataclasses import dataclass, replace
from math import copysign, inf, isclose, isfinite, sqrt
from typing import Any

import numpy as np

from revar.collection.states import check_row
from revar.environments.observations import Bins, make_encoding
from revar.environments.opening import (
    action_count,
    blame_environment,
    environment_seed,
    open_environment,
    read_reward,
)
from revar.errors import InputError
from revar.evaluation.result import EvaluationResult
from revar.evaluation.target_policies import TargetPolicy
from revar.interrupts import catch_interrupts
from revar.model.arrays import FloatArray
from revar.model.validation import check_count, check_whole
from revar.policies.forms import ObservationPolicy, resolve_policy
from revar.policies.interface import ask_policy

ACCIDENT = 3.0  # standard errors
FOUR_OF_FIVE = 0.84  # normal quantile of 0.8
# Episodes of the check that `evaluate` makes by itself: a share of those collected.
CHECKED_SHARE = 0.1
FEWEST_CHECKED, MOST_CHECKED = 20, 200


@dataclass(frozen=True)
class AggregationCheck:
    """The estimate and the mean return of new episodes of the policy itself."""

    value: float
    mean_return: float
    standard_error: float  # of their difference
    episodes: int

    @property
    def difference(self) -> float:
        """By how much the estimate exceeds the mean return."""
        return self.value - self.mean_return

    @property
    def deviations(self) -> float:
        """The difference in standard errors; more than ACCIDENT is none."""
        if self.standard_error > 0:
            return self.difference / self.standard_error
        # Without noise the two differ by rounding, or not by accident.
        same = isclose(self.value, self.mean_return, rel_tol=1e-9, abs_tol=1e-12)
        return 0.0 if same else copysign(inf, self.difference)

    @property
    def biased(self) -> bool:
        """Whether the difference is no accident."""
        return isfinite(self.standard_error) and abs(self.deviations) > ACCIDENT

    @property
    def visible_bias(self) -> float:
        """The least bias that such a check sees in four of five cases."""
        return (ACCIDENT + FOUR_OF_FIVE) * self.standard_error

    def __str__(self) -> str:
        verdict = "no sign of bias"
        if not isfinite(self.standard_error):
            verdict = "too few episodes to tell"
        elif self.biased:
            verdict = "the states are too coarse for this policy: the estimate is biased"
        elif self.standard_error > 0:
            verdict += f", but one below {self.visible_bias:.2g} would hardly be seen"
        return (
            f"estimate {self.value:.4g}, mean return {self.mean_return:.4g} of {self.episodes} "
            f"episodes; difference {self.difference:+.3g} = {self.deviations:+.1f} standard "
            f"errors: {verdict}"
        )


def check_aggregation(
    result: EvaluationResult,
    env: Any,
    policy: Any,
    *,
    episodes: int = 200,
    seed: int = 0,
    bins: Bins | None = None,
    env_options: dict[str, Any] | None = None,
) -> AggregationCheck:
    """Play the policy on raw observations, and compare its mean return with the estimate.

    The mean return needs no states, so that they cannot bias it. The check sees both effects of
    bins: the policy acts by their centres, and states are not Markov.

    Parameters
    ----------
    result
        Of `evaluate` with `bins`.
    env
        As in `evaluate`.
    env_options
        For opening it.
    policy
        As in `evaluate`; an array over binned observations needs the `bins`.
    episodes
        How many are played.
    seed
        Of these episodes.
    bins
        Those of the policy's array.
    """
    count, first = check_count(episodes, "episodes"), check_whole(seed, "seed")
    opened = open_environment(env, env_options)
    try:
        if hasattr(opened, "num_envs"):
            raise InputError("the check plays a single environment, not a vector of them")
        asked = _by_observation(opened, policy, bins)
        returns = _returns(opened, asked, result.task.horizon, result.task.discount, count, first)
    finally:
        if opened is not env:
            opened.close()
    error = float(returns.std(ddof=1)) / sqrt(returns.size) if returns.size > 1 else np.inf
    return AggregationCheck(
        result.value,
        float(returns.mean()),
        float(np.hypot(error, result.standard_error)),
        int(returns.size),
    )


def add_check(
    result: EvaluationResult,
    env: Any,
    policy: Any,
    bins: Bins,
    env_options: dict[str, Any] | None,
) -> EvaluationResult:
    """The result with a check of its bins, from some more episodes of an environment opened anew.

    They are no part of the budget. Whatever becomes of them, the result stays.
    """
    count = min(max(int(CHECKED_SHARE * result.episodes), FEWEST_CHECKED), MOST_CHECKED)
    seed = environment_seed(result.seed, 0) + 1  # not that of the run
    try:
        with catch_interrupts():
            check = check_aggregation(
                result, env, policy, episodes=count, seed=seed, bins=bins, env_options=env_options
            )
    except (InputError, KeyboardInterrupt):
        return result
    return replace(result, findings=replace(result.table_findings, aggregation=check))


def _by_observation(env: Any, policy: Any, bins: Bins | None) -> ObservationPolicy:
    """The policy as a function of the raw observation, with its answers checked."""
    actions = action_count(env)
    found = resolve_policy(policy, actions)
    if not callable(found):
        observations = make_encoding(env.observation_space, bins)
        table = TargetPolicy(found, observations, actions)
        found = lambda observation: table(observations.key(observation))  # noqa: E731

    def ask(observation: Any) -> FloatArray:
        name = f"the policy at observation {observation!r}"
        row = check_row(np.atleast_1d(ask_policy(found, observation)), name)
        if row.shape != (actions,):
            raise InputError(f"{name} gives {row.size} probabilities; there are {actions} actions")
        return row

    return ask


def _returns(
    env: Any, policy: ObservationPolicy, horizon: int, discount: float, episodes: int, seed: int
) -> FloatArray:
    # A stream of its own: in the environment's, actions would correlate with what follows them.
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    returns = np.zeros(episodes)
    first = int(env.action_space.start)
    for episode in range(episodes):
        try:
            observation, _ = env.reset(seed=seed) if episode == 0 else env.reset()
        except Exception as error:
            raise blame_environment(error, "reset") from error
        for step in range(horizon):
            row = policy(observation)
            action = int(rng.choice(row.size, p=row / row.sum()))  # the sum is 1 but for rounding
            try:
                observation, reward, terminated, truncated, _ = env.step(action + first)
            except Exception as error:
                raise blame_environment(error, "step") from error
            returns[episode] += discount**step * read_reward(reward)
            if terminated or truncated:
                break
    return returns

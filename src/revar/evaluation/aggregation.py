"""Whether binned observations bias the estimate: it is compared with the mean return."""

from dataclasses import dataclass, replace
from math import copysign, inf, isclose, isfinite, sqrt
from typing import Any

import numpy as np

from revar.collection.states import check_row
from revar.environments.observations import Bins, encoding_of
from revar.environments.opening import (
    action_count,
    environment_seed,
    first_action,
    open_environment,
)
from revar.errors import InputError
from revar.evaluation.result import EvaluationResult
from revar.evaluation.returns.play import make_player
from revar.evaluation.stopping import Stopped
from revar.evaluation.target_policies import TargetPolicy
from revar.interrupts import Interrupt, catch_interrupts
from revar.model.arrays import FloatArray
from revar.model.validation import check_count, check_whole
from revar.policies.forms import ObservationPolicy, resolve_policy
from revar.policies.interface import ask_policy

ACCIDENT = 3.0  # standard errors
FOUR_OF_FIVE = 0.84  # normal quantile of 0.8
# Episodes of the check that `evaluate` makes by itself: as many as were collected, within these.
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
        text = (
            f"estimate {self.value:.4g}, mean return {self.mean_return:.4g} of {self.episodes} "
            f"episodes; difference {self.difference:+.3g} = {self.deviations:+.1f} standard "
            f"errors: {verdict}"
        )
        return f"{text}, but {self.power}" if self.power and not self.biased else text

    @property
    def power(self) -> str:
        """What bias could not have been seen, in words; "" where all could, or none."""
        if not 0.0 < self.standard_error < inf:
            return ""
        return f"one below {self.visible_bias:.2g} would hardly be seen"

    @property
    def sentence(self) -> str:
        """What it says of the estimate, in short."""
        if self.biased:
            return (
                f"it is biased, because bins are too coarse: the policy's own mean return is "
                f"{self.mean_return:.4g}"
            )
        if not isfinite(self.standard_error):
            return "too few episodes to tell whether bins bias it"
        seen = f"no bias by bins was seen in {self.episodes} episodes"
        return f"{seen}; {self.power}" if self.power else seen


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
    return _check(result, env, policy, episodes, seed, bins, env_options, Interrupt())


def _check(
    result: EvaluationResult,
    env: Any,
    policy: Any,
    episodes: int,
    seed: int,
    bins: Bins | None,
    env_options: dict[str, Any] | None,
    interrupt: Interrupt,
) -> AggregationCheck:
    count, first = check_count(episodes, "episodes"), check_whole(seed, "seed")
    opened = open_environment(env, env_options)
    try:
        asked, horizon = _by_observation(opened, policy, bins), result.task.horizon
        # The policy draws from a stream of its own: in the environment's, actions would correlate
        # with what follows them.
        player = make_player(opened, asked, horizon=horizon, seed=first, interrupt=interrupt)
        returns = player.play(0, count).returns(result.task.discount)
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
    cost: Any,
    env_options: dict[str, Any] | None,
) -> EvaluationResult:
    """The result with a check of its bins, from more episodes, which are no part of the budget.

    Whatever becomes of them, the result stays, and says why they were not played.
    """
    check, note = None, ""
    if cost is not None:
        note = "more steps would have a cost"
    elif not result.complete:
        note = f"the run ended early ({result.stopped})"
    else:
        count = min(max(result.episodes, FEWEST_CHECKED), MOST_CHECKED)
        seed = environment_seed(result.seed, 0) + 1  # not that of the run
        try:
            with catch_interrupts() as interrupt:
                check = _check(result, env, policy, count, seed, bins, env_options, interrupt)
        except InputError as error:
            note = str(error)
        except (Stopped, KeyboardInterrupt):
            note = "the check was interrupted"
    findings = replace(result.table_findings, aggregation=check, aggregation_note=note)
    return replace(result, findings=findings)


def _by_observation(env: Any, policy: Any, bins: Bins | None) -> ObservationPolicy:
    """The policy as a function of the raw observation, with its answers checked."""
    actions = action_count(env)
    found = resolve_policy(policy, actions, first_action(env))
    if not callable(found):
        observations = encoding_of(env, bins)
        table = TargetPolicy(found, observations, actions, first_action(env))
        found = lambda observation: table(observations.key(observation))  # noqa: E731

    def ask(observation: Any) -> FloatArray:
        name = f"the policy at observation {observation!r}"
        row = check_row(np.atleast_1d(ask_policy(found, observation)), name)
        if row.shape != (actions,):
            raise InputError(f"{name} gives {row.size} probabilities; there are {actions} actions")
        return row

    return ask

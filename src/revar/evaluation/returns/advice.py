"""What a half-width needs with the mean return and with critics, from a pilot."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from revar.collection.checkpoints import quantile
from revar.datasets.files import Conditions
from revar.errors import InputError
from revar.evaluation.collect import collect
from revar.evaluation.goals import ValueGoal
from revar.evaluation.needs import RESAMPLES, Need, find_need
from revar.evaluation.result import EvaluationResult
from revar.evaluation.returns.result import CLOSE, ReturnFindings
from revar.evaluation.returns.stored import evaluate_episodes
from revar.evaluation.settings import CollectionSettings
from revar.model.amounts import COST, STEPS
from revar.model.arrays import FloatArray
from revar.model.budget import Budget
from revar.model.episodes import Episodes

LEAST_INTERVAL = 2  # episodes: one by itself has no interval


@dataclass(frozen=True)
class ReturnAdvice:
    """What a half-width needs, with the mean return and with critics."""

    half_width: float
    confidence: float
    mean_return: Need
    critic: Need | None  # None with method "mean"
    gain: float  # what the mean return needs for each unit that critics need
    pilot_episodes: int

    @property
    def sentence(self) -> str:
        """The advice in one sentence."""
        if self.critic is None:
            return "the mean return needs no critics; method 'critic' may need fewer episodes"
        if self.critic.high is None or self.mean_return.high is None:
            return "too little varied in the data to say how many are enough; give more of it"
        if self.gain < CLOSE:
            return "critics gain nothing here, as far as the pilot tells"
        return (
            f"critics need {1.0 / self.gain:.0%} of the {self.critic.unit} that the mean return "
            f"needs here, and less as they learn from more episodes"
        )

    def __str__(self) -> str:
        lines = [
            f"for a {self.confidence:.0%} interval of half-width {self.half_width:g}, as far as "
            f"{self.pilot_episodes:,} episodes tell:",
            f"  mean return  {self.mean_return}",
        ]
        if self.critic is not None:
            lines.append(f"  critics      {self.critic}")
        return "\n".join([*lines, self.sentence])


def play_pilot(
    env: Any, policy: Any, pilot: int, confidence: float, settings: CollectionSettings
) -> EvaluationResult:
    """So many episodes of the policy, with what each costs where that is asked for."""
    goal = ValueGoal(confidence, None, Budget(pilot))
    return cast(EvaluationResult, collect(env, {"": policy}, goal, settings))


def advise_from_episodes(
    episodes: Episodes,
    known: Conditions | None,
    policy: Any,
    half_width: float,
    confidence: float,
    settings: CollectionSettings,
) -> ReturnAdvice:
    """The same from stored episodes, which the policy played."""
    horizon, discount = settings.horizon, settings.discount
    if known is not None:
        horizon = known.horizon if horizon is None else horizon
        discount = known.discount if discount is None else discount
    if horizon is None:
        raise InputError("advice from stored data needs a horizon")
    result = evaluate_episodes(
        episodes,
        known,
        policy,
        horizon=horizon,
        discount=1.0 if discount is None else discount,
        confidence=confidence,
        method=settings.method,
        critics=settings.critics,
    )
    return advise_from_returns(result, half_width, confidence, settings.cost)


def advise_from_returns(
    result: EvaluationResult, half_width: float, confidence: float, cost: Any
) -> ReturnAdvice:
    """What is needed if more episodes vary as these do."""
    findings = result.findings
    assert isinstance(findings, ReturnFindings)
    corrected = findings.corrected
    count = corrected.returns.size
    if count < 2:
        raise InputError("the data cannot tell how many episodes are needed; give more of it")
    unit, prices = _prices(result.dataset, cost)
    factor = (quantile(confidence) / half_width) ** 2
    draws = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))

    def need(values: FloatArray, extra: float) -> Need:
        variance = float(values.var(ddof=1)) + extra
        drawn = (values[draws].var(axis=1, ddof=1) + extra) * prices[draws].mean(axis=1)
        episodes = factor * variance
        price = float(prices.mean())
        return find_need(episodes, price, factor * drawn, unit, LEAST_INTERVAL)

    plain = need(corrected.returns, 0.0)
    if result.method == "mean":
        return ReturnAdvice(half_width, confidence, plain, None, 1.0, count)
    besides = corrected.standard_error**2 - float(corrected.corrected.var(ddof=1)) / count
    learned = need(corrected.corrected, count * besides)
    gain = result.gain if np.isfinite(result.gain) else 1.0
    return ReturnAdvice(half_width, confidence, plain, learned, gain, count)


def _prices(episodes: Episodes, cost: Any) -> tuple[str, FloatArray]:
    """The unit, and what each episode takes of it."""
    if cost is None:
        return "episodes", np.ones(len(episodes))
    if isinstance(cost, str) and cost == STEPS:
        return "steps", episodes.lengths.astype(np.float64)
    if COST not in episodes.amounts:
        raise InputError("the stored episodes do not have the cost of their steps")
    return "cost", np.add.reduceat(episodes.amounts[COST], episodes.start[:-1])

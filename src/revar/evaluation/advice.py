"""advise: how many episodes a half-width needs, from a pilot or stored data."""

from dataclasses import dataclass
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from revar.datasets.files import load_collected
from revar.environments.observations import Bins
from revar.errors import InputError
from revar.estimators.alternatives import first_state_variance, fit_corrected_model
from revar.evaluation.checkpoints import quantile
from revar.evaluation.evaluate import evaluate
from revar.evaluation.stored import learn_stored
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.mdp import TabularMDP
from revar.model.moments import EpisodeCounter
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.model.validation import check_confidence, check_half_width
from revar.theory.costs import estimation_variance
from revar.theory.flow import optimal_flow

RESAMPLES = 200
CLOSE = 0.10  # to optimal: on-policy is then called good enough
TOO_MUCH_UNSEEN = 0.10  # of the policy's episodes


@dataclass(frozen=True)
class Need:
    """A number of episodes, and the interval it probably lies in."""

    episodes: int
    low: int
    high: int | None  # None where the data sets no limit

    def __str__(self) -> str:
        upper = "or more" if self.high is None else f"to {self.high:,}"
        return f"{self.episodes:,} episodes (95%: {self.low:,} {upper})"


@dataclass(frozen=True)
class Advice:
    """How many episodes a half-width needs, on-policy and with flow."""

    half_width: float
    confidence: float
    on_policy: Need
    flow: Need
    gain: float  # on-policy episodes for one with flow
    pilot_episodes: int
    unvisited_probability: float

    @property
    def sentence(self) -> str:
        """The advice in one sentence."""
        if self.unvisited_probability > TOO_MUCH_UNSEEN:
            return "the data has seen too little of this policy to compare; give more of it"
        if self.on_policy.high is None or self.flow.high is None:
            return "too little varied in the data to say how many are enough; give more of it"
        if self.gain - 1.0 <= CLOSE:
            return f"on-policy is already within {max(self.gain - 1.0, 0.0):.0%} of optimal here"
        return f"flow needs {1.0 / self.gain:.0%} of the episodes that on-policy needs here"

    def __str__(self) -> str:
        lines = [
            f"for a {self.confidence:.0%} interval of half-width {self.half_width:g}, as far as "
            f"{self.pilot_episodes:,} episodes tell:",
            f"  on-policy  {self.on_policy}",
            f"  flow       {self.flow}",
            self.sentence,
        ]
        if self.unvisited_probability > 0:
            lines.append(
                f"{self.unvisited_probability:.2%} of the policy's episodes meet what the data "
                f"has not seen; the numbers do not know about it"
            )
        return "\n".join(lines)


def advise(
    env_or_dataset: Any,
    policy: Any,
    *,
    half_width: float,
    confidence: float = 0.95,
    horizon: int | None = None,
    discount: float | None = None,
    pilot: int = 200,
    seed: int | None = None,
    bins: Bins | None = None,
    env: Any = None,
    env_options: dict[str, Any] | None = None,
) -> Advice:
    """Episodes needed for `half_width`, on-policy and with flow.

    From `pilot` on-policy episodes of an environment, or from a stored dataset (then `env` says how
    observations become states, and `horizon` is needed unless an evaluation has saved the file,
    which then also knows the discount).
    """
    check_half_width(half_width)
    check_confidence(confidence)
    if isinstance(env_or_dataset, Dataset) or _is_file(env_or_dataset):
        data, known = env_or_dataset, None
        if not isinstance(data, Dataset):
            data, known = load_collected(data)
        if known is not None:
            horizon = known.horizon if horizon is None else horizon
            discount = known.discount if discount is None else discount
        if horizon is None:
            raise InputError("advice from stored data needs a horizon")
        discount = 1.0 if discount is None else discount
        collection = learn_stored(data, {"": policy}, horizon, discount, env, bins, env_options)
        task, statistics = collection.task, collection.statistics
        unvisited = collection.estimate().unvisited_probability
    else:
        result = evaluate(
            env_or_dataset,
            policy,
            strategy="on-policy",
            episodes=pilot,
            horizon=horizon,
            discount=discount,
            seed=seed,
            bins=bins,
            env_options=env_options,
        )
        data, task, statistics = result.dataset, result.task, result.statistics
        unvisited = result.unvisited_probability
    return _advice(
        task, statistics.run_statistics(task.states), data, half_width, confidence, unvisited
    )


def _advice(
    task: Task,
    observed: RunStatistics,
    data: Dataset,
    half_width: float,
    confidence: float,
    unvisited: float,
) -> Advice:
    model = fit_corrected_model(task, observed)
    best = optimal_flow(model, task.policy, tolerance=1e-3).behavior
    factor = (quantile(confidence) / half_width) ** 2
    needed = _needs(model, task, best)
    counter = EpisodeCounter(data, task.states, task.actions)
    rng = np.random.default_rng(0)
    resampled = (_resample(counter, len(data), task.states, rng) for _ in range(RESAMPLES))
    drawn = np.array(
        [_needs(fit_corrected_model(task, each), task, best) for each in resampled]
    )  # [resample, 2]
    means = [
        _need(factor * needed[i], factor * drawn[:, i][np.isfinite(drawn[:, i])]) for i in (0, 1)
    ]
    return Advice(
        half_width,
        confidence,
        means[0],
        means[1],
        float(needed[0] / needed[1]) if needed[1] > 0 else 1.0,
        len(data),
        unvisited,
    )


def _resample(
    counter: EpisodeCounter, episodes: int, states: int, rng: np.random.Generator
) -> RunStatistics:
    """As many episodes, drawn with replacement (Efron 1979, "Bootstrap methods")."""
    times = np.bincount(rng.integers(episodes, size=episodes), minlength=episodes)
    return VisitStatistics.from_arrays(counter.arrays(times)).run_statistics(states)


def _needs(model: TabularMDP, task: Task, best: FloatArray) -> tuple[float, float]:
    """K*MSE on-policy and under the behavior that is best for the data as it is.

    To first order that behavior is also best for resampled data: it is a minimum.
    """
    first = first_state_variance(model, task)
    return (
        estimation_variance(model, task.policy, task.policy) + first,
        estimation_variance(model, task.policy, best) + first,
    )


def _need(episodes: float, resampled: FloatArray) -> Need:
    """The number, with an interval from the spread of resampled numbers on a log scale.

    Resampled numbers spread around the number as the number does around the truth. So the spread
    is mirrored: where resampling divides by a factor, the truth may be larger by it. Where
    resampled data can lack any variance, there is no upper end.
    """
    if not isfinite(episodes) or resampled.size == 0:
        raise InputError("the data cannot tell how many episodes are needed; give more of it")
    low, middle, high = np.percentile(resampled, [2.5, 50.0, 97.5])
    return Need(
        max(1, ceil(episodes)),
        max(1, int(episodes * min(middle / high, 1.0))) if high > 0.0 else 1,
        max(1, ceil(episodes * max(middle / low, 1.0))) if low > 0.0 else None,
    )


def _is_file(source: Any) -> bool:
    return isinstance(source, Path) or (
        isinstance(source, str) and Path(source).suffix in (".npz", ".parquet")
    )

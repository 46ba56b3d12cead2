"""advise: what a half-width needs, in episodes, steps or cost, from a pilot or stored data."""

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from revar.collection.checkpoints import quantile
from revar.datasets.files import load_collected
from revar.environments.observations import Bins
from revar.environments.opening import EnvironmentLike
from revar.errors import InputError
from revar.estimators.alternatives import first_state_variance, fit_corrected_model
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.evaluation.needs import RESAMPLES, Need, find_need
from revar.evaluation.returns.advice import (
    advise_from_episodes,
    advise_from_returns,
    play_pilot,
)
from revar.evaluation.settings import CollectionSettings, find_method
from revar.evaluation.stored import learn_stored
from revar.model.amounts import STEPS
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.budget import check_visit_costs
from revar.model.episodes import Episodes
from revar.model.limits import Limits, SumLimit, check_limits
from revar.model.mdp import TabularMDP
from revar.model.moments import EpisodeCounter
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.model.validation import check_confidence, check_half_width
from revar.policies.interface import PolicyLike
from revar.theory.costs import estimation_variance
from revar.theory.flow import optimal_flow
from revar.theory.values import occupancy

CLOSE = 0.10  # to optimal: on-policy is then called good enough
TOO_MUCH_UNSEEN = 0.10  # of the policy's episodes
PRICE = "price"  # the name under which a pilot notes it


@dataclass(frozen=True)
class Advice:
    """What a half-width needs, on-policy and with flow."""

    half_width: float
    confidence: float
    on_policy: Need
    flow: Need
    gain: float  # what on-policy needs for each unit that flow needs
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
        return f"flow needs {1.0 / self.gain:.0%} of the {self.flow.unit} that on-policy needs here"

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
    env_or_dataset: EnvironmentLike | Dataset | Episodes | Path,
    policy: PolicyLike | None,
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
    cost: Any = None,
    limits: Limits | None = None,
    method: str | None = None,
    features: Any = None,
    resets: int | None = None,
    critics: Any = None,
) -> Any:
    """What is needed for `half_width`, on-policy and with flow within `limits`.

    That is an Advice. With methods "critic" and "mean" it is a ReturnAdvice: what the mean return
    needs, and what critics need.

    Parameters
    ----------
    env_or_dataset
        An environment as in `evaluate`, of which on-policy episodes are played, or a stored
        dataset.
    policy
        As in `evaluate`.
    half_width, confidence
        Of the interval that is wanted.
    discount
        As in `evaluate`.
    horizon
        As in `evaluate`; a dataset needs the horizon, unless an evaluation has saved the file,
        which then also knows the discount.
    pilot
        How many episodes are played.
    seed
        Of the pilot.
    bins
        As in `evaluate`.
    env
        Of a stored dataset: how observations become states.
    env_options
        For opening the environment.
    cost
        Say what is needed in what steps cost, and not in episodes: "steps" (1 each), an array, a
        function, or what `info` reports, as in `evaluate`. Stored data has what was reported by its
        name.
    limits
        Within which flow collects.
    method
        As in `evaluate`.
    resets
        As in `evaluate`.
    features, critics
        As in `evaluate`.
    """
    check_half_width(half_width)
    check_confidence(confidence)
    given = check_limits(limits)
    noted = _with_cost(given, cost)
    returns = CollectionSettings(
        method=method,
        features=features,
        resets=resets,
        critics=critics,
        cost=cost,
        limits=limits,
        horizon=horizon,
        discount=discount,
        seed=seed,
        bins=bins,
        env_options=env_options,
    )
    source: Any = env_or_dataset
    if isinstance(source, Episodes):
        return advise_from_episodes(source, None, policy, half_width, confidence, returns)
    if isinstance(source, Dataset) or _is_file(source):
        data, known = source, None
        if not isinstance(data, Dataset):
            data, known = load_collected(data)
        if isinstance(data, Episodes):
            return advise_from_episodes(data, known, policy, half_width, confidence, returns)
        if known is not None:
            horizon = known.horizon if horizon is None else horizon
            discount = known.discount if discount is None else discount
        if horizon is None:
            raise InputError("advice from stored data needs a horizon")
        discount = 1.0 if discount is None else discount
        collection = learn_stored(
            data, {"": policy}, horizon, discount, env, bins, env_options, noted
        )
        task, noted = collection.task, collection.limits
        statistics = collection.statistics
    elif find_method(source, policy, returns) != "table":
        pilot_result = play_pilot(source, policy, pilot, confidence, returns)
        return advise_from_returns(pilot_result, half_width, confidence, cost)
    else:
        by_table = replace(returns, method="table", strategy="on-policy", cost=None, limits=noted)
        result = play_pilot(source, policy, pilot, confidence, by_table)
        noted = result.limits
        data, task, statistics = result.dataset, result.task, result.statistics
    # Advice rests on the table, whatever gave the value.
    unvisited = CertaintyEquivalence().estimate(task, statistics).unvisited_probability
    forbidden = _by_number(noted.forbidden, data)
    within = replace(task.limits, forbidden=forbidden, max_sums=task.limits.sums[: len(given.sums)])
    return _advice(
        replace(task, limits=within),
        _prices(task, cost),
        "episodes" if cost is None else "cost" if noted.sums[len(given.sums) :] else "steps",
        statistics.run_statistics(task.states),
        data,
        half_width,
        confidence,
        unvisited,
    )


def _with_cost(limits: Limits, cost: Any) -> Limits:
    """The limits, and the cost as a sum without a limit: so that it is noted of every step."""
    if cost is None or (isinstance(cost, str) and cost == STEPS):
        return limits
    return replace(limits, max_sums=[*limits.sums, SumLimit(PRICE, cost, inf)])


def _prices(task: Task, cost: Any) -> FloatArray | None:
    """What each visit costs, [S, A]; None where episodes are counted."""
    if cost is None:
        return None
    last = task.limits.sums[-1] if task.limits.sums else None
    if last is None or last.name != PRICE:
        return np.ones((task.states, task.actions))
    return check_visit_costs(last.amounts, task.states, task.actions)


def _by_number(forbidden: Any, data: Dataset) -> list[Any] | None:
    """What is forbidden, with states as the numbers that they have in the data."""
    if forbidden is None:
        return None
    numbers = {data.label_of(state): state for state in range(data.states_seen)}
    pairs = [entry for entry in forbidden if isinstance(entry, tuple) and entry[0] in numbers]
    actions = [entry for entry in forbidden if not isinstance(entry, tuple)]
    return actions or [(numbers[state], action) for state, action in pairs]


def _advice(
    task: Task,
    prices: FloatArray | None,
    unit: str,
    observed: RunStatistics,
    data: Dataset,
    half_width: float,
    confidence: float,
    unvisited: float,
) -> Advice:
    model = fit_corrected_model(task, observed)
    best = optimal_flow(
        model, task.policy, tolerance=1e-3, cost=prices, limits=task.limits
    ).behavior
    factor = (quantile(confidence) / half_width) ** 2
    needed, each = _needs(model, task, best), _costs(model, task, best, prices)
    counter = EpisodeCounter(data, task.states, task.actions)
    rng = np.random.default_rng(0)
    resampled = (_resample(counter, len(data), task.states, rng) for _ in range(RESAMPLES))
    models = [fit_corrected_model(task, once) for once in resampled]
    drawn = np.array(
        [_needs(once, task, best) * _costs(once, task, best, prices) for once in models]
    )  # [resample, 2]
    found = [
        find_need(
            float(factor * needed[i]),
            float(each[i]),
            factor * drawn[:, i][np.isfinite(drawn[:, i])],
            unit,
        )
        for i in (0, 1)
    ]
    amounts = needed * each
    return Advice(
        half_width,
        confidence,
        found[0],
        found[1],
        float(amounts[0] / amounts[1]) if amounts[1] > 0 else 1.0,
        len(data),
        unvisited,
    )


def _resample(
    counter: EpisodeCounter, episodes: int, states: int, rng: np.random.Generator
) -> RunStatistics:
    """As many episodes, drawn with replacement (Efron 1979, "Bootstrap methods")."""
    times = np.bincount(rng.integers(episodes, size=episodes), minlength=episodes)
    return VisitStatistics.from_arrays(counter.arrays(times)).run_statistics(states)


def _needs(model: TabularMDP, task: Task, best: FloatArray) -> FloatArray:
    """K*MSE on-policy and under the behavior that is best for the data as it is, [2].

    To first order that behavior is also best for resampled data: it is a minimum.
    """
    first = first_state_variance(model, task)
    return np.array(
        [
            estimation_variance(model, task.policy, task.policy) + first,
            estimation_variance(model, task.policy, best) + first,
        ]
    )


def _costs(
    model: TabularMDP, task: Task, best: FloatArray, prices: FloatArray | None
) -> FloatArray:
    """What an episode costs on-policy and under that behavior, [2]."""
    if prices is None:
        return np.ones(2)
    return np.array(
        [float(np.sum(prices * occupancy(model, each))) for each in (task.policy, best)]
    )


def _is_file(source: Any) -> bool:
    return isinstance(source, Path) or (
        isinstance(source, str) and Path(source).suffix in (".npz", ".parquet")
    )

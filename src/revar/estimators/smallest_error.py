"""An estimate that errs less than its parts: certainty equivalence, and the corrected return."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.corrected_return import FOLDS, mean_corrected, on_policy_steps
from revar.estimators.estimator import Estimate, Estimator, JointEstimate, estimators
from revar.model.arrays import Outcomes
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset

NOTHING = 0.005  # a share that would be shown as 0%


@estimators.register("smallest-error")
@dataclass(frozen=True)
class SmallestError(Estimator):
    """Certainty equivalence of all data, mixed with the corrected return of on-policy episodes.

    Of what it saw at most once a table averages nothing, it only weighs episodes unequally: there
    the mean return errs less. The part of the policy's steps that are in such pairs adds to the
    variance by its square; that is the share of the mean return, as far as episodes are on-policy.
    Values have no say in it. Of several policies the estimate is certainty equivalence.
    """

    id: ClassVar[str] = "smallest-error"
    needs_episodes: ClassVar[bool] = False
    folds: ClassVar[int] = FOLDS

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From whole episodes; of statistics, certainty equivalence."""
        joint = mixed_estimate(task, data, data if isinstance(data, Dataset) else None)
        return joint.combination(task.question.combinations.coefficients[0])


def mixed_estimate(
    task: Task, data: Dataset | VisitStatistics, episodes: Dataset | None
) -> JointEstimate:
    """Certainty equivalence of the data, mixed with the corrected return of episodes among it."""
    by_table, found = CertaintyEquivalence().plug_in(task, data)
    if len(task.policies) != 1 or not episodes:
        return by_table
    statistics = VisitStatistics(task.states, task.actions)
    statistics.record_many(episodes)
    outcomes = statistics.run_statistics(task.states).outcomes
    thin_share = float(found.thin_share[0])
    mixed = mix(task, episodes, outcomes, by_table.value_of(0), thin_share)
    if mixed is None:
        return by_table
    estimate = mixed.estimate
    return replace(
        by_table,
        values=np.array([estimate.value]),
        covariance=np.array([[estimate.standard_error**2]]),
        unvisited_probability=np.array([estimate.unvisited_probability]),
        method=_method(mixed.share, thin_share),
    )


def _method(share: float, thin_share: float) -> str:
    parts = "corrected mean return"
    if share < 1.0:
        parts = f"{1.0 - share:.0%} table, {share:.0%} {parts}"
    return f"{parts}: {thin_share:.0%} of the policy's steps were seen at most once"


class Mixed(NamedTuple):
    """A table's estimate, mixed with the corrected return."""

    estimate: Estimate
    share: float  # of the corrected return


def mix(
    task: Task, episodes: Dataset, outcomes: Outcomes, by_table: Estimate, thin_share: float
) -> Mixed | None:
    """The table's estimate, mixed with the corrected return of those episodes that are on-policy.

    None where less than half a percent would be mixed with it. `episodes` are those, of all that
    the table rests on, which may be on-policy; `outcomes` are those of all data. Both errors are
    taken to be one chance.
    """
    steps = on_policy_steps(task, episodes)
    count = len(steps.start) - 1
    share = thin_share**2 * count / by_table.episodes
    if count < 2 or share < NOTHING:
        return None
    mean = mean_corrected(task, steps, outcomes)
    rest = 1.0 - share
    error = share * sqrt(mean.variance)
    if rest > 0.0:  # where it is not, the table's error may be infinite
        error += rest * by_table.standard_error
    mixed = Estimate(
        share * mean.value + rest * by_table.value,
        error,
        by_table.episodes,
        rest * by_table.unvisited_probability,
    )
    return Mixed(mixed, share)

"""The estimate that errs less: certainty equivalence, or the corrected return."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import numpy as np

from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.corrected_return import FOLDS, mean_corrected, on_policy_steps
from revar.estimators.estimator import Estimate, Estimator, JointEstimate, estimators
from revar.model.arrays import Outcomes
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.theory.gaps import MOST


@estimators.register("smallest-error")
@dataclass(frozen=True)
class SmallestError(Estimator):
    """Certainty equivalence of all data, or the corrected return of its on-policy episodes.

    A table in which most of what the policy does was seen at most once averages nothing, and only
    weighs episodes unequally: then the mean return errs less. So it does where actions without data
    are seen to be unlike those that stand in for them. The values have no say in it. Of several
    policies, and of data without on-policy episodes, it is certainty equivalence.
    """

    id: ClassVar[str] = "smallest-error"
    needs_episodes: ClassVar[bool] = False
    folds: ClassVar[int] = FOLDS

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From whole episodes; of statistics, certainty equivalence."""
        joint = choose_estimate(task, data, data if isinstance(data, Dataset) else None)
        return joint.combination(task.question.combinations.coefficients[0])


def choose_estimate(
    task: Task, data: Dataset | VisitStatistics, episodes: Dataset | None
) -> JointEstimate:
    """Certainty equivalence of the data, or the corrected return of episodes that are among it."""
    by_table, found = CertaintyEquivalence().plug_in(task, data)
    thin_share, evident = float(found.thin_share[0]), float(found.evident[0])
    asks_one = len(task.policies) == 1
    if not asks_one or not episodes or _table_serves(thin_share, evident):
        return by_table
    statistics = VisitStatistics(task.states, task.actions)
    statistics.record_many(episodes)
    outcomes = statistics.run_statistics(task.states).outcomes
    better = better_mean(task, episodes, by_table.episodes, outcomes, thin_share, evident)
    if better is None:
        return by_table
    why = "most steps of the policy were seen at most once"
    if thin_share <= MOST:
        why = "actions without data are unlike those that stand in for them"
    return replace(
        by_table,
        values=np.array([better.value]),
        covariance=np.array([[better.standard_error**2]]),
        unvisited_probability=np.zeros(1),
        silent_share=None,
        method=f"mean return, corrected by the table: {why}",
    )


def _table_serves(thin_share: float, evident: float) -> bool:
    """Whether nothing speaks against the table, whatever the mean return is."""
    return thin_share <= MOST and evident == 0.0


def better_mean(
    task: Task,
    episodes: Dataset,
    played: int,
    outcomes: Outcomes,
    thin_share: float,
    evident: float,
) -> Estimate | None:
    """The corrected return of the on-policy episodes, if it is expected to err less than a table.

    Of a few episodes among many it is not, however little they happen to vary.
    `episodes` are those, of all that were `played`, which may be on-policy. `outcomes` are those of
    all data, `thin_share` and `evident` what certainty equivalence found.
    """
    if _table_serves(thin_share, evident):
        return None
    steps = on_policy_steps(task, episodes)
    count = len(steps.start) - 1
    if count < 2 or count <= MOST * played:
        return None
    found = mean_corrected(task, steps, outcomes)
    if thin_share > MOST or found.variance < evident:
        return Estimate(found.value, sqrt(found.variance), count)
    return None

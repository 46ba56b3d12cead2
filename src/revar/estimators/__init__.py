"""From collected data to an estimate with a standard error."""

from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.corrected_return import CorrectedReturn
from revar.estimators.doubly_robust import DoublyRobust
from revar.estimators.estimator import Estimate, Estimator, estimators, find_estimator
from revar.estimators.importance_sampling import (
    ImportanceSampling,
    MonteCarlo,
    PerDecisionImportanceSampling,
    WeightedImportanceSampling,
)
from revar.estimators.smallest_error import SmallestError

__all__ = [
    "CertaintyEquivalence",
    "CorrectedReturn",
    "DoublyRobust",
    "Estimate",
    "Estimator",
    "ImportanceSampling",
    "MonteCarlo",
    "PerDecisionImportanceSampling",
    "SmallestError",
    "WeightedImportanceSampling",
    "estimators",
    "find_estimator",
]

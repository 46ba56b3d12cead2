"""An error while runs are played surfaces, whichever thread it happened in."""

import threading
from dataclasses import dataclass
from typing import ClassVar

import pytest

from revar import Dataset, Task, VisitStatistics, simulate
from revar.errors import InputError
from revar.estimators import Estimate, Estimator
from revar.problems import problems
from revar.strategies import OnPolicy, Plan, Selection

TREE = problems.find("tree")(3)


@dataclass(frozen=True)
class Tiring(OnPolicy):
    """Gives up after some episodes."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        if statistics.episodes > 5:
            raise RuntimeError("no more plans")
        return Plan(task.policy[None], Selection.SAMPLE, lasts=1)


@dataclass(frozen=True)
class Failing(Estimator):
    id: ClassVar[str] = "failing"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        raise ZeroDivisionError("nothing to divide by")


def test_an_error_of_the_strategy() -> None:
    with pytest.raises(RuntimeError, match="no more plans"):
        simulate(TREE.mdp, TREE.policy, Tiring(), episodes=10, runs=3)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("compiled", [None, False])
def test_an_error_of_the_estimator(compiled: bool | None, threads: int) -> None:
    with pytest.raises(ZeroDivisionError, match="nothing to divide by"):
        simulate(
            TREE.mdp,
            TREE.policy,
            "on-policy",
            episodes=10,
            runs=50,
            estimator=Failing(),
            compiled=compiled,
            threads=threads,
        )
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("revar-")]


def test_data_that_the_estimator_refuses() -> None:
    with pytest.raises(InputError, match="Monte Carlo needs on-policy data"):
        simulate(TREE.mdp, TREE.policy, "uniform", episodes=10, runs=3, estimator="monte-carlo")


def test_the_next_simulation_works() -> None:
    with pytest.raises(RuntimeError, match="no more plans"):
        simulate(TREE.mdp, TREE.policy, Tiring(), episodes=10, runs=3)
    assert simulate(TREE.mdp, TREE.policy, "revar", episodes=10, runs=3).complete

"""On trees ReVar re-plans along the path alone, which must give the plan of full sweeps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from revar import simulate
from revar.model.task import Task
from revar.problems import Problem, problems
from revar.strategies import ReducedVariance
from revar.strategies.compiled_rule import CompiledRule
from revar.testing.contracts import expect_same_results
from tests.parity.models import PROBLEMS

TREES = {
    **{name: problem for name, problem in PROBLEMS.items() if problem.mdp.structure().is_tree},
    "deep tree": problems.find("tree")(7),
    "wide tree": problems.find("random-tree")(3, 3, branching=3, discount=0.7, seed=4),
}


@dataclass(frozen=True)
class FullSweeps(ReducedVariance):
    """ReVar that is not told of the tree."""

    id: ClassVar[str] = "revar-full-sweeps"

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:
        return super().compiled_rule(task, tree=False)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("name", TREES)
def test_paths_give_the_plan_of_full_sweeps(name: str, scale: float, known: bool) -> None:
    mdp, policy = TREES[name].mdp, TREES[name].policy
    along, full = (
        simulate(
            mdp,
            policy,
            kind(confidence_scale=scale, known_transitions=known),
            episodes=300,
            runs=4,
            seed=2,
            keep_episodes=True,
        )
        for kind in (ReducedVariance, FullSweeps)
    )
    expect_same_results(along, full, f"{name}: along the path and by full sweeps")


def test_paths_are_taken_where_they_may_be() -> None:
    """Otherwise the two above are one and the same."""
    tree: Problem = TREES["tree"]
    task = Task.of(tree.mdp, tree.policy, budget=10)

    def parameters(strategy: ReducedVariance, *, is_tree: bool) -> tuple[float, ...]:
        return tuple(strategy.compiled_rule(task, tree=is_tree).parameters.constants)

    by_path = parameters(ReducedVariance(), is_tree=True)
    swept = parameters(ReducedVariance(), is_tree=False)
    assert by_path != swept
    assert parameters(FullSweeps(), is_tree=True) == swept
    # A plan that stands for several episodes is made by sweeps even on a tree.
    seldom = parameters(ReducedVariance(replan_every=2), is_tree=True)
    assert seldom == parameters(ReducedVariance(replan_every=2), is_tree=False)
    assert np.isfinite(by_path).all()

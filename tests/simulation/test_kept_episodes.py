import numpy as np
import pytest

from revar import Task, VisitStatistics, simulate
from revar.estimators import CertaintyEquivalence
from revar.model.trajectory import ENDED
from revar.problems import Problem, problems
from revar.strategies import strategies
from revar.testing.problems import crossroads

PROBLEMS = [problems.find("tree")(3), problems.find("riverswim")(), crossroads()]
EPISODES = 30


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("strategy", strategies.ids())
def test_episodes_are_those_that_were_counted(
    strategy: str, problem: Problem, compiled: bool | None
) -> None:
    mdp = problem.mdp
    result = simulate(
        mdp,
        problem.policy,
        strategy,
        episodes=EPISODES,
        runs=2,
        keep_episodes=True,
        compiled=compiled,
    )
    assert len(result.datasets) == 2
    task = Task.of(mdp, problem.policy, budget=EPISODES)
    for run, data in enumerate(result.datasets):
        assert len(data) == EPISODES
        pairs = data.states * mdp.actions + data.actions
        counts = np.bincount(pairs, minlength=mdp.states * mdp.actions)
        assert counts.tolist() == result.visits[run].ravel().tolist()
        assert np.diff(data.start).max() <= mdp.horizon
        assert np.all(mdp.initial[data.states[data.start[:-1]]] > 0)
        # Only outcomes that the model has, and no end before the horizon that it does not have.
        ends = np.where(data.successors == ENDED, mdp.states, data.successors)
        possible = set(
            zip(
                np.repeat(np.arange(mdp.states * mdp.actions), np.diff(mdp.outcomes.row_start)),
                mdp.outcomes.successor,
                strict=True,
            )
        )
        assert set(zip(pairs, ends, strict=True)) <= possible
        cut = data.successors[data.start[1:] - 1] != ENDED
        assert np.all(np.diff(data.start)[cut] == mdp.horizon)
        statistics = VisitStatistics(mdp.states, mdp.actions)
        statistics.record_many(data)
        estimate = CertaintyEquivalence().estimate(task, statistics)
        assert estimate.value == pytest.approx(result.estimates[run, -1], rel=1e-12)
        assert estimate.standard_error == pytest.approx(result.standard_errors[run, -1], rel=1e-9)


def test_propensities_are_kept_where_actions_were_sampled() -> None:
    problem = crossroads()

    def propensities(strategy: str) -> tuple[list[float], list[float]]:
        result = simulate(
            problem.mdp, problem.policy, strategy, episodes=20, runs=1, keep_episodes=True
        )
        data = result.datasets[0]
        return data.propensities.tolist(), problem.policy[data.states, data.actions].tolist()

    found, target = propensities("on-policy")
    assert found == target
    found, target = propensities("uniform")
    assert found != target
    assert np.isnan(propensities("revar")[0]).all()


def test_by_default_no_episodes_are_kept() -> None:
    problem = crossroads()
    assert simulate(problem.mdp, problem.policy, "revar", episodes=5, runs=2).datasets == ()

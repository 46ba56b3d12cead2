"""Sixteen episodes in flight: stale statistics cost little."""

import numpy as np
from benchmarks.in_flight_study import in_flight

import revar
from revar.theory.costs import one_step_costs

EPISODES, WORKERS = 2000, 16


def test_sixteen_in_flight_are_within_a_tenth_of_one_by_one() -> None:
    """K * sum C/T, the error that belongs to given visits: it needs few runs to be known.

    K*MSE itself, from a thousand runs, is in benchmarks/results/in_flight_study.md.
    """
    problem = revar.find_problem("gridworld")
    costs = one_step_costs(problem.mdp, problem.policy)
    costly = costs > 0

    def expected(visits: np.ndarray) -> float:
        return float(EPISODES * np.sum(costs[costly] / visits[costly]))

    result = revar.simulate(
        problem.mdp, problem.policy, "flow", episodes=EPISODES, runs=40, checkpoints=[EPISODES]
    )
    alone = np.array([expected(visits) for visits in result.visits])
    together = []
    for seed in range(4):
        collection = in_flight(problem, "flow", EPISODES, WORKERS, seed)
        visits = np.zeros((problem.mdp.states, problem.mdp.actions))
        for number, state in enumerate(collection.states.keys):
            if number < collection.statistics.states:
                visits[int(str(state))] = collection.statistics.visits[number]
        together.append(expected(visits))
    ratio = np.mean(together) / alone.mean()
    spread = np.hypot(
        np.std(together, ddof=1) / 2 / np.mean(together), alone.std(ddof=1) / 40**0.5 / alone.mean()
    )
    assert spread < 0.02  # so that a tenth would be seen
    assert ratio < 1.1
    # On-policy visits would fail: their error is more than four times as large.
    on_policy = revar.estimation_variance(problem.mdp, problem.policy, problem.policy)
    assert on_policy / alone.mean() > 4

"""Coverage of the 95% interval after 1000 episodes, for every strategy that visits all pairs.

Which strategies do is read from the data: those without a run in which the target policy would
meet a pair that has no data. Others estimate something else than the value (pairs without data
count as nothing), and their intervals promise nothing about it: on-policy collection of the tree,
whose rarest pair comes once in 160,000 episodes, and CB-Var on the gridworld, which goes where
rewards are noisy (left and up) and so reaches the far cells too seldom.
"""

from math import sqrt

import pytest

from revar.strategies import ReducedVariance, Strategy, strategies
from tests.strategies.measured import simulated

EPISODES, RUNS = 1000, 1000
SPREAD = 3 * sqrt(0.95 * 0.05 / RUNS)  # 0.021: a coverage of 0.908 is seen in 99 of 100 cases


def strategies_on(problem_id: str) -> dict[str, str | Strategy]:
    """Every strategy with its defaults, and ReVar's other confidence scales.

    On the gridworld ReVar plans every 25 episodes, which makes no difference to its error there
    (test_gridworld_experiment).
    """
    every = 25 if problem_id == "gridworld" else 1
    found: dict[str, str | Strategy] = {name: name for name in strategies.ids()}
    for scale in (1.0, 0.1, 0.0):
        name = "revar" if scale == 1.0 else f"revar {scale}"
        found[name] = ReducedVariance(confidence_scale=scale, replan_every=every)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem_id", "without"), [("tree", {"on-policy"}), ("gridworld", {"cb-var"})]
)
def test_intervals_hold_the_value_as_often_as_they_say(problem_id: str, without: set[str]) -> None:
    coverage = {}
    incomplete = set()
    for name, strategy in strategies_on(problem_id).items():
        result = simulated(problem_id, strategy, EPISODES, RUNS)
        if (result.unvisited_probability[:, -1] > 0).any():
            incomplete.add(name)
        else:
            coverage[name] = float(result.coverage(0.95)[-1])
    outside = {name: share for name, share in coverage.items() if abs(share - 0.95) > SPREAD}
    assert outside == {}
    # The data sorts the paper's strategies as the reasons above say.
    assert without <= incomplete
    assert {"on-policy", "uniform", "cb-var", "oracle", "revar"} - without <= set(coverage)

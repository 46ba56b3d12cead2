"""The error that the theory predicts against the error that simulated collection shows."""

import numpy as np
import pytest

from revar import estimation_variance, policy_value
from revar.problems import problems
from tests.plain_simulation import counts, plain

# The formula is the limit of many episodes: a pair of T visits adds 1/T to its own term. With
# these numbers of episodes that is below 2 percent of the whole, a third of one standard error.
EPISODES = {
    ("tree", "on-policy"): 5000,
    ("tree", "uniform"): 1500,
    ("gridworld", "on-policy"): 4000,
    ("gridworld", "uniform"): 4000,
}
RUNS = 700


@pytest.mark.parametrize(
    ("problem_id", "name"), [pytest.param(*key, id="-".join(key)) for key in EPISODES]
)
def test_simulated_errors_match(problem_id: str, name: str) -> None:
    problem = problems.find(problem_id)()
    mdp, policy = problem.mdp, problem.policy
    behavior = policy if name == "on-policy" else np.full(policy.shape, 1 / mdp.actions)
    episodes = EPISODES[problem_id, name]
    model = plain(mdp, policy)
    collected = counts(model, behavior, episodes, RUNS, np.random.default_rng(2022))
    for known in (False, True):
        estimates = collected.values(model, known_transitions=known)
        scaled = episodes * (estimates - policy_value(mdp, policy)) ** 2
        predicted = estimation_variance(mdp, policy, behavior, known_transitions=known)
        standard_error = scaled.std(ddof=1) / np.sqrt(RUNS)
        assert standard_error < 0.07 * predicted  # so that the comparison means something
        assert abs(scaled.mean() - predicted) < 4 * standard_error

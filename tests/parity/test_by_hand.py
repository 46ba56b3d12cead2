"""Simulation against a loop written by hand, on the same stream of random numbers."""

import numpy as np
import pytest

from revar import simulate
from revar.strategies import ReducedVariance, Strategy, find_strategy
from tests.parity.by_hand import Run
from tests.parity.models import PROBLEMS
from tests.plain_simulation import plain

EPISODES = 80
STRATEGIES: list[str | Strategy] = [
    "on-policy",
    "uniform",
    "oracle",
    "cb-var",
    "revar",
    ReducedVariance(confidence_scale=0.1),
]
NORMAL = {name: problem for name, problem in PROBLEMS.items() if problem.mdp.reward_law == "normal"}


def play(run: Run, strategy: Strategy) -> None:
    """One episode of that strategy."""
    policy = run.model.policy
    if isinstance(strategy, ReducedVariance):
        run.plan_revar(strategy.confidence_scale)
        run.play(run.tracked)
    elif strategy.id == "cb-var":
        run.play(lambda state: run.largest(run.index_of_cb_var, state))
    elif strategy.id == "oracle":
        mean = (run.model.chance * run.model.mean).sum(axis=2, keepdims=True)
        spread = run.model.std**2 + (run.model.mean - mean) ** 2
        deviation = np.sqrt((run.model.chance * spread).sum(axis=2))
        scores = run.proportions(deviation, run.model.chance)
        run.scores = scores / scores.sum(axis=1, keepdims=True)
        run.play(run.tracked)
    else:
        support = policy > 0
        run.scores = policy if strategy.id == "on-policy" else support / support.sum(1)[:, None]
        run.play(run.sampled)


@pytest.mark.parametrize("name", NORMAL)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_the_engine_plays_what_is_written_by_hand(strategy: str | Strategy, name: str) -> None:
    problem = NORMAL[name]
    result = simulate(
        problem.mdp,
        problem.policy,
        strategy,
        episodes=EPISODES,
        runs=2,
        seed=11,
        checkpoints=[EPISODES],
    )
    for number in range(2):
        stream = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(number,)))
        run = Run(plain(problem.mdp, problem.policy), EPISODES, stream)
        for _ in range(EPISODES):
            play(run, find_strategy(strategy))
        assert run.visits.tolist() == result.visits[number].tolist()
        assert run.estimate() == pytest.approx(result.estimates[number, 0], rel=1e-10, abs=1e-12)


def test_streams_are_the_children_of_the_seed() -> None:
    children = np.random.SeedSequence(11).spawn(3)
    for number, child in enumerate(children):
        twin = np.random.SeedSequence(11, spawn_key=(number,))
        assert child.generate_state(4).tolist() == twin.generate_state(4).tolist()

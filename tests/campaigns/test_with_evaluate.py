"""One worker and no failures: exactly the decisions of `evaluate` with the same seed."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import revar
from revar.campaigns import MemoryStorage
from revar.strategies import strategies
from revar.strategies.strategy import Strategy


def played(env: Any, campaign: revar.Campaign, seed: int) -> None:
    """A worker around a Gymnasium environment; only the first reset is seeded."""
    observation, _ = env.reset(seed=seed)
    for episode in campaign.episodes():
        if episode.number > 0:
            observation, _ = env.reset()
        while not episode.over:
            observation, reward, terminated, truncated, _ = env.step(episode.act(int(observation)))
            episode.reward(float(reward), None if terminated else int(observation))
            if truncated:
                episode.finish()


def without_model() -> list[str]:
    return [name for name in strategies.ids() if not strategies.find(name)().needs_model]


@pytest.mark.parametrize("strategy", without_model())
def test_gridworld(strategy: str) -> None:
    problem = revar.find_problem("gridworld")
    question: dict[str, Any] = {"strategy": strategy, "episodes": 40, "seed": 7}
    expected = revar.evaluate(revar.to_gymnasium(problem.mdp), problem.policy, **question)
    campaign = revar.Campaign.create(
        MemoryStorage(), "same", policy=problem.policy, horizon=problem.mdp.horizon, **question
    )
    played(revar.to_gymnasium(problem.mdp), campaign, seed=7)
    _same(campaign, expected)


def test_frozen_lake_with_a_policy_that_is_sent() -> None:
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=30)
    policy = [0.1, 0.4, 0.4, 0.1]
    question: dict[str, Any] = {"strategy": "revar", "episodes": 60, "discount": 0.9, "seed": 3}
    expected = revar.evaluate(env, lambda seen: policy, **question)
    campaign = revar.Campaign.create(MemoryStorage(), "same", actions=4, horizon=30, **question)
    observation, _ = env.reset(seed=3)
    for episode in campaign.episodes():
        while not episode.over:
            action = episode.act(int(observation), policy)
            observation, reward, terminated, _, _ = env.step(action)
            episode.reward(float(reward), None if terminated else int(observation))
        observation, _ = env.reset()
    _same(campaign, expected)


@pytest.mark.parametrize("strategy", ["flow", "on-policy"])
@pytest.mark.parametrize("limits", [None, revar.Limits(max_ratio=2.0, min_return="90%")])
def test_a_budget_of_steps_with_limits(strategy: str, limits: revar.Limits | None) -> None:
    problem = revar.find_problem("gridworld")
    question: dict[str, Any] = {"strategy": strategy, "steps": 350, "seed": 7, "limits": limits}
    expected = revar.evaluate(revar.to_gymnasium(problem.mdp), problem.policy, **question)
    campaign = revar.Campaign.create(
        MemoryStorage(), "same", policy=problem.policy, horizon=problem.mdp.horizon, **question
    )
    played(revar.to_gymnasium(problem.mdp), campaign, seed=7)
    _same(campaign, expected)
    assert campaign.status().used == expected.steps


def _same(campaign: revar.Campaign, expected: revar.EvaluationResult) -> None:
    data = campaign.dataset()
    labels, known = data.labels, expected.dataset.labels
    assert labels is not None
    assert known is not None
    assert data.actions.tolist() == expected.dataset.actions.tolist()
    assert [labels[s] for s in data.states] == [known[s] for s in expected.dataset.states]
    assert np.array_equal(data.rewards, expected.dataset.rewards)
    assert np.array_equal(data.propensities, expected.dataset.propensities, equal_nan=True)
    assert campaign.estimate().value == expected.value
    assert campaign.estimate().standard_error == expected.standard_error


def test_every_strategy_can_be_stored() -> None:
    """A campaign is opened with the very strategy it was created with."""
    changed: list[Strategy] = [
        strategies.find("revar")(confidence_scale=0.25, replan_every=3),  # type: ignore[call-arg]
        *(strategies.find(name)() for name in without_model()),
    ]
    for number, strategy in enumerate(changed):
        storage = MemoryStorage()
        revar.Campaign.create(
            storage, f"c{number}", actions=2, horizon=2, episodes=2, strategy=strategy
        )
        found = revar.Campaign.open(storage, f"c{number}")
        assert found.read(lambda state, _: state.collection.strategy) == strategy

"""What a user's mypy says of policies, environments and strategies.

mypy checks this file with the others: an error that is expected here and does not come is an
unused `type: ignore`, which is an error itself.
"""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import revar
from revar.errors import InputError
from revar.strategies.fixed_plans import OnPolicy
from tests.environments.custom import Corridor


class Drawing:
    def sample(self, observation: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        return rng.standard_normal(1), rng.standard_normal(1)


class Trained:
    def predict(
        self, observation: Any, state: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        return 0, state


def act(observation: int) -> list[float]:
    return [0.5, 0.5]


POLICIES: list[revar.PolicyLike] = [
    "uniform",
    Path("policy.npy"),
    np.full((3, 2), 0.5),
    [[0.5, 0.5]] * 3,
    [0, 1, 1],
    act,
    lambda observation: [0.5, 0.5],
    revar.uniform_policy(2),
    revar.epsilon_greedy([0, 1, 1], 0.1, 2),
    revar.DeterministicPolicy(lambda observation: 1),
    revar.GaussianPolicy(lambda observation: [0.0], 1.0),
    Drawing(),
    Trained(),
]
ENVIRONMENTS: list[revar.EnvironmentLike] = [
    "FrozenLake-v1",
    Corridor(3),
    Corridor,
    lambda: Corridor(3),
    gymnasium.make("FrozenLake-v1"),
    gymnasium.vector.SyncVectorEnv([Corridor]),
    revar.find_problem("bandit"),
    revar.find_problem("bandit").mdp,
]
STRATEGIES: list[revar.StrategyLike] = ["flow", OnPolicy()]
RIGHT: dict[str, revar.PolicyLike] = {"fair": "uniform", "right": [1, 1, 1]}


def test_what_is_no_policy_environment_or_strategy_is_refused_by_both() -> None:
    """By mypy, which wants the comments below, and by the functions."""
    no_policy: Any = (0.5, 7, b"x")
    for each in no_policy:
        with pytest.raises(InputError):
            revar.evaluate(Corridor(3), each, episodes=4, horizon=3, strategy="on-policy")
    with pytest.raises(InputError):
        revar.evaluate(Corridor(3), 0.5, episodes=4, horizon=3)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        revar.evaluate(3.5, "uniform", episodes=4, horizon=3)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        revar.evaluate(Corridor(3), "uniform", strategy=7, episodes=4)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        revar.compare(Corridor(3), {"a": 0.1, "b": "uniform"}, episodes=4)  # type: ignore[dict-item]
    with pytest.raises(InputError):
        revar.compare(Corridor(3), ["uniform", "uniform"], episodes=4)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        revar.simulate(revar.find_problem("bandit").mdp, [[0.2] * 5], 7, episodes=1, runs=1)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        revar.advise(3.5, "uniform", half_width=1.0)  # type: ignore[arg-type]


def test_what_they_take_is_taken() -> None:
    settings: Any = {"episodes": 4, "horizon": 3, "strategy": "on-policy"}
    assert revar.compare(Corridor(3), RIGHT, **settings).episodes == 4
    for strategy in STRATEGIES:
        assert revar.strategies.find_strategy(strategy).id in ("flow", "on-policy")
    elsewhere = (Path, Drawing, revar.DeterministicPolicy, revar.GaussianPolicy)
    for policy in (each for each in POLICIES if not isinstance(each, elsewhere)):
        assert revar.evaluate(Corridor(3), policy, **settings).episodes == 4

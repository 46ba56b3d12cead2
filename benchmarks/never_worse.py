"""Is a value with critics ever worse than the mean return? By errors of runs, not standard errors.

`python -m benchmarks.never_worse --episodes 25` plays the problems of the study of critics and pure
noise, run by run, and compares the squared errors of both estimates: those from the mean of all
episodes. A ratio is that of their means, with its standard error.
"""

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from rich.console import Console

from revar.critics.estimate import CorrectedReturns, default_families, estimate_returns
from revar.evaluation.returns.fitting import make_experience
from revar.evaluation.returns.play import make_player
from revar.experiments.critics import load_critic_study

RESETS = 10  # for each episode


class Noise(gymnasium.Env[Any, Any]):
    """Observations and rewards that nothing explains."""

    observation_space = spaces.Box(-9.0, 9.0, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Begin."""
        super().reset(seed=seed, options=options)
        return self._see(), {}

    def step(self, action: Any) -> Any:
        """Whatever is done."""
        del action
        return self._see(), float(self.np_random.standard_normal()), False, False, {}

    def _see(self) -> Any:
        return self.np_random.standard_normal(3).clip(-9.0, 9.0).astype(np.float32)


def measure(
    env: Any, policy: Any, horizon: int, episodes: int, runs: int, critics: list[str] | None
) -> tuple[list[CorrectedReturns], float]:
    """What runs of so many episodes find, and the mean return of all of them."""
    opened = gymnasium.make(env) if isinstance(env, str) else env()
    player = make_player(opened, policy, horizon=horizon, seed=0)
    families, found = default_families(critics, episodes), []
    returns = []
    for run in range(runs):
        played = player.play(run * episodes, episodes)
        resets = player.resets(run * episodes * RESETS, episodes * RESETS)
        experience = make_experience(played, horizon, 1.0, resets)
        found.append(estimate_returns(experience, families, seed=run))
        returns.append(played.returns(1.0).mean())
    return found, float(np.mean(returns))


def compare_errors(found: list[CorrectedReturns], truth: float) -> tuple[float, float, float]:
    """The ratio of mean squared errors, its standard error, and that of estimated variances."""
    errors, plain = (
        np.array([getattr(each, name) - truth for each in found]) ** 2
        for name in ("value", "mean_return")
    )
    ratio = float(errors.sum() / plain.sum())
    spread = float(np.sqrt(np.sum((errors - ratio * plain) ** 2)) / plain.sum())
    said = np.mean([(each.standard_error / each.mean_return_error) ** 2 for each in found])
    return ratio, spread, float(said)


def main() -> None:
    """Print a line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=25)
    parser.add_argument("--runs", type=int, default=80)
    parser.add_argument("--critics", nargs="+", help="families; by default those that are usual")
    parser.add_argument("--problem", default="", help="problems whose name contains this")
    options = parser.parse_args()
    problems = [each for each in load_critic_study().problems if each.available]
    rows: list[tuple[str, Any, Any, int]] = [
        (each.name, each.environment, each.build_policy(), each.horizon) for each in problems
    ]
    console = Console()
    for name, env, policy, horizon in [*rows, ("noise", Noise, "uniform", 50)]:
        if options.problem not in name:
            continue
        found, truth = measure(
            env, policy, horizon, options.episodes, options.runs, options.critics
        )
        ratio, spread, said = compare_errors(found, truth)
        console.print(f"| {name} | {ratio:.2f} ± {spread:.2f} | {said:.2f} |", highlight=False)


if __name__ == "__main__":
    main()

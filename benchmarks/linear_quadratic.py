"""Linear systems with quadratic rewards: returns whose mean is known, to try critics on.

    s' = A s + b a + w,   r = -s's - 0.1 a^2,   for a fixed number of steps

The action is normal with mean k's, or -1 or 1 with mean k's: softmax of -+ artanh(k's). Noise w and
first states are uniform, so that |k's| stays below 1. `python -m benchmarks.linear_quadratic` says
how far estimates are from the true values, in standard errors.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from scipy.stats import t as student

from revar.critics.estimate import CorrectedReturns, estimate_returns
from revar.critics.interface import CriticFamily, Experience
from revar.critics.linear import LinearFamily
from revar.model.arrays import FloatArray
from revar.model.law import Categorical, Law, Normal

ACTION_COST = 0.1


@dataclass(frozen=True)
class LinearQuadratic:
    """A stable system of some dimensions; `normal` or else two actions."""

    dimensions: int
    normal: bool
    horizon: int = 20
    discount: float = 0.97
    noise: float = 0.1  # w is uniform within this
    first: float = 1.0  # and so is the first state, within this
    spread: float = 0.4  # standard deviation of a normal action

    @property
    def matrix(self) -> FloatArray:
        """A: a shrinking rotation."""
        angles = np.linspace(0.2, 0.9, max(self.dimensions // 2, 1))
        rotation = np.eye(self.dimensions)
        for i in range(self.dimensions // 2):
            cos, sin = np.cos(angles[i]), np.sin(angles[i])
            rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, -sin], [sin, cos]]
        return np.asarray(0.8 * rotation)

    @property
    def push(self) -> FloatArray:
        """b, of length 0.3."""
        return np.full(self.dimensions, 0.3 / np.sqrt(self.dimensions))

    @property
    def gain(self) -> FloatArray:
        """k; |k's| < 1 for every state that can occur."""
        steepness = np.cos(np.arange(self.dimensions))
        largest = self.first * np.sqrt(self.dimensions)
        largest = max(largest, (0.3 + self.noise * np.sqrt(self.dimensions)) / 0.2)
        return np.asarray(-0.95 * steepness / np.linalg.norm(steepness) / largest)

    @property
    def law(self) -> Law:
        """Of the action."""
        return Law((Normal(1) if self.normal else Categorical(2),))

    def value(self) -> float:
        """The expected return: the recursion of quadratic values, from the last step back."""
        gain, push = self.gain, self.push
        closed = self.matrix + np.outer(push, gain)
        both = np.outer(gain, gain)
        squares, constant = np.zeros_like(both), 0.0
        for _ in range(self.horizon):
            force = push @ squares @ push
            noise = np.trace(squares) * self.noise**2 / 3 + constant
            squares = np.eye(self.dimensions) + self.discount * closed.T @ squares @ closed
            if self.normal:
                squares += ACTION_COST * both
                constant = ACTION_COST * self.spread**2
                constant += self.discount * (self.spread**2 * force + noise)
            else:
                squares -= self.discount * force * both
                constant = ACTION_COST + self.discount * (force + noise)
        return float(-np.trace(squares) * self.first**2 / 3 - constant)

    def play(self, episodes: int, resets: int, rng: np.random.Generator) -> Experience:
        """Episodes, all at once, and first states of others."""
        states = self._first_states(episodes, rng)
        inputs, actions, noises, rewards = [], [], [], []
        for _ in range(self.horizon):
            mean = states @ self.gain
            if self.normal:
                noise = rng.standard_normal((episodes, 1))
                action = mean + self.spread * noise[:, 0]
                taken = action
            else:
                chance = (1.0 + mean) / 2
                noise = np.column_stack([1.0 - chance, chance])
                taken = (rng.random(episodes) < chance).astype(np.float64)
                action = 2.0 * taken - 1.0
            inputs.append(states)
            actions.append(taken[:, None])
            noises.append(noise)
            rewards.append(-np.sum(states**2, axis=1) - ACTION_COST * action**2)
            drift = rng.uniform(-self.noise, self.noise, states.shape)
            states = states @ self.matrix.T + np.outer(action, self.push) + drift
        start = np.arange(episodes + 1) * self.horizon
        elapsed = np.tile(np.arange(self.horizon) / self.horizon, episodes)
        taken, noise = _by_episode(actions), _by_episode(noises)
        return Experience(
            start,
            _by_episode(inputs),
            elapsed,
            np.stack(rewards, axis=1).ravel(),
            self.law.scores(taken, noise),
            taken,
            noise,
            self.law,
            self.discount,
            self._first_states(resets, rng),
        )

    def _first_states(self, count: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-self.first, self.first, (count, self.dimensions))


def _by_episode(steps: list[FloatArray]) -> FloatArray:
    every = np.stack(steps, axis=1)
    return every.reshape(-1, every.shape[2])


@dataclass(frozen=True)
class Errors:
    """Estimates of many runs against the true value."""

    errors: FloatArray  # [run]
    standard_errors: FloatArray  # [run] as estimated
    ratios: FloatArray  # [run] the squared standard error over that of the mean return
    confidence_factor: float

    @property
    def covered(self) -> float:
        """How often the 95% interval held the true value."""
        return float(np.mean(np.abs(self.scaled) <= self.confidence_factor))

    @property
    def scaled(self) -> FloatArray:
        """Errors in their standard errors."""
        return self.errors / self.standard_errors

    @property
    def bias(self) -> float:
        """The mean error, in its own standard errors.

        Of errors as they are: scaled ones have a mean of their own where returns are skewed.
        """
        return float(self.errors.mean() / (self.errors.std(ddof=1) / np.sqrt(self.errors.size)))


def measure(
    problem: LinearQuadratic,
    families: list[CriticFamily],
    *,
    episodes: int,
    runs: int,
    seed: int = 0,
) -> Errors:
    """Errors over independent runs, with ten extra resets for each episode."""
    value = problem.value()
    errors, standard_errors, ratios = [], [], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        found: CorrectedReturns = estimate_returns(
            problem.play(episodes, 10 * episodes, rng), families, seed=run
        )
        errors.append(found.value - value)
        standard_errors.append(found.standard_error)
        ratios.append((found.standard_error / found.mean_return_error) ** 2)
    factor = float(student.ppf(0.975, episodes - 1))
    return Errors(np.array(errors), np.array(standard_errors), np.array(ratios), factor)


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=50)
    options = parser.parse_args()
    console = Console()
    for dimensions in (1, 4):
        for normal in (False, True):
            began = time.perf_counter()
            problem = LinearQuadratic(dimensions, normal)
            found = measure(problem, [LinearFamily()], episodes=options.episodes, runs=options.runs)
            console.print(
                f"{dimensions} dimensions, {problem.law}: mean error {found.bias:+.2f} of its "
                f"standard error, standard deviation {found.scaled.std(ddof=1):.2f}, 95% intervals "
                f"hold in {100 * found.covered:.1f}%, variance {np.median(found.ratios):.3f} of "
                f"the mean return's, {time.perf_counter() - began:.0f} s"
            )


if __name__ == "__main__":
    main()

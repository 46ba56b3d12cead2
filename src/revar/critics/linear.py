"""The linear stack: values and advantages by least squares on random features.

Values are solutions of least-squares temporal differences, zero after the last step of an episode,
for several bandwidths and ridges, and one Monte Carlo regression. Advantages are fitted twice: as a
regression of temporal differences on features times scores (Q), and through a model of the next
inputs and the reward, whose value is read off at a few draws of the action (M).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revar.critics.interface import FOLDS, Columns, Experience, Numbers
from revar.critics.learning import Learner, Ridges
from revar.critics.linear_critic import LinearColumns, LinearCritic
from revar.critics.stacking import fit_stack, fit_values
from revar.critics.sums import in_units
from revar.model.arrays import FloatArray

MOST_FEATURES = 300
FEWEST_FEATURES = 100


@dataclass(frozen=True)
class LinearFamily:
    """Linear critics on random features; the more episodes, the more features."""

    bandwidths: tuple[float, ...] = (0.5, 1.0, 2.0)
    ridges: Ridges = Ridges()  # noqa: RUF009 - it is frozen
    name: str = "linear"

    def cross_fit(self, experience: Experience, seed: int) -> Columns:
        """Critics for every world, and what they say of the steps that they serve."""
        found = [self._world(experience, seed, world) for world in range(FOLDS)]
        advantages, values, at_resets, means = (np.stack(each) for each in zip(*found, strict=True))
        first_values = values[:, experience.start[:-1]]
        names = self._names(advantages.shape[2])
        return Columns(names, advantages, first_values, at_resets, values, means)

    def fit(self, experience: Experience, seed: int) -> LinearCritic:
        """One critic from all episodes, with the weights that critics had across folds."""
        scaled, unit = in_units(experience)
        columns = self.cross_fit(scaled, seed)
        fitted = self.learner(scaled, range(FOLDS), seed).solve([range(FOLDS)])[0]
        weights = fit_stack(scaled, columns).weights.mean(axis=0)
        count = sum(each.shape[1] for each in fitted.value_weights)
        value_weights = fit_values(scaled, columns)[:count]
        return LinearCritic(fitted, value_weights * unit, weights * unit)

    def learner(self, experience: Experience, known: Sequence[int], seed: int) -> Learner:
        """What knows some folds, and solves for any set of them."""
        episodes = experience.start.size - 1
        features = min(MOST_FEATURES, FEWEST_FEATURES + episodes)
        return Learner(experience, known, features, self.bandwidths, self.ridges, seed)

    def _world(
        self, experience: Experience, seed: int, world: int
    ) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Advantages and values of all steps, values at resets and their means, in one world."""
        learner = self.learner(experience, folds_without(world), seed)
        critics = learner.solve(training_sets(world))
        advantages, values = [], []
        rows = []
        for fold, critic in enumerate(critics):
            for steps in learner.chunks(fold):
                said, coefficients = critic.values_and_coefficients(steps.scaled, steps.elapsed)
                advantages.append(np.einsum("nmc,nm->nc", coefficients, steps.scores))
                values.append(_widened(said, coefficients.shape[2]))
                rows.append(steps.rows)
        order = np.argsort(np.concatenate(rows))
        at_resets = [_reset_values(critic, experience) for critic in critics]
        width = advantages[0].shape[1]
        means = np.zeros((FOLDS, at_resets[0].shape[1]))
        if experience.resets.shape[0]:
            means = np.stack([each.mean(axis=0, dtype=np.float64) for each in at_resets])
        return (
            np.concatenate(advantages)[order],
            np.concatenate(values)[order],
            _widened(at_resets[world], width),
            _widened(means, width),
        )

    def _names(self, columns: int) -> tuple[str, ...]:
        marks = []
        for number, bandwidth in enumerate(self.bandwidths):
            marks += [f"{bandwidth:g} {ridge:g}" for ridge in self.ridges.differences]
            marks += ["Monte Carlo"] if number == len(self.bandwidths) // 2 else []
        kinds = ("Q", "M") if columns > len(marks) else ("Q",)
        return tuple(f"{self.name} {kind} {mark}" for kind in kinds for mark in marks)


def _widened(values: Numbers, columns: int) -> Numbers:
    """Values, and zeros for columns that have none of their own."""
    return np.pad(values, ((0, 0), (0, columns - values.shape[1])))


def _reset_values(critic: LinearColumns, experience: Experience) -> Numbers:
    elapsed = np.zeros(experience.resets.shape[0], dtype=np.float32)
    return critic.values(critic.scaling(experience.resets), elapsed)


def folds_without(*left_out: int) -> list[int]:
    """The other folds."""
    return [fold for fold in range(FOLDS) if fold not in left_out]


def training_sets(world: int) -> list[list[int]]:
    """For every fold, the folds that its critics in a world are trained on."""
    return [folds_without(world, served) for served in range(FOLDS)]


def advantages_of_values(experience: Experience, values: FloatArray, seed: int) -> Numbers:
    """Advantages of fixed values [step], learned in every world, [world, step, 1]."""
    found = np.zeros((FOLDS, values.size, 1), dtype=np.float32)
    column = values.astype(np.float32)[:, None]
    for world in range(FOLDS):
        learner = LinearFamily((1.0,)).learner(experience, folds_without(world), seed)
        solved = learner.solve_scores(training_sets(world), 0, lambda steps, _: column[steps.rows])
        for fold, weights in enumerate(solved):
            for steps in learner.chunks(fold):
                kept = learner.bases[0](steps.scaled, steps.elapsed)[:, : weights.shape[1]]
                coefficients = kept @ weights[:, :, 0].T
                found[world, steps.rows, 0] = np.einsum("nm,nm->n", coefficients, steps.scores)
    return found

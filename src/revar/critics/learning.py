"""Least squares over steps: sums by fold, from which any set of folds is solved."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from revar.critics.features import Features, Scaling
from revar.critics.interface import Experience, Numbers
from revar.critics.linear_critic import CHUNK, LinearColumns, MoveModel
from revar.critics.nodes import action_design, law_nodes
from revar.critics.sums import sums_to_go
from revar.model.arrays import BoolArray, FloatArray, IntArray

MOST_STEPS = 100_000  # of a fold that are learned from
MOST_PRODUCTS = 600  # of features with scores, or with the design of actions, in one regression
MODEL_FEATURES = 120
MOST_NODES = 12  # draws of an action at which a model is read; a law with more has no model


@dataclass(frozen=True)
class Ridges:
    """Ridges, each a share of the steps."""

    differences: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)
    monte_carlo: float = 1e-2
    scores: float = 1e-2
    model: float = 1e-4


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of whole episodes of one fold."""

    rows: IntArray  # [n] where they are among all steps
    last: BoolArray  # [n] the last step of an episode
    scaled: Numbers  # [n, D]
    elapsed: Numbers  # [n]
    rewards: Numbers  # [n]
    to_go: Numbers  # [n]
    scores: Numbers  # [n, m]
    design: Numbers  # [n, 1 + g]

    def next(self, values: Numbers) -> Numbers:
        """What the next step has, and zero after the last of an episode."""
        following = np.zeros_like(values)
        following[:-1] = values[1:]
        following[self.last] = 0.0
        return following


class Learner:
    """Regressions of one world, whose scaling was fitted on `known` folds alone."""

    def __init__(
        self,
        experience: Experience,
        known: Sequence[int],
        features: int,
        bandwidths: Sequence[float],
        ridges: Ridges,
        seed: int,
    ) -> None:
        rng = np.random.default_rng(seed)
        used = np.isin(experience.folds[experience.episode_of_step], known)
        self.experience, self.ridges = experience, ridges
        self.scaling = Scaling.fit(experience.inputs[used], rng)
        inputs = self.scaling.shift.size
        self.bases = tuple(Features.draw(inputs, features, each, rng) for each in bandwidths)
        self.middle = len(self.bases) // 2  # has the Monte Carlo regression and the model
        later = experience.elapsed[used & (experience.elapsed > 0)]
        self.tick = float(later.min()) if later.size else 0.0
        self.nodes = law_nodes(experience.law)
        self.has_model = 0 < self.nodes.design.shape[0] <= MOST_NODES
        self._design = action_design(experience.law, experience.actions, experience.noise)
        self._to_go = sums_to_go(experience, experience.rewards)
        self._sums = {fold: self._fold_sums(fold) for fold in known}

    def chunks(self, fold: int, most: int | None = None) -> Iterator[Steps]:
        """The steps of a fold, some whole episodes at a time, up to about `most` of them."""
        experience = self.experience
        episodes = np.flatnonzero(experience.folds == fold)
        lengths = np.diff(experience.start)[episodes]
        ends = np.cumsum(lengths)
        if most is not None:
            kept = max(1, int(np.searchsorted(ends, most, side="right")))
            episodes, lengths, ends = episodes[:kept], lengths[:kept], ends[:kept]
        for group in np.split(np.arange(episodes.size), np.flatnonzero(np.diff(ends // CHUNK)) + 1):
            first, size = experience.start[episodes[group]], lengths[group]
            within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            rows = np.repeat(first, size) + within
            yield self._steps(rows, within + 1 == np.repeat(size, size))

    def _steps(self, rows: IntArray, last: BoolArray) -> Steps:
        experience = self.experience

        def single(values: FloatArray) -> Numbers:
            return values[rows].astype(np.float32)

        one = np.ones((rows.size, 1), dtype=np.float32)
        return Steps(
            rows,
            last,
            self.scaling(experience.inputs[rows]),
            single(experience.elapsed),
            single(experience.rewards),
            single(self._to_go),
            single(experience.scores),
            np.concatenate([one, single(self._design)], axis=1),
        )

    def _fold_sums(self, fold: int) -> list[dict[str, Any]]:
        """For every basis, sums by name over the steps of a fold."""
        found: list[dict[str, Any]] = [{} for _ in self.bases]
        for steps in self.chunks(fold, MOST_STEPS):
            for number, basis in enumerate(self.bases):
                features = basis(steps.scaled, steps.elapsed)
                terms = self._terms(steps, features, number)
                for name, term in terms.items():
                    found[number][name] = found[number].get(name, 0.0) + term.astype(np.float64)
        return found

    def _terms(self, steps: Steps, features: Numbers, number: int) -> dict[str, Numbers]:
        change = features - np.float32(self.experience.discount) * steps.next(features)
        terms = {
            "steps": np.array(steps.rows.size),
            "differences": features.T @ change,
            "rewards": features.T @ steps.rewards,
        }
        if steps.scores.shape[1]:
            products = multiply(features, steps.scores)
            terms["scores"] = products.T @ products
        if number == self.middle:
            terms["squares"] = features.T @ features
            terms["to_go"] = features.T @ steps.to_go
            if self.has_model:
                terms.update(self._model_terms(steps, features))
        return terms

    def _model_terms(self, steps: Steps, features: Numbers) -> dict[str, Numbers]:
        products = multiply(features[:, :MODEL_FEATURES], steps.design)
        move = steps.next(steps.scaled) - steps.scaled
        move[steps.last] = 0.0
        # An episode that is cut by the horizon would have gone on.
        going = ~steps.last | (steps.elapsed + self.tick > 1.0 - self.tick / 2)
        ends = products[steps.last]
        squares = products.T @ products
        return {
            "outcomes": squares,
            "moves": squares - ends.T @ ends,  # nothing is known of the inputs after the last step
            "targets": products.T
            @ np.column_stack([move, steps.rewards, going.astype(np.float32)]),
        }

    def solve(self, sets: Sequence[Sequence[int]]) -> list[LinearColumns]:
        """What every set of folds says."""
        values = [
            tuple(self._solve_values(folds, number) for number in range(len(self.bases)))
            for folds in sets
        ]
        advantages = self._solve_advantages(sets, values)
        return [
            LinearColumns(
                self.scaling,
                self.bases,
                values[i],
                advantages[i],
                self._solve_model(folds) if self.has_model else None,
                self.middle,
            )
            for i, folds in enumerate(sets)
        ]

    def _sum(self, folds: Sequence[int], number: int, name: str) -> Any:
        return sum(self._sums[fold][number][name] for fold in folds)

    def _solve_values(self, folds: Sequence[int], number: int) -> Numbers:
        steps = self._sum(folds, number, "steps")
        differences = self._sum(folds, number, "differences")
        rewards = self._sum(folds, number, "rewards")
        eye = np.eye(rewards.size)
        found = [
            np.linalg.solve(differences + ridge * steps * eye, rewards)
            for ridge in self.ridges.differences
        ]
        if number == self.middle:
            squares, to_go = (self._sum(folds, number, name) for name in ("squares", "to_go"))
            found.append(solve_ridge(squares, to_go, self.ridges.monte_carlo * steps))
        return np.column_stack(found).astype(np.float32)

    def _solve_advantages(
        self, sets: Sequence[Sequence[int]], values: Sequence[tuple[Numbers, ...]]
    ) -> list[tuple[Numbers, ...]]:
        """Regressions of temporal differences, by each set's own values, on features x scores."""
        if not self.experience.scores.shape[1]:
            return [tuple(np.zeros((0, *each.shape), np.float32) for each in v) for v in values]
        found: list[list[Numbers]] = [[] for _ in sets]
        for number in range(len(self.bases)):
            count = values[0][number].shape[1]
            weights = np.concatenate([each[number] for each in values], axis=1)

            def valued(steps: Steps, features: Numbers, weights: Numbers = weights) -> Numbers:
                del steps
                return np.asarray(features @ weights)

            solved = self.solve_scores(sets, number, valued)
            for i, each in enumerate(solved):
                found[i].append(each[:, :, i * count : (i + 1) * count])
        return [tuple(each) for each in found]

    def solve_scores(
        self,
        sets: Sequence[Sequence[int]],
        number: int,
        valued: Callable[[Steps, Numbers], Numbers],
    ) -> list[Numbers]:
        """For every set, weights of features x scores, [m, features, values], on one basis.

        `valued` gives values [n, values] for steps and their features, and what is regressed are
        their temporal differences.
        """
        products = {fold: self._difference_products(fold, number, valued) for fold in self._sums}
        found = []
        for folds in sets:
            squares = self._sum(folds, number, "scores")
            right = sum(products[fold] for fold in folds)
            ridge = self.ridges.scores * self._sum(folds, number, "steps")
            solved = solve_ridge(squares, right, ridge).astype(np.float32)
            found.append(solved.reshape(self.experience.scores.shape[1], -1, right.shape[1]))
        return found

    def _difference_products(
        self, fold: int, number: int, valued: Callable[[Steps, Numbers], Numbers]
    ) -> Any:
        total: Any = 0.0
        for steps in self.chunks(fold, MOST_STEPS):
            features = self.bases[number](steps.scaled, steps.elapsed)
            values = valued(steps, features)
            differences = steps.rewards[:, None] - values
            differences += np.float32(self.experience.discount) * steps.next(values)
            kept = features[:, : kept_features(features.shape[1], steps.scores.shape[1])]
            products = [kept.T @ (differences * score[:, None]) for score in steps.scores.T]
            total = total + np.concatenate(products).astype(np.float64)
        return total

    def _solve_model(self, folds: Sequence[int]) -> MoveModel:
        targets = self._sum(folds, self.middle, "targets")
        ridge = self.ridges.model * self._sum(folds, self.middle, "steps")
        moves = solve_ridge(self._sum(folds, self.middle, "moves"), targets[:, :-2], ridge)
        outcomes = solve_ridge(self._sum(folds, self.middle, "outcomes"), targets[:, -2:], ridge)
        weights = np.concatenate([moves, outcomes], axis=1).astype(np.float32)
        shape = (1 + self.nodes.design.shape[1], -1, weights.shape[1])
        return MoveModel(weights.reshape(shape), self.nodes, self.tick, self.experience.discount)


def kept_features(features: int, factors: int) -> int:
    """How many features are multiplied with so many factors: the first ones."""
    return max(1, min(features, MOST_PRODUCTS // factors))


def multiply(features: Numbers, factors: Numbers) -> Numbers:
    """Features times each factor, one factor after the other, [n, factors * kept features]."""
    kept = features[:, : kept_features(features.shape[1], factors.shape[1])]
    return np.concatenate([kept * factor[:, None] for factor in factors.T], axis=1)


def solve_ridge(squares: FloatArray, right: FloatArray, ridge: float) -> FloatArray:
    """Ridge regression from sums of products; more ridge where rounding asks for it."""
    eye = np.eye(squares.shape[0])
    while True:
        try:
            return np.asarray(linalg.solve(squares + ridge * eye, right, assume_a="pos"))
        except linalg.LinAlgError:
            ridge = 10.0 * max(ridge, 1e-12 * float(np.trace(squares)), 1e-300)

"""How much to believe each critic: weights, fitted in a world, that a useless critic loses.

With advantages A of mean zero given the past, the variance of G - sum of discounted A w is least
where w solves a regression, over steps, of what follows a step on its advantages: products of terms
of different steps have mean zero. Weights are not negative, and shrunk as if they were drawn from a
normal law of variance 1 about 0: an advantage that says little beside the noise is not believed.
One factor besides is fitted on folds that the weights have not seen.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from revar.critics.interface import FOLDS, Columns, Experience
from revar.critics.sums import episode_sums, sums_to_go
from revar.model.arrays import FloatArray, IntArray

PASSES = 2  # of weights; each subtracts from what follows a step what the last one explains of it
LEAST_RESETS = 2  # with fewer there is no start-state term


@dataclass(frozen=True, eq=False)
class Stack:
    """What is believed of the critics in every world."""

    weights: FloatArray  # [world, C] of advantages
    start_weights: FloatArray  # [world, C] of values at first observations
    weights_without: FloatArray  # [world, fold, C] fitted without that fold, too
    start_weights_without: FloatArray  # [world, fold, C]

    def reset_values(self, columns: Columns) -> FloatArray:
        """What is said of the extra resets in every world, [world, R]."""
        return np.stack(
            [columns.reset_values[world] @ self.start_weights[world] for world in range(FOLDS)]
        )


def fit_stack(experience: Experience, columns: Columns) -> Stack:
    """Weights for every world, from the folds that it knows."""
    shape = (FOLDS, FOLDS, len(columns.names))
    weights, start_weights = np.zeros(shape), np.zeros(shape)
    for world in range(FOLDS):
        weights[world] = _fit_advantages(experience, columns, world)
        if experience.resets.shape[0] >= LEAST_RESETS:
            said = columns.advantages[world] @ weights[world, world]
            explained = episode_sums(experience, said)
            start_weights[world] = _fit_start(experience, columns, world, explained)
    own = np.arange(FOLDS)
    return Stack(weights[own, own], start_weights[own, own], weights, start_weights)


def fit_values(experience: Experience, columns: Columns) -> FloatArray:
    """Weights of the columns' values as guesses of what follows a step, from all folds."""
    if columns.values is None:
        return np.zeros(len(columns.names))
    values = np.concatenate([columns.values[world][:, None] for world in range(FOLDS)], axis=1)
    served = values.mean(axis=1).astype(np.float64)
    targets = sums_to_go(experience, experience.rewards)
    return Regression.of(served, targets, _fold_of_step(experience)).weights([])


def _fit_advantages(experience: Experience, columns: Columns, world: int) -> FloatArray:
    """Weights of advantages without the world's fold and each fold, [fold, C]."""
    said = columns.advantages[world].astype(np.float64)
    weights = np.zeros(said.shape[1])
    if not said.any():
        return np.zeros((FOLDS, weights.size))
    episode, fold = experience.episode_of_step, _fold_of_step(experience)
    baseline = _baseline(experience, columns, world)
    for _ in range(PASSES):
        # What follows a step, less what advantages after it explain, is for its own to explain.
        explained = said @ weights
        following = sums_to_go(experience, experience.rewards - explained) + explained
        targets = (following - baseline) * experience.discounts
        regression = Regression.of(said * experience.discounts[:, None], targets, fold)
        weights = regression.weights([world])
    return regression.shrunk_weights(world, episode)


def _fold_of_step(experience: Experience) -> IntArray:
    return experience.folds[experience.episode_of_step]


def _baseline(experience: Experience, columns: Columns, world: int) -> FloatArray:
    """A guess of what follows each step, from what was known before its action."""
    known = _fold_of_step(experience) != world
    to_go = sums_to_go(experience, experience.rewards)
    least, most = to_go[known].min(), to_go[known].max()
    design = [np.ones_like(to_go), experience.elapsed, experience.elapsed**2]
    if columns.values is not None:
        design.extend(np.clip(columns.values[world], least, most).T.astype(np.float64))
    table = np.column_stack(design)
    scale = np.maximum(np.abs(table[known]).max(axis=0), 1e-300)
    table /= scale
    squares = table[known].T @ table[known]
    ridge = 1e-6 * np.trace(squares) / squares.shape[0]
    squares[np.diag_indices_from(squares)] += ridge
    found = np.linalg.solve(squares, table[known].T @ to_go[known])
    return np.asarray(np.clip(table @ found, least, most))


def _fit_start(
    experience: Experience, columns: Columns, world: int, explained: FloatArray
) -> FloatArray:
    """Weights of the values at first observations, for as many extra resets as there are."""
    values = columns.first_values[world].astype(np.float64)
    targets = episode_sums(experience, experience.rewards) - explained
    known = experience.folds != world
    values -= values[known].mean(axis=0)
    targets -= targets[known].mean()
    regression = Regression.of(values, targets, experience.folds)
    resets, episodes = experience.resets.shape[0], targets.size
    share = resets / (resets + episodes)  # the best, as the mean over resets varies, too
    return np.asarray(regression.shrunk_weights(world, np.arange(episodes)) * share)


@dataclass(frozen=True, eq=False)
class Regression:
    """Targets on columns, over steps or episodes, with sums by fold."""

    columns: FloatArray  # [row, C]
    targets: FloatArray  # [row]
    fold: IntArray  # [row]
    squares: FloatArray  # [fold, C, C]
    products: FloatArray  # [fold, C]
    totals: FloatArray  # [fold] of squared targets
    rows: IntArray  # [fold]

    @classmethod
    def of(cls, columns: FloatArray, targets: FloatArray, fold: IntArray) -> "Regression":
        """With the sums of every fold."""
        parts = [(columns[fold == each], targets[fold == each]) for each in range(FOLDS)]
        return cls(
            columns,
            targets,
            fold,
            np.stack([x.T @ x for x, _ in parts]),
            np.stack([x.T @ y for x, y in parts]),
            np.array([y @ y for _, y in parts]),
            np.array([y.size for _, y in parts]),
        )

    def weights(self, without: list[int]) -> FloatArray:
        """From the other folds, not negative; the ridge is the variance of what they leave."""
        kept = [fold for fold in range(FOLDS) if fold not in without]
        squares, products = self.squares[kept].sum(axis=0), self.products[kept].sum(axis=0)
        total, rows = float(self.totals[kept].sum()), int(self.rows[kept].sum())
        weights = np.zeros(products.size)
        used = np.diag(squares) > 0
        if not used.any() or total <= 0:
            return weights
        squares, products = squares[np.ix_(used, used)], products[used]
        noise = total / rows
        for _ in range(2):  # the second time with the noise that the first one leaves
            found = _not_negative(squares, products, noise)
            left = float(total - 2 * found @ products + found @ squares @ found)
            noise = min(noise, max(left, 1e-9 * total) / rows)
        weights[used] = found
        return weights

    def shrunk_weights(self, world: int, episode: IntArray) -> FloatArray:
        """Weights of a world without each fold, [fold, C], with the factor to be kept of them.

        The factor is the slope on predictions of folds that weights have not seen, less where the
        slope, whose error is taken from sums by episode, is uncertain.
        """
        weights = np.stack([self.weights([world, fold]) for fold in range(FOLDS)])
        predicted = np.einsum("rc,rc->r", self.columns, weights[self.fold])
        predicted[self.fold == world] = 0.0
        products = np.bincount(episode, predicted * self.targets)
        squares = np.bincount(episode, predicted**2)
        total = float(squares.sum())
        slope = float(products.sum()) / total if total > 0 else 0.0
        if slope <= 0.0:
            return np.zeros_like(weights)
        variance = float(np.sum((products - slope * squares) ** 2)) / total**2
        return np.asarray(weights * min(slope, 1.0) * max(0.0, 1.0 - variance / slope**2))


def _not_negative(squares: FloatArray, products: FloatArray, ridge: float) -> FloatArray:
    """The least of w'Sw - 2 p'w + ridge w'w among w that are not negative."""
    size = products.size
    scale = np.sqrt(np.diag(squares) + ridge)  # columns of one size, for the solver
    matrix = (squares + ridge * np.eye(size)) / np.outer(scale, scale)
    root = linalg.cholesky(matrix + 1e-10 * np.eye(size), lower=False)
    right = linalg.solve_triangular(root, products / scale, trans="T", lower=False)
    found, _ = optimize.nnls(root, right, maxiter=100 * size)
    return np.asarray(found / scale)

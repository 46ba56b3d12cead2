"""A law of actions as a few draws: what a function of the draw weighs on each score."""

from dataclasses import dataclass

import numpy as np

from revar.model.arrays import FloatArray
from revar.model.law import Categorical, Law

POINTS = np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0])  # Gauss-Hermite
CHANCES = np.array([1.0, 4.0, 1.0]) / 6.0


@dataclass(frozen=True, eq=False)
class Nodes:
    """Draws that differ from the average draw in one number, or one categorical part.

    A function's coefficients of scores are its values at the nodes times `projection`: exact for
    sums of functions of single parts, of degree up to 2 in normal numbers.
    """

    design: FloatArray  # [node, g] as `action_design` gives it
    projection: FloatArray  # [node, m]


def action_design(law: Law, actions: FloatArray, noise: FloatArray) -> FloatArray:
    """The draw of every step as numbers that need no probabilities, zero on average, [n, g]."""
    found = [np.zeros((noise.shape[0], 0))]
    column = place = 0
    for part in law.parts:
        if isinstance(part, Categorical):
            taken = actions[:, column : column + 1] == np.arange(part.count - 1)
            found.append(taken - 1.0 / part.count)
            column += 1
        else:
            drawn = noise[:, place : place + part.count]
            found.append(np.column_stack([drawn, _square(drawn)]))
            column += part.count
        place += part.noise_width
    return np.concatenate(found, axis=1)


def law_nodes(law: Law) -> Nodes:
    """Each action of a categorical part; three points of each normal number."""
    designs, projections = [], []
    sizes = [_sizes(part) for part in law.parts]
    widths = np.sum(sizes, axis=0) if sizes else np.zeros(2, dtype=int)
    at, score = 0, 0
    for part, (size, scores) in zip(law.parts, sizes, strict=True):
        design, projection = _part_nodes(part)
        placed = np.zeros((design.shape[0], widths[0]))
        placed[:, at : at + size] = design
        designs.append(placed)
        weighed = np.zeros((design.shape[0], widths[1]))
        weighed[:, score : score + projection.shape[1]] = projection
        projections.append(weighed)
        at, score = at + size, score + scores
    if not designs:
        return Nodes(np.zeros((0, 0)), np.zeros((0, 0)))
    return Nodes(np.concatenate(designs), np.concatenate(projections))


def _sizes(part: object) -> tuple[int, int]:
    if isinstance(part, Categorical):
        return part.count - 1, part.score_width
    return 2 * part.count, part.score_width  # type: ignore[attr-defined]


def _part_nodes(part: object) -> tuple[FloatArray, FloatArray]:
    if isinstance(part, Categorical):
        count = part.count
        design = np.eye(count)[:, : count - 1] - 1.0 / count
        projection = np.vstack([np.eye(count - 1), -np.ones(count - 1)])
        return design, projection
    count = part.count  # type: ignore[attr-defined]
    design, projection = np.zeros((3 * count, 2 * count)), np.zeros((3 * count, 2 * count))
    for number in range(count):
        rows = slice(3 * number, 3 * number + 3)
        design[rows, number], design[rows, count + number] = POINTS, _square(POINTS)
        projection[rows, number] = CHANCES * POINTS
        projection[rows, count + number] = CHANCES * _square(POINTS)
    return design, projection


def _square(numbers: FloatArray) -> FloatArray:
    return np.asarray((numbers**2 - 1.0) / np.sqrt(2.0))

"""What linear critics say: values, and coefficients of scores, as functions of inputs and time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.critics.features import LARGEST, Features, Scaling
from revar.critics.interface import Numbers
from revar.critics.nodes import Nodes
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line

CHUNK = 4_096  # steps that are worked on at a time


@dataclass(frozen=True, eq=False)
class MoveModel:
    """The change of scaled inputs in a step, its reward, and whether the episode goes on."""

    weights: Numbers  # [1 + g, features, D + 2] for the design of an action
    nodes: Nodes
    tick: float  # what a step adds to elapsed time
    discount: float


@dataclass(frozen=True, eq=False)
class LinearColumns:
    """What one training set says: V value columns, and as many advantages of each kind.

    The first V advantages are regressions on scores, the next V, if there is a model, its own.
    """

    scaling: Scaling
    bases: tuple[Features, ...]
    value_weights: tuple[Numbers, ...]  # [features, V of this basis] for every basis
    score_weights: tuple[Numbers, ...]  # [m, features, V of this basis]
    model: MoveModel | None
    model_basis: int

    def values(self, scaled: Numbers, elapsed: Numbers) -> Numbers:
        """[n, V]"""
        return np.concatenate(
            [
                basis(scaled, elapsed) @ weights
                for basis, weights in zip(self.bases, self.value_weights, strict=True)
            ],
            axis=1,
        )

    def values_and_coefficients(self, scaled: Numbers, elapsed: Numbers) -> tuple[Numbers, Numbers]:
        """Values [n, V], and coefficients of scores [n, m, V or 2 V]."""
        values: list[Numbers] = []
        coefficients: list[Numbers] = []
        for number, (basis, weights, on_scores) in enumerate(
            zip(self.bases, self.value_weights, self.score_weights, strict=True)
        ):
            features = basis(scaled, elapsed)
            values.append(features @ weights)
            kept = features[:, : on_scores.shape[1]]
            coefficients.append(np.moveaxis(kept @ on_scores, 0, 1))
            if number == self.model_basis:
                model_features = features
        if self.model is not None:
            coefficients.append(self._through_model(self.model, scaled, elapsed, model_features))
        return np.concatenate(values, axis=1), np.concatenate(coefficients, axis=2)

    def _through_model(
        self, model: MoveModel, scaled: Numbers, elapsed: Numbers, features: Numbers
    ) -> Numbers:
        after = elapsed + np.float32(model.tick)
        going = (after < 1.0 - model.tick / 2)[:, None] * np.float32(model.discount)
        kept = features[:, : model.weights.shape[1]]
        found: Any = 0.0
        for design, projection in zip(
            model.nodes.design.astype(np.float32),
            model.nodes.projection.astype(np.float32),
            strict=True,
        ):
            of_node = model.weights[0] + np.tensordot(design, model.weights[1:], axes=1)
            predicted = kept @ of_node
            moved = np.clip(scaled + predicted[:, :-2], -LARGEST, LARGEST)
            following = self.values(moved, after) * going * np.clip(predicted[:, -1:], 0.0, 1.0)
            following += predicted[:, -2:-1]
            found = found + projection[None, :, None] * following[:, None, :]
        return np.asarray(found)


@dataclass(frozen=True, eq=False, repr=False)
class LinearCritic:
    """A weighted sum of columns: one critic, for later use."""

    columns: LinearColumns
    value_weights: FloatArray  # [V]
    weights: FloatArray  # [V or 2 V] of advantages

    __repr__ = in_a_line

    @property
    def widths(self) -> tuple[int, int]:
        """How many inputs it looks at, and for how many scores it has coefficients."""
        return self.columns.scaling.inputs, int(self.columns.score_weights[0].shape[0])

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """Expected return from here on, [n]."""
        found = np.zeros(inputs.shape[0])
        for rows in _chunks(inputs.shape[0]):
            scaled = self.columns.scaling(inputs[rows])
            said = self.columns.values(scaled, elapsed[rows].astype(np.float32))
            found[rows] = said @ self.value_weights
        return found

    def coefficients(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """What each score adds to the return, [n, m]."""
        found = np.zeros((inputs.shape[0], self.widths[1]))
        for rows in _chunks(inputs.shape[0]):
            scaled = self.columns.scaling(inputs[rows])
            _, said = self.columns.values_and_coefficients(scaled, elapsed[rows].astype(np.float32))
            found[rows] = said @ self.weights
        return found

    def to_arrays(self) -> dict[str, Any]:
        """All that makes the critic, as plain arrays by name."""
        columns, model = self.columns, self.columns.model
        arrays: dict[str, Any] = {
            "family": np.array("linear"),
            "bases": np.array(len(columns.bases)),
            "model_basis": np.array(columns.model_basis),
            "shift": columns.scaling.shift,
            "scale": columns.scaling.scale,
            "value_weights": self.value_weights,
            "weights": self.weights,
        }
        if columns.scaling.matrix is not None:
            arrays["matrix"] = columns.scaling.matrix
        for number, basis in enumerate(columns.bases):
            arrays[f"directions_{number}"] = basis.directions
            arrays[f"phases_{number}"] = basis.phases
            arrays[f"value_weights_{number}"] = columns.value_weights[number]
            arrays[f"score_weights_{number}"] = columns.score_weights[number]
        if model is not None:
            arrays["model_weights"] = model.weights
            arrays["node_design"] = model.nodes.design
            arrays["node_projection"] = model.nodes.projection
            arrays["tick"] = np.array(model.tick)
            arrays["discount"] = np.array(model.discount)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> "LinearCritic":
        """The critic that `to_arrays` wrote."""
        numbers = range(int(arrays["bases"]))
        model = None
        if "model_weights" in arrays:
            model = MoveModel(
                arrays["model_weights"],
                Nodes(arrays["node_design"], arrays["node_projection"]),
                float(arrays["tick"]),
                float(arrays["discount"]),
            )
        columns = LinearColumns(
            Scaling(arrays["shift"], arrays["scale"], arrays.get("matrix")),
            tuple(Features(arrays[f"directions_{i}"], arrays[f"phases_{i}"]) for i in numbers),
            tuple(arrays[f"value_weights_{i}"] for i in numbers),
            tuple(arrays[f"score_weights_{i}"] for i in numbers),
            model,
            int(arrays["model_basis"]),
        )
        return cls(columns, arrays["value_weights"], arrays["weights"])


def _chunks(count: int) -> list[slice]:
    return [slice(first, first + CHUNK) for first in range(0, count, CHUNK)]

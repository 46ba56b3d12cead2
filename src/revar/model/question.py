"""What is asked of target policies: a value, a difference, several values, or which is best."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line
from revar.model.validation import as_floats

# The share of a sum's terms below which nothing is known of the sum.
ROUNDING = 1e-12
LARGEST_WEIGHT = 1e100  # and one over it is the smallest: squares must stay within floating point
# What may be asked of several policies that have names.
KINDS = ("best", "values", "difference")


@dataclass(frozen=True, eq=False, repr=False)
class Combinations:
    """Linear combinations of the values of J policies, and how much each of them matters.

    What collection minimises is the sum of the variances of the combinations, times `weights`.
    With `best` it is the largest (standard error / gap)^2 of the leader's differences to the
    others instead (where gaps are estimated, the sum of its cubes); all values are reported.
    """

    coefficients: FloatArray  # [Q, J]
    weights: FloatArray  # [Q]
    best: bool = False
    several: bool = False  # answers have an axis for combinations, even if there is one

    __repr__ = in_a_line

    def __post_init__(self) -> None:
        rows = np.atleast_2d(as_floats(self.coefficients, "coefficients of a question"))
        weights = np.atleast_1d(as_floats(self.weights, "weights of a question"))
        if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
            raise InputError(
                f"coefficients of a question have shape {rows.shape}; they must be finite numbers, "
                f"[combinations, policies]"
            )
        if weights.shape != rows.shape[:1]:
            raise InputError(
                f"a question of {len(rows)} combinations has weights of shape {weights.shape}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise InputError(
                f"weights of a question are {weights.tolist()}; they must be finite, not negative, "
                f"and not all zero"
            )
        counts = weights[weights > 0]
        if counts.max() > LARGEST_WEIGHT or counts.min() < 1.0 / LARGEST_WEIGHT:
            raise InputError(
                f"weights of a question are {weights.tolist()}; those that count must lie between "
                f"{1.0 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
            )
        object.__setattr__(self, "coefficients", np.ascontiguousarray(rows))
        object.__setattr__(self, "weights", np.ascontiguousarray(weights))

    @property
    def policies(self) -> int:
        """How many policies there are."""
        return int(self.coefficients.shape[1])

    @property
    def single(self) -> bool:
        """Whether one number is asked for."""
        return len(self.coefficients) == 1 and not self.several

    def answer(self, values: FloatArray) -> FloatArray:
        """The combinations of values [..., J]: [...] if one number is asked for, else [..., Q]."""
        answers = values @ self.coefficients.T
        return np.asarray(answers[..., 0] if self.single else answers)

    def answer_variance(self, covariance: FloatArray) -> FloatArray:
        """The variances of `answer`, from covariances [..., J, J] of the values."""
        variances = combined_variances(self.coefficients, covariance)
        return np.asarray(variances[..., 0] if self.single else variances)


def _both_sides(rows: FloatArray, tables: FloatArray) -> FloatArray:
    """Row * table * row [..., Q] of rows [Q, J] and tables [..., J, J].

    Added in the same order however many tables there are, so that parts of a whole give its digits.
    """
    total = np.zeros((*tables.shape[:-2], len(rows)))
    for j in range(rows.shape[1]):
        for k in range(rows.shape[1]):
            total += rows[:, j] * rows[:, k] * tables[..., j, k, None]
    return total


def combined_variances(coefficients: FloatArray, covariance: FloatArray) -> FloatArray:
    """The variances [..., Q] of combinations [Q, J], from covariances [..., J, J] of the values.

    Infinite where the data cannot tell one of the values that count. Never below what rounding
    leaves of the terms: of policies that do nearly the same it leaves nothing else.
    """
    unknown = np.isinf(covariance)
    known = np.where(unknown, 0.0, covariance)
    variances = _both_sides(coefficients, known)
    terms = _both_sides(np.abs(coefficients), np.abs(known))
    variances = np.maximum(variances, ROUNDING * terms)
    counts = (coefficients != 0).astype(np.float64)
    lacking = np.einsum("qj,...jk,qk->...q", counts, unknown.astype(np.float64), counts) > 0
    return np.asarray(np.where(lacking, np.inf, variances))


def combinations_of(kind: str, policies: int) -> Combinations:
    """The combinations of one of `KINDS`."""
    if kind not in KINDS:
        raise InputError(f"question is {kind!r}; it must be one of {', '.join(KINDS)}")
    if kind == "difference":
        if policies != 2:
            raise InputError(f"a difference is between two policies; there are {policies}")
        return Combinations(np.array([[1.0, -1.0]]), np.ones(1))
    return Combinations(np.eye(policies), np.ones(policies), best=kind == "best")


class Question:
    """Linear combinations of the values of target policies.

    What is minimised is the weighted sum of the combinations' variances.

    Parameters
    ----------
    policies
        Arrays [S, A].
    coefficients
        A row for each combination, with a number for each policy.
    weights
        One for each combination; equal by default.
    """

    def __init__(self, policies: Any, coefficients: Any, weights: Any = None) -> None:
        rows = np.atleast_2d(as_floats(coefficients, "coefficients of a question"))
        self._ask(policies, Combinations(rows, np.ones(len(rows)) if weights is None else weights))

    def _ask(self, policies: Any, combinations: Combinations) -> None:
        self.policies = _stack(policies)  # [J, S, A]
        self.combinations = combinations
        if combinations.policies != len(self.policies):
            raise InputError(
                f"a question about {len(self.policies)} policies has coefficients for "
                f"{combinations.policies}"
            )

    def __repr__(self) -> str:
        count, states, actions = self.policies.shape
        return f"{type(self).__name__}(policies={count}, states={states}, actions={actions})"

    @classmethod
    def about(cls, policies: FloatArray, combinations: Combinations) -> "Question":
        """The question that asks for these combinations of the policies' values.

        Parameters
        ----------
        policies
            Arrays [J, S, A].
        combinations
            Which weighted sums of the values are asked for, and how much each counts.
        """
        question = object.__new__(Question)
        question._ask(policies, combinations)
        return question

    @classmethod
    def of_value(cls, policy: Any) -> "Question":
        """What is the value of `policy` [S, A]?

        Parameters
        ----------
        policy
            The target policy.
        """
        return Question([policy], [[1.0]])

    @property
    def policy(self) -> FloatArray:
        """The mean of the policies, [S, A]: what all of them do together.

        Policies that never come to a state may have no row there, and do not count.
        """
        if len(self.policies) == 1:
            return np.array(self.policies[0])
        has_row = self.policies.sum(axis=2, keepdims=True) > 0
        return np.asarray(self.policies.sum(axis=0) / has_row.sum(axis=0).clip(min=1))


class Difference(Question):
    """v(policy_a) - v(policy_b).

    Parameters
    ----------
    policy_a, policy_b
        Arrays [S, A].
    """

    def __init__(self, policy_a: Any, policy_b: Any) -> None:
        self._ask([policy_a, policy_b], combinations_of("difference", 2))


class Values(Question):
    """The values of several policies; what is minimised is the weighted sum of their variances.

    Parameters
    ----------
    policies
        Arrays [S, A].
    weights
        One for each policy; equal by default.
    """

    def __init__(self, policies: Any, weights: Any = None) -> None:
        tables = _stack(policies)
        count = len(tables)
        equal = np.ones(count) if weights is None else weights
        self._ask(tables, Combinations(np.eye(count), equal, several=True))


class Best(Question):
    """Which of several policies has the largest value.

    What is minimised is the largest (standard error / gap)^2 of the differences between the best
    and each of the others.

    Parameters
    ----------
    policies
        Arrays [S, A].
    """

    def __init__(self, policies: Any) -> None:
        tables = _stack(policies)
        if len(tables) < 2:
            raise InputError("the best of several policies needs at least two of them")
        self._ask(tables, combinations_of("best", len(tables)))


def _stack(policies: Any) -> FloatArray:
    if isinstance(policies, Mapping | str) or not isinstance(policies, Iterable):
        raise InputError(
            f"policies are {kind_of(policies)}; they must be a list of arrays [states, actions]"
        )
    tables = [as_floats(policy, f"policy {number}") for number, policy in enumerate(policies)]
    if not tables:
        raise InputError("a question needs at least one policy")
    for number, table in enumerate(tables):
        if table.ndim != 2:
            raise InputError(
                f"policy {number} has shape {table.shape}; it must be [states, actions]"
            )
        if table.shape != tables[0].shape:
            raise InputError(
                f"policy {number} has shape {table.shape}, and policy 0 has {tables[0].shape}; "
                f"policies that are compared act in the same states with the same actions"
            )
    return np.ascontiguousarray(np.stack(tables))

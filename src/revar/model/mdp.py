"""TabularMDP: a finite-horizon Markov decision process, sparse, immutable and validated."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from revar.errors import InputError
from revar.model.arrays import FloatArray, ModelArrays, Outcomes, read_only
from revar.model.rewards import RewardLaw, RewardMoments, reward_bound
from revar.model.structure import Structure, classify
from revar.model.validation import (
    SUM_TOLERANCE,
    as_floats,
    check_discount,
    check_horizon,
    pair_name,
    refuse_first,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP:
    """What is true (or estimated) of an environment with S states and A actions.

    Parameters
    ----------
    transitions
        Array [S, A, S] or scipy.sparse `[S*A, S]` (row `s*A + a`). A row may sum to less than one:
        the rest is the probability that the episode ends there.
    reward_mean, reward_std
        Array [S, A]; or, where the reward depends on the outcome, array [S, A, S+1] or scipy.sparse
        `[S*A, S+1]`, whose last column is the outcome "the episode ends". A scalar stands for that
        value everywhere.
    initial
        Array [S], the distribution of the first state.
    horizon
        The number of steps after which an episode is cut.
    discount
        The reward of step t is worth discount^t.
    reward_law
        "normal", "two-point", "bernoulli", "uniform" or "deterministic".

    Examples
    --------
    >>> import numpy as np
    >>> mdp = TabularMDP(np.zeros((1, 2, 1)), [[1.0, 2.0]], [[0.5, 3.0]], [1.0], horizon=1)
    >>> mdp.structure().kind
    'bandit'
    """

    states: int
    actions: int
    horizon: int
    discount: float
    reward_law: str
    arrays: ModelArrays  # for compiled code; everybody else reads the properties below
    _outcome_reward_mean: FloatArray | None  # [slot], where rewards depend on the outcome
    _outcome_reward_std: FloatArray | None  # [slot]

    def __init__(
        self,
        transitions: ArrayLike | sparse.sparray | sparse.spmatrix,
        reward_mean: ArrayLike | sparse.sparray | sparse.spmatrix,
        reward_std: ArrayLike | sparse.sparray | sparse.spmatrix,
        initial: ArrayLike,
        horizon: int,
        discount: float = 1.0,
        *,
        reward_law: str = "normal",
    ) -> None:
        start = check_initial(initial)
        states = start.shape[0]
        matrix, actions = check_transitions(transitions, states)
        outcomes = with_endings(matrix, states)
        law = RewardLaw.find(reward_law)
        rewards = RewardMoments.read(reward_mean, reward_std, outcomes, states, actions)
        rewards.check(law, outcomes, actions)
        fields = {
            "states": states,
            "actions": actions,
            "horizon": check_horizon(horizon),
            "discount": check_discount(discount),
            "reward_law": law.label,
            "arrays": ModelArrays(outcomes, start, rewards.mean, rewards.std),
            "_outcome_reward_mean": rewards.outcome_mean,
            "_outcome_reward_std": rewards.outcome_std,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"TabularMDP(states={self.states}, actions={self.actions}, horizon={self.horizon}, "
            f"discount={self.discount:g}, outcomes={self.arrays.outcomes.successor.size}, "
            f"reward_law={self.reward_law!r})"
        )

    @property
    def transitions(self) -> sparse.csr_array:
        """P(s'|s,a) as a sparse matrix `[S*A, S]`, row `s*A + a`."""
        full = sparse.csr_array(
            (
                self.arrays.outcomes.probability,
                self.arrays.outcomes.successor,
                self.arrays.outcomes.row_start,
            ),
            shape=(self.states * self.actions, self.states + 1),
        )
        return sparse.csr_array(full[:, : self.states])

    @property
    def outcomes(self) -> Outcomes:
        """Every outcome of every pair, the end of the episode included."""
        return Outcomes(*(cast(Any, read_only(part)) for part in self.arrays.outcomes))

    @property
    def reward_mean(self) -> FloatArray:
        """E[R|s,a], [S, A]."""
        return cast(FloatArray, read_only(self.arrays.reward_mean))

    @property
    def reward_std(self) -> FloatArray:
        """The standard deviation of R given (s,a), over outcomes and noise, [S, A]."""
        return cast(FloatArray, read_only(self.arrays.reward_std))

    @property
    def initial(self) -> FloatArray:
        """The distribution of the first state, [S]."""
        return cast(FloatArray, read_only(self.arrays.initial))

    @property
    def rewards_depend_on_outcome(self) -> bool:
        """Whether the reward's law differs between the outcomes of a pair."""
        return self._outcome_reward_mean is not None

    @property
    def outcome_reward_mean(self) -> FloatArray:
        """E[R|s,a,outcome], one for each slot of `outcomes`."""
        if self._outcome_reward_mean is None:
            return np.repeat(
                self.arrays.reward_mean.ravel(), np.diff(self.arrays.outcomes.row_start)
            )
        return cast(FloatArray, read_only(self._outcome_reward_mean))

    @property
    def outcome_reward_std(self) -> FloatArray:
        """The standard deviation of R given (s,a,outcome), one for each slot of `outcomes`."""
        if self._outcome_reward_std is None:
            return np.repeat(
                self.arrays.reward_std.ravel(), np.diff(self.arrays.outcomes.row_start)
            )
        return cast(FloatArray, read_only(self._outcome_reward_std))

    @cached_property
    def reward_bound(self) -> float:
        """The smallest eta with |R| <= eta for sure (the paper's Assumption 2), or infinity."""
        law = RewardLaw.find(self.reward_law)
        return reward_bound(law, self.outcome_reward_mean, self.outcome_reward_std)

    @cached_property
    def _structure(self) -> Structure:
        return classify(self.arrays.outcomes, self.arrays.initial, self.actions, self.horizon)

    def structure(self) -> Structure:
        """Bandit, tree, layered or general, by the paper's Definitions 1 and 2, and why."""
        return self._structure


# A row that misses less than this of 1 misses it by rounding.
LEAST_ENDING = 1e-9


def check_initial(initial: Any) -> FloatArray:
    """The first state's distribution as an array [S]."""
    start = as_floats(initial, "initial")
    if start.ndim != 1 or start.size == 0:
        raise InputError(f"initial has shape {start.shape}; it must be [states]")

    def place(index: int) -> str:
        return f"state {index}"

    refuse_first(~np.isfinite(start), start, "initial", place, "must be finite")
    refuse_first(
        (start < 0) | (start > 1 + SUM_TOLERANCE), start, "initial", place, "must lie in [0, 1]"
    )
    if abs(start.sum() - 1.0) > SUM_TOLERANCE:
        raise InputError(f"initial sums to {start.sum():.12g}; it must sum to 1")
    return start


def check_transitions(transitions: Any, states: int) -> tuple[sparse.csr_array, int]:
    """The transition matrix [S*A, S] with sorted, summed, positive entries, and A."""
    if sparse.issparse(transitions):
        shape = transitions.shape
        if len(shape) != 2 or shape[1] != states or shape[0] == 0 or shape[0] % states:
            raise InputError(
                f"transitions has shape {shape}; sparse transitions must be "
                f"[states*actions, states] with {states} states (the length of initial)"
            )
        matrix = sparse.csr_array(transitions, dtype=np.float64, copy=True)
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"transitions is not a valid sparse matrix: {error}") from None
    else:
        dense = as_floats(transitions, "transitions")
        if dense.ndim != 3 or dense.shape[::2] != (states, states) or dense.shape[1] == 0:
            raise InputError(
                f"transitions has shape {dense.shape}; it must be [states, actions, states] "
                f"with {states} states (the length of initial)"
            )
        matrix = sparse.csr_array(dense.reshape(-1, states))
    actions = matrix.shape[0] // states
    matrix.sum_duplicates()
    data, rows_of = matrix.data, np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))

    def place(index: int) -> str:
        return f"{pair_name(int(rows_of[index]), actions)}, successor {matrix.indices[index]}"

    refuse_first(~np.isfinite(data), data, "transitions", place, "must be finite")
    refuse_first(data < 0, data, "transitions", place, "must not be negative")
    refuse_first(data > 1 + SUM_TOLERANCE, data, "transitions", place, "must be at most 1")
    sums = matrix @ np.ones(states)
    above = sums > 1 + SUM_TOLERANCE
    if above.any():
        row = int(np.argmax(above))
        raise InputError(
            f"transitions of {pair_name(row, actions)} sum to {sums[row]:.12g}; a row sums to "
            f"at most 1 (what is missing ends the episode)"
        )
    matrix.eliminate_zeros()
    return matrix, actions


def with_endings(matrix: sparse.csr_array, states: int) -> Outcomes:
    """The outcome layout: each row's successors, then the end of the episode where it can be."""
    pairs = matrix.shape[0]
    ending = 1.0 - matrix @ np.ones(states)
    ends = ending > LEAST_ENDING
    lengths = np.diff(matrix.indptr).astype(np.int64) + ends
    row_start = np.zeros(pairs + 1, dtype=np.int64)
    np.cumsum(lengths, out=row_start[1:])
    successor = np.full(row_start[-1], states, dtype=np.int64)
    probability = np.empty(row_start[-1])
    last = row_start[1:][ends] - 1
    proceeds = np.ones(row_start[-1], dtype=bool)
    proceeds[last] = False
    successor[proceeds] = matrix.indices
    probability[proceeds] = matrix.data
    probability[last] = ending[ends]
    return Outcomes(row_start, successor, probability)

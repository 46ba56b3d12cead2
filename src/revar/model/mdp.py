"""TabularMDP: a finite-horizon Markov decision process, sparse, immutable and validated."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from revar.model.arrays import FloatArray, ModelArrays, Outcomes, read_only
from revar.model.rewards import RewardLaw, RewardMoments, reward_bound
from revar.model.structure import Structure, classify
from revar.model.transitions import checked_initial, checked_transitions, with_endings
from revar.model.validation import checked_discount, checked_horizon


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP:
    """What is true (or believed) about an environment with S states and A actions.

    transitions: array [S, A, S] or scipy.sparse [S*A, S] (row s*A + a). A row may sum to less
        than one: the rest is the probability that the episode ends there.
    reward_mean, reward_std: array [S, A]; or, where the reward depends on the outcome, array
        [S, A, S+1] or scipy.sparse [S*A, S+1], whose last column is the outcome "the episode
        ends". A scalar stands for that value everywhere.
    initial: array [S], the distribution of the first state.
    horizon: the number of steps after which an episode is cut.
    reward_law: "normal", "two-point", "bernoulli", "uniform" or "deterministic".

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
        start = checked_initial(initial)
        states = start.shape[0]
        matrix, actions = checked_transitions(transitions, states)
        outcomes = with_endings(matrix, states)
        law = RewardLaw.named(reward_law)
        rewards = RewardMoments.read(reward_mean, reward_std, outcomes, states, actions)
        rewards.check(law, outcomes, actions)
        fields = {
            "states": states,
            "actions": actions,
            "horizon": checked_horizon(horizon),
            "discount": checked_discount(discount),
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
        """P(s'|s,a) as a sparse matrix [S*A, S], row s*A + a."""
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
        law = RewardLaw.named(self.reward_law)
        return reward_bound(law, self.outcome_reward_mean, self.outcome_reward_std)

    @cached_property
    def _structure(self) -> Structure:
        return classify(self.arrays.outcomes, self.arrays.initial, self.actions, self.horizon)

    def structure(self) -> Structure:
        """Bandit, tree, layered or general, by the paper's Definitions 1 and 2, and why."""
        return self._structure

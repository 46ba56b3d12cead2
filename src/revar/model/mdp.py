"""TabularMDP: a finite-horizon Markov decision process, sparse, immutable and validated."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from revar.model.arrays import FloatArray, Outcomes, read_only
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
    # Writable for the compiled loops, which never write to them; users see read-only views.
    _outcomes: Outcomes
    _reward_mean: FloatArray  # [S, A]
    _reward_std: FloatArray  # [S, A]
    _outcome_reward_mean: FloatArray | None  # [slot], where rewards depend on the outcome
    _outcome_reward_std: FloatArray | None  # [slot]
    _initial: FloatArray  # [S]

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
            "_outcomes": outcomes,
            "_reward_mean": rewards.mean,
            "_reward_std": rewards.std,
            "_outcome_reward_mean": rewards.outcome_mean,
            "_outcome_reward_std": rewards.outcome_std,
            "_initial": start,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"TabularMDP(states={self.states}, actions={self.actions}, horizon={self.horizon}, "
            f"discount={self.discount:g}, outcomes={self._outcomes.successor.size}, "
            f"reward_law={self.reward_law!r})"
        )

    @property
    def transitions(self) -> sparse.csr_array:
        """P(s'|s,a) as a sparse matrix [S*A, S], row s*A + a."""
        full = sparse.csr_array(
            (self._outcomes.probability, self._outcomes.successor, self._outcomes.row_start),
            shape=(self.states * self.actions, self.states + 1),
        )
        return sparse.csr_array(full[:, : self.states])

    @property
    def outcomes(self) -> Outcomes:
        """Every outcome of every pair, the end of the episode included."""
        return Outcomes(*(cast(Any, read_only(part)) for part in self._outcomes))

    @property
    def reward_mean(self) -> FloatArray:
        """E[R|s,a], [S, A]."""
        return cast(FloatArray, read_only(self._reward_mean))

    @property
    def reward_std(self) -> FloatArray:
        """The standard deviation of R given (s,a), over outcomes and noise, [S, A]."""
        return cast(FloatArray, read_only(self._reward_std))

    @property
    def initial(self) -> FloatArray:
        """The distribution of the first state, [S]."""
        return cast(FloatArray, read_only(self._initial))

    @property
    def rewards_depend_on_outcome(self) -> bool:
        """Whether the reward's law differs between the outcomes of a pair."""
        return self._outcome_reward_mean is not None

    @property
    def outcome_reward_mean(self) -> FloatArray:
        """E[R|s,a,outcome], one for each slot of `outcomes`."""
        if self._outcome_reward_mean is None:
            return np.repeat(self._reward_mean.ravel(), np.diff(self._outcomes.row_start))
        return cast(FloatArray, read_only(self._outcome_reward_mean))

    @property
    def outcome_reward_std(self) -> FloatArray:
        """The standard deviation of R given (s,a,outcome), one for each slot of `outcomes`."""
        if self._outcome_reward_std is None:
            return np.repeat(self._reward_std.ravel(), np.diff(self._outcomes.row_start))
        return cast(FloatArray, read_only(self._outcome_reward_std))

    @cached_property
    def reward_bound(self) -> float:
        """The smallest eta with |R| <= eta for sure (the paper's Assumption 2), or infinity."""
        law = RewardLaw.named(self.reward_law)
        return reward_bound(law, self.outcome_reward_mean, self.outcome_reward_std)

    @cached_property
    def _structure(self) -> Structure:
        return classify(self._outcomes, self._initial, self.actions, self.horizon)

    def structure(self) -> Structure:
        """Bandit, tree, layered or general, by the paper's Definitions 1 and 2, and why."""
        return self._structure

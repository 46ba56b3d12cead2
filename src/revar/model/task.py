"""Task: the question asked of collected data, and what may be known when answering it."""

from dataclasses import dataclass, replace

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.policy import checked_policy
from revar.model.validation import checked_discount, checked_horizon


@dataclass(frozen=True, eq=False)
class Task:
    """Evaluate `policy` over episodes of `horizon` steps.

    `initial` is None where the first state's distribution has to be estimated too; `episodes` is
    the budget, None where there is none; `model` is the truth, handed only to strategies and
    estimators that say they know it.
    """

    policy: FloatArray  # [S, A]
    horizon: int
    discount: float = 1.0
    initial: FloatArray | None = None  # [S]
    episodes: int | None = None
    model: TabularMDP | None = None

    def __post_init__(self) -> None:
        checked_horizon(self.horizon)
        checked_discount(self.discount)
        if self.episodes is not None and self.episodes < 1:
            raise InputError(f"episodes is {self.episodes}; at least 1 episode is needed")

    @classmethod
    def of(cls, mdp: TabularMDP, policy: object, *, episodes: int | None = None) -> "Task":
        """The task of evaluating `policy` on `mdp`, with the model known."""
        return cls(
            policy=checked_policy(mdp, policy),
            horizon=mdp.horizon,
            discount=mdp.discount,
            initial=mdp._initial,
            episodes=episodes,
            model=mdp,
        )

    def without_model(self) -> "Task":
        """The same question for those who may not know the truth."""
        return replace(self, model=None)

    @property
    def states(self) -> int:
        """How many states the policy covers."""
        return int(self.policy.shape[0])

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return int(self.policy.shape[1])

    def known_model(self, asker: str) -> TabularMDP:
        """The true model, or an error that says who asked for it."""
        if self.model is None:
            raise InputError(f"{asker} needs the true model, and this task has none")
        return self.model

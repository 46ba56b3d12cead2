"""Task: what is asked of collected data. Checks of target policies and behaviors."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray, IntArray
from revar.model.budget import Budget, as_budget, check_visit_costs
from revar.model.limits import Limits, check_limits
from revar.model.mdp import TabularMDP, check_initial
from revar.model.question import Question
from revar.model.records import in_a_line
from revar.model.structure import reachable_layers
from revar.model.validation import (
    SUM_TOLERANCE,
    as_floats,
    check_discount,
    check_horizon,
    pair_name,
    refuse_first,
)


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Answer `question` over episodes of `horizon` steps; by default, what is `policy` worth?

    Of several target policies, `policy` is the mean. `initial` is None where the first state's
    distribution has to be estimated too. `budget` is what may be spent in all, None where there is
    no end; `cost` is what a visit costs, where the budget is of cost. `limits` is what collection
    may not do. `model` is the truth, handed only to strategies and estimators that say they know
    it.
    """

    policy: FloatArray  # [S, A]
    horizon: int
    discount: float = 1.0
    initial: FloatArray | None = None  # [S]
    budget: Budget | None = None
    model: TabularMDP | None = None
    cost: FloatArray | None = None  # [S, A]
    limits: Limits = cast(Limits, None)  # noqa: RUF009 - if not given: nothing is limited
    question: Question = cast(Question, None)  # noqa: RUF009 - if not given: what is `policy` worth?

    __repr__ = in_a_line

    def __post_init__(self) -> None:
        question = self._checked_question()
        checked: dict[str, Any] = {
            "question": question,
            "policy": question.policy,
            "horizon": check_horizon(self.horizon),
            "discount": check_discount(self.discount),
            "budget": as_budget(self.budget),
        }
        if self.initial is not None:
            checked["initial"] = check_initial(self.initial)
            if checked["initial"].shape != checked["policy"].shape[:1]:
                raise InputError(
                    f"initial has {checked['initial'].size} states; the policy covers "
                    f"{len(checked['policy'])}"
                )
        if self.cost is not None:
            checked["cost"] = check_visit_costs(self.cost, *question.policy.shape)
        checked["limits"] = check_limits(self.limits)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _checked_question(self) -> Question:
        question = cast(Question | None, self.question)
        if question is None:
            policy = as_floats(self.policy, "policy")
            if policy.ndim != 2:
                raise InputError(f"policy has shape {policy.shape}; it must be [states, actions]")
            question = Question.of_value(policy)
        elif not isinstance(question, Question):
            raise InputError(f"question is {kind_of(question)}; it must be a Question")
        elif not np.array_equal(self.policy, question.policy):
            raise InputError("the policy of a task is not the mean of its question's policies")
        for name, policy in named_policies(question):
            check_probabilities(policy, name, *policy.shape)
            above = policy.sum(axis=1) > 1.0 + SUM_TOLERANCE
            if above.any():
                state = int(np.argmax(above))
                total = policy[state].sum()
                raise InputError(f"{name} of state {state} sums to {total:.12g}; it must sum to 1")
        return question

    @classmethod
    def of(
        cls,
        mdp: TabularMDP,
        asked: Any,
        *,
        budget: Budget | int | None = None,
        cost: Any = None,
        limits: Limits | None = None,
    ) -> "Task":
        """The task of answering a question on `mdp`, or of evaluating a policy; with the model.

        Parameters
        ----------
        mdp
            The model.
        asked
            A policy [S, A], or a Question.
        budget
            What may be spent; a number is one of episodes.
        cost
            What a step takes from a budget of cost: an array [S, A].
        limits
            What collection may not do.
        """
        question = check_question(mdp, asked)
        return cls(
            policy=question.policy,
            horizon=mdp.horizon,
            discount=mdp.discount,
            initial=mdp.arrays.initial,
            budget=as_budget(budget),
            model=mdp,
            cost=cost,
            limits=check_limits(limits),
            question=question,
        )

    @property
    def episodes(self) -> int | None:
        """How many episodes the budget allows, where it is counted in episodes."""
        counted = self.budget is not None and self.budget.by_episode
        return int(self.budget.amount) if counted and self.budget is not None else None

    @property
    def visit_cost(self) -> FloatArray:
        """What a visit takes from the budget, [S, A]."""
        budget = self.budget or Budget(1)
        return budget.visit_cost(self.cost, self.states, self.actions)

    @property
    def policies(self) -> FloatArray:
        """All target policies, [J, S, A]."""
        return self.question.policies

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


def check_question(mdp: TabularMDP, asked: Any) -> Question:
    """The question, its policies checked against the model; of a policy, that of its value."""
    if not isinstance(asked, Question):
        return Question.of_value(check_policy(mdp, asked))
    checked = [check_policy(mdp, policy, name) for name, policy in named_policies(asked)]
    return Question.about(np.stack(checked), asked.combinations)


def named_policies(question: Question) -> list[tuple[str, FloatArray]]:
    """The policies, and what messages call them."""
    single = len(question.policies) == 1
    return [
        ("policy" if single else f"policy {number}", policy)
        for number, policy in enumerate(question.policies)
    ]


def check_policy(mdp: TabularMDP, policy: Any, name: str = "policy") -> FloatArray:
    """The policy as an array [S, A] whose rows sum to 1 wherever the policy itself can lead."""
    table = check_probabilities(policy, name, mdp.states, mdp.actions)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, table > 0, mdp.horizon)
    check_sums(table, name, np.unique(layers.states))
    return table


def check_behavior(mdp: TabularMDP, behavior: Any) -> FloatArray:
    """A behavior as an array [1 or L, S, A]: stationary, or one table for each step.

    Like a policy's, its rows sum to 1 wherever it can lead.
    """
    table = as_floats(behavior, "behavior")
    if table.ndim == 2:
        table = check_probabilities(table, "behavior", mdp.states, mdp.actions)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, table > 0, mdp.horizon)
        check_sums(table, "behavior", np.unique(layers.states))
        table = table[None]
    elif table.shape == (mdp.horizon, mdp.states, mdp.actions):
        present = mdp.arrays.initial
        for t in range(mdp.horizon):
            name = f"behavior at step {t}"
            step = check_probabilities(table[t], name, mdp.states, mdp.actions)
            check_sums(step, name, np.flatnonzero(present))
            layers = reachable_layers(mdp.arrays.outcomes, present, step > 0, 2)
            present = np.zeros(mdp.states)
            present[layers.states[layers.start[1] :]] = 1.0
    else:
        raise InputError(
            f"behavior has shape {table.shape}; it must be [states, actions] = "
            f"{(mdp.states, mdp.actions)} or [horizon, states, actions] = "
            f"{(mdp.horizon, mdp.states, mdp.actions)}"
        )
    return np.ascontiguousarray(table)


def check_probabilities(table: Any, name: str, states: int, actions: int) -> FloatArray:
    """An array [S, A] of finite numbers in [0, 1]."""
    array = as_floats(table, name)
    if array.shape != (states, actions):
        how = f"; revar.epsilon_greedy(policy, 0.0, {actions}) makes it of one action a state"
        raise InputError(
            f"{name} has shape {array.shape}; it must be [states, actions] = {(states, actions)}"
            f"{how if array.shape == (states,) else ''}"
        )

    def place(index: int) -> str:
        return pair_name(index, actions)

    refuse_first(~np.isfinite(array), array, name, place, "must be finite")
    refuse_first(
        (array < 0) | (array > 1 + SUM_TOLERANCE), array, name, place, "must lie in [0, 1]"
    )
    return np.ascontiguousarray(array)


def check_sums(table: FloatArray, name: str, visited: IntArray) -> None:
    """Refuse the first of the `visited` states whose row does not sum to 1."""
    wrong = np.abs(table[visited].sum(axis=1) - 1.0) > SUM_TOLERANCE
    if wrong.any():
        state = int(visited[np.argmax(wrong)])
        raise InputError(
            f"{name} of state {state} sums to {table[state].sum():.12g}; a state that it reaches "
            f"needs probabilities that sum to 1"
        )

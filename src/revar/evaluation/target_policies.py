"""Target policies by state, one or several, as a collection asks for them."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from revar.environments.observations import Bins, StateEncoding, encoding_of
from revar.environments.opening import action_count, first_action
from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray
from revar.model.validation import check_policy_name
from revar.policies.forms import Constant, ObservationPolicy, fit_table, resolve_policy
from revar.policies.interface import ask_policy, read_table


class TargetPolicy:
    """The target policy by state: called once for each state, and remembered."""

    def __init__(
        self, policy: Any, observations: StateEncoding, actions: int, first_action: int = 0
    ) -> None:
        self.first_label = observations.first
        self._observations = observations
        found = _table_or_function(policy, observations, actions, first_action)
        self._table = None if callable(found) else found  # [*observations, A]
        self._constant = found.row if isinstance(found, Constant) else None  # [A]
        self._ask = _make_ask(found, observations)
        self._rows: dict[Hashable, FloatArray] = {}

    def __call__(self, state: Any) -> FloatArray:
        """The probabilities in a state, [A]; they are checked where they enter a collection."""
        row = self._rows.get(state)
        if row is None:
            answer = self._ask(state)
            try:
                row = np.array(answer)  # a copy: some functions return the same array each time
            except ValueError:  # lists of different lengths
                raise InputError(
                    f"the target policy in state {state!r} gives {answer!r}, which is no row of "
                    f"probabilities"
                ) from None
            self._rows[state] = row
        return row

    def states_taking(self, action: int) -> list[Any]:
        """The states in which it takes an action, as far as an array or a constant row tells."""
        if self._table is None:
            everywhere = self._constant is not None and self._constant[action] > 0
            first = (0,) * len(self._observations.shape)
            return [self._observations.key_at(first)] if everywhere else []
        places = np.argwhere(self._table[..., action] > 0).tolist()
        return [self._observations.key_at(tuple(place)) for place in places]

    def takes_everywhere(self, action: int) -> bool:
        """Whether it takes an action in every state, as far as an array or a constant row tells."""
        rows = self._constant if self._table is None else self._table
        return rows is not None and bool((np.asarray(rows)[..., action] > 0).all())


class TargetPolicies:
    """Several target policies by state: one object for each state, with a row for each policy."""

    def __init__(
        self,
        policies: Mapping[str, Any],
        first_label: tuple[int, ...] | None = None,
    ) -> None:
        self.first_label = first_label
        self._policies = dict(policies)
        self._rows: dict[Hashable, tuple[Any, ...]] = {}

    def __call__(self, state: Any) -> tuple[Any, ...]:
        """The probabilities in a state, J rows [A]; checked where they enter a collection."""
        rows = self._rows.get(state)
        if rows is None:
            answers = []
            for name, policy in self._policies.items():
                with name_policy(name):
                    answers.append(policy(state))
            rows = self._rows[state] = tuple(answers)
        return rows

    def states_taking(self, action: int) -> list[Any]:
        """The states in which any of them takes an action, as far as arrays tell."""
        every = [policy.states_taking(action) for policy in self._policies.values()]
        return [state for states in every for state in states]

    def takes_everywhere(self, action: int) -> bool:
        """Whether any of them takes an action in every state, as far as arrays tell."""
        return any(policy.takes_everywhere(action) for policy in self._policies.values())


def target_policy_of(
    env: Any, policies: Mapping[str, Any], bins: Bins | None
) -> TargetPolicy | TargetPolicies:
    """The target policies by the states of an environment, or of several side by side.

    A single one needs no name.
    """
    encoding, actions, first = encoding_of(env, bins), action_count(env), first_action(env)
    if len(policies) == 1:
        return TargetPolicy(next(iter(policies.values())), encoding, actions, first)
    targets = {}
    for name, policy in policies.items():
        with name_policy(name):
            targets[name] = TargetPolicy(policy, encoding, actions, first)
    return TargetPolicies(targets, encoding.first)


@contextmanager
def name_policy(name: str) -> Iterator[None]:
    """Let what goes wrong name the policy, where it has a name."""
    try:
        yield
    except InputError as error:
        if not name:
            raise
        raise InputError(f"policy {name!r}: {error}") from error


def check_policies(policies: Any) -> dict[str, Any]:
    """Policies by name: at least two, each with a name that can be printed in a table."""
    if not isinstance(policies, Mapping):
        raise InputError(
            f"policies are {kind_of(policies)}; they must be a mapping from names to "
            f"policies, such as {{'old': old, 'new': new}}"
        )
    if len(policies) < 2:
        raise InputError(f"there must be at least two policies to compare; got {list(policies)}")
    return {check_policy_name(name): policy for name, policy in policies.items()}


def _table_or_function(
    policy: Any, observations: StateEncoding, actions: int, first_action: int
) -> Any:
    """The policy as a function of observations, or as an array that fits them."""
    policy = resolve_policy(policy, actions, first_action)
    if callable(policy):
        return policy
    return fit_table(policy, read_table(policy), observations.shape, actions, first_action)


def _make_ask(policy: Any, observations: StateEncoding) -> Callable[[Any], Any]:
    if callable(policy):
        return _function(policy, observations)
    return lambda state: policy[observations.place(state)]


def _function(policy: ObservationPolicy, observations: StateEncoding) -> Callable[[Any], Any]:
    def ask(state: Any) -> Any:
        observations.place(state)  # refuses what was observed in another environment
        return ask_policy(policy, observations.observation(state))

    return ask

"""Bad input of simulate: one clear sentence each."""

from typing import Any

import numpy as np
import pytest

from revar import Best, Difference, Values, simulate
from revar.errors import InputError
from revar.estimators import MonteCarlo
from revar.problems import problems
from revar.strategies import OnPolicy

TREE = problems.find("tree")(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mdp": TREE}, "mdp is a Problem; it must be a TabularMDP"),
        ({"question": np.ones((2, 2))}, r"has shape \(2, 2\); it must be \[states, actions\]"),
        ({"question": np.full((3, 2), 0.4)}, r"policy of state 0 sums to 0\.8"),
        ({"question": None}, r"policy has shape \(\); it must be \[states, actions\]"),
        ({"question": "best"}, "policy is not an array of numbers: .*"),
        (
            {"question": Difference(np.ones((2, 2)) / 2, np.ones((2, 2)) / 2)},
            r"policy 0 has shape \(2, 2\); it must be \[states, actions\] = \(3, 2\)",
        ),
        (
            {"question": Best([TREE.policy, np.full((3, 2), 0.4)])},
            r"policy 1 of state 0 sums to 0\.8; a state that it reaches needs",
        ),
        (
            {"question": Values([TREE.policy, TREE.policy - 2.0])},
            "policy 1 of state 0, action 0 is .*; it must lie in",
        ),
        (
            {"question": Difference(TREE.policy, TREE.policy), "estimator": "monte-carlo"},
            "estimator 'monte-carlo' estimates the value of one policy; for 2 of them use "
            "'certainty-equivalence'",
        ),
        (
            {"question": Best([TREE.policy, TREE.policy]), "strategy": "flow-oracle"},
            "policies 0 and 1 have the same value",
        ),
        ({"strategy": "revr"}, "unknown strategy 'revr'; did you mean 'revar'?"),
        ({"strategy": OnPolicy}, "strategy is <class .*; it must be an id"),
        ({"estimator": "monte"}, "unknown estimator 'monte'; did you mean 'monte-carlo'?"),
        ({"estimator": MonteCarlo}, "estimator is <class .*; it must be an id .* or an Estimator"),
        ({"episodes": 0}, "episodes is 0; it must be a whole number of at least 1"),
        ({"episodes": 2.5}, r"episodes is 2\.5; it must be a whole number of at least 1"),
        ({"episodes": "10"}, "episodes is '10'; it must be a whole number of at least 1"),
        ({"runs": 0}, "runs is 0; it must be a whole number of at least 1"),
        ({"runs": 1.5}, r"runs is 1\.5; it must be a whole number of at least 1"),
        ({"threads": 0}, "threads is 0; it must be a whole number of at least 1"),
        ({"threads": 0, "compiled": False}, "threads is 0; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be a whole number of at least 0"),
        ({"seed": 1.5}, r"seed is 1\.5; it must be a whole number of at least 0"),
        ({"seed": None}, "seed is None; it must be a whole number of at least 0"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "mdp": TREE.mdp,
        "question": TREE.policy,
        "strategy": "on-policy",
        "episodes": 10,
        "runs": 2,
    }
    with pytest.raises(InputError, match=message) as caught:
        simulate(**{**arguments, **change})
    assert "\n" not in str(caught.value)


def test_whole_numbers_of_any_kind_are_taken() -> None:
    plain = simulate(TREE.mdp, TREE.policy, "revar", episodes=10, runs=2, seed=3, threads=1)
    numpy = simulate(
        TREE.mdp,
        TREE.policy,
        "revar",
        episodes=np.int64(10),  # type: ignore[arg-type]
        runs=2.0,  # type: ignore[arg-type]
        seed=np.int32(3),  # type: ignore[arg-type]
        threads=np.int64(1),  # type: ignore[arg-type]
    )
    assert np.array_equal(plain.estimates, numpy.estimates)

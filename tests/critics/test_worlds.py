"""World j never touches fold j: nothing in fold j changes what is subtracted there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.linear_quadratic import LinearQuadratic, measure

from revar.critics import linear, stacking
from revar.critics.features import Scaling
from revar.critics.given import given_columns
from revar.critics.interface import FOLDS, Columns, Experience
from revar.critics.learning import Learner, Ridges
from revar.critics.linear import LinearFamily
from revar.critics.stacking import fit_stack
from revar.model.arrays import FloatArray, IntArray

PROBLEM = LinearQuadratic(2, normal=False, horizon=6)
FAMILY = LinearFamily((0.5, 1.0))
WORLD = 1


def _altered(experience: Experience, world: int) -> tuple[Experience, IntArray]:
    """The same but for all that happened in a fold, and the steps of it whose inputs are kept.

    The last episodes of the fold have other inputs, too.
    """
    rng = np.random.default_rng(5)
    fold = experience.folds[experience.episode_of_step] == world
    late = fold & (experience.episode_of_step >= 2 * (experience.start.size - 1) // 3)
    chosen = np.where(fold[:, None], 1.0 - experience.actions, experience.actions)
    changed = replace(
        experience,
        rewards=np.where(fold, 3.0 * rng.standard_normal(fold.size), experience.rewards),
        actions=chosen,
        scores=experience.law.scores(chosen, experience.noise),
        inputs=np.where(late[:, None], 9.0 * experience.inputs + 1.0, experience.inputs),
    )
    return changed, np.flatnonzero(fold & ~late)


def _served(
    experience: Experience, rows: IntArray, columns_of: Callable[[Experience], Columns]
) -> list[FloatArray]:
    """What is used on fold WORLD: coefficients of the one score, values at resets, and weights."""
    columns = columns_of(experience)
    stack = fit_stack(experience, columns)
    coefficients = columns.advantages[WORLD, rows] / experience.scores[rows]
    return [
        coefficients @ stack.weights[WORLD],
        columns.reset_values[WORLD] @ stack.start_weights[WORLD],
        stack.weights[WORLD],
        stack.start_weights[WORLD],
    ]


def _largest_change(columns_of: Callable[[Experience], Columns]) -> float:
    """How much fold WORLD changes what is used on it, against the size of that."""
    experience = PROBLEM.play(40, 100, np.random.default_rng(2))
    changed, rows = _altered(experience, WORLD)
    before, after = (_served(each, rows, columns_of) for each in (experience, changed))
    assert np.abs(before[0]).max() > 0.05
    return max(
        float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(before, after, strict=True)
    )


def _linear(experience: Experience) -> Columns:
    return FAMILY.cross_fit(experience, seed=3)


def test_what_a_fold_holds_does_not_change_what_it_is_corrected_by() -> None:
    assert _largest_change(_linear) < 1e-4  # single precision


def test_the_advantages_of_given_values_do_not_see_their_fold() -> None:
    class Given:
        def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
            return np.asarray(-np.sum(inputs**2, axis=1) * (1.0 - elapsed))

    assert _largest_change(lambda e: given_columns(e, [Given()], 1.0, 0)[0]) < 1e-4


def _critics_see_all(patch: pytest.MonkeyPatch) -> None:
    every = list(range(FOLDS))
    patch.setattr(linear, "folds_without", lambda *_: every)
    patch.setattr(linear, "training_sets", lambda _: [every] * FOLDS)


def _scaling_sees_all(patch: pytest.MonkeyPatch) -> None:
    fit, start = Scaling.fit, Learner.__init__

    def leaky(self: Learner, experience: Experience, *rest: Any) -> None:
        patch.setattr(Scaling, "fit", lambda _, rng: fit(experience.inputs, rng))
        start(self, experience, *rest)

    patch.setattr(Learner, "__init__", leaky)


def _weights_see_all(patch: pytest.MonkeyPatch) -> None:
    rule = stacking.Regression.weights
    patch.setattr(stacking.Regression, "weights", lambda self, _: rule(self, []))


@pytest.mark.parametrize("leak", [_critics_see_all, _scaling_sees_all, _weights_see_all])
def test_a_leak_would_be_seen(
    leak: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    leak(monkeypatch)
    assert _largest_change(_linear) > 1e-3


def test_values_are_unbiased_and_intervals_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "MOST_FEATURES", 12)  # few, so that there is time for many runs
    family = LinearFamily((1.0,), Ridges(differences=(1e-2,)))
    problem = LinearQuadratic(1, normal=False, horizon=6)
    honest = measure(problem, [family], episodes=24, runs=300)
    assert abs(honest.bias) < 3.0
    # Intervals of 95% hold less often once in 100 tries; those of 88% as often once in 60.
    least = 0.917
    assert honest.covered >= least
    assert np.median(honest.ratios) < 0.5
    _critics_see_all(monkeypatch)
    assert measure(problem, [family], episodes=24, runs=60).covered < least

"""Every form of a policy draws from the law that it tells."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.environments.spaces import layout_of
from revar.errors import InputError
from revar.model.law import Categorical, Law
from revar.policies import sampled
from revar.policies.sampled import sampled_policy

SEEN = np.array([0.5, -0.25], dtype=np.float32)
BOX = spaces.Box(-1.0, 1.0, (2,))
DRAWS = 4000
NESTED = spaces.Dict(
    kind=spaces.Discrete(3, start=1),
    pair=spaces.Tuple([spaces.MultiDiscrete([2, 4]), spaces.MultiBinary(2)]),
)


def bind(policy: Any, actions: Any, observations: Any = BOX) -> Any:
    return sampled_policy(policy, layout_of(observations), layout_of(actions, "action"))


def draw(policy: Any, count: int = 1, seen: Any = SEEN) -> Any:
    return policy.draw([seen] * count, [np.random.default_rng((7, i)) for i in range(count)])


def assert_scores_have_mean_zero(policy: Any) -> None:
    drawn = draw(policy, DRAWS)
    scores = policy.law.scores(drawn.rows, drawn.noise)
    assert scores.shape == (DRAWS, policy.law.score_width)
    errors = scores.std(axis=0, ddof=1) / math.sqrt(DRAWS)
    assert np.all(np.abs(scores.mean(axis=0)) <= 4.5 * errors + 1e-12)


def nested_chances(seen: Any) -> Any:
    return {
        "kind": [0.2, 0.3, 0.5],
        "pair": ([[0.9, 0.1], np.array([0.25, 0.25, 0.5, 0.0])], [0.7, 0.0]),
    }


def mean_of(seen: Any) -> Any:
    return 2.0 * seen


def test_probabilities_of_every_kind_of_action() -> None:
    for actions, function in [
        (spaces.Discrete(2, start=5), lambda seen: [0.3, 0.7]),
        (spaces.MultiDiscrete([2, 3]), lambda seen: [[0.5, 0.5], [0.1, 0.2, 0.7]]),
        (spaces.MultiBinary(3), lambda seen: np.array([0.1, 0.5, 1.0])),
        (spaces.Tuple([spaces.Discrete(2)]), lambda seen: ([0.5, 0.5],)),
        (NESTED, nested_chances),
    ]:
        policy = bind(function, actions)
        drawn = draw(policy, 50)
        assert all(actions.contains(action) for action in drawn.actions)
        assert len(drawn.noise[0]) == policy.law.noise_width
        assert_scores_have_mean_zero(policy)
    assert str(bind(nested_chances, NESTED).law) == (
        "categorical 3+categorical 2+categorical 4+categorical 2+categorical 2"
    )


def test_actions_without_probability_are_never_taken() -> None:
    taken = draw(bind(lambda seen: [0.0, 0.5, 0.5, 0.0], spaces.Discrete(4)), 500).actions
    assert set(taken) == {1, 2}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.5, 0.6], r"sum to 1.1 at observation array\(\[ 0.5 , -0.25\]"),
        ([1.5, -0.5], "gives the probability -0.5 at observation"),
        ([math.nan, 1.0], "gives the probability nan at observation"),
        ([0.2, 0.3, 0.5], "gives 3 probabilities at observation array.*; there are 2 actions"),
        (0.5, r"gives .*0.5.* at observation .*, which is no row of probabilities and no action"),
        (["a", "b"], "which is no row of probabilities"),
        ([[0.5, 0.5]], "which is no row of probabilities"),
    ],
)
def test_what_are_no_probabilities_is_refused(answer: Any, message: str) -> None:
    for form in (answer, np.array(answer)):
        with pytest.raises(InputError, match=message):
            draw(bind(lambda seen, form=form: form, spaces.Discrete(2)))


@pytest.mark.parametrize(
    ("actions", "answer", "message"),
    [
        (spaces.MultiDiscrete([2, 3]), [[0.5, 0.5]], r"must have 2 parts"),
        (spaces.MultiDiscrete([2, 2]), [[0.5, 0.5]] * 3, r"must have 2 parts"),
        (spaces.MultiBinary(2), [0.5, 1.5], "must be 2 probabilities"),
        (NESTED, ([1.0],), r"for Dict\(.* it must have 2 parts"),
    ],
)
def test_answers_of_another_form_are_refused(actions: Any, answer: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw(bind(lambda seen: answer, actions))


def test_single_precision_counts_as_a_sum_of_1() -> None:
    row = np.full(7, 1.0 / 7.0, dtype=np.float32)
    drawn = draw(bind(lambda seen: row, spaces.Discrete(7)))
    assert sum(drawn.noise[0]) == pytest.approx(1.0, abs=1e-15)


def test_gaussian_policies_are_functions_of_their_noise() -> None:
    for std in (0.5, [0.5, 0.1], np.abs):
        policy = bind(revar.GaussianPolicy(mean_of, std), BOX)
        drawn = draw(policy, 3)
        spread = std(SEEN) if callable(std) else np.array(std)
        wanted = np.clip(2.0 * SEEN + spread * np.array(drawn.noise), -1.0, 1.0)
        np.testing.assert_allclose(drawn.rows, wanted, atol=1e-12)
        assert all(BOX.contains(action) for action in drawn.actions)
        assert_scores_have_mean_zero(policy)
    free = draw(bind(revar.GaussianPolicy(mean_of, 9.0, clip=False), BOX), 20)
    assert np.abs(free.rows).max() > 1.0


def test_batched_functions_are_asked_once_and_give_the_same() -> None:
    asked = []

    def means(seen: Any) -> Any:
        asked.append(seen.shape)
        return 2.0 * seen

    plain = draw(bind(revar.GaussianPolicy(mean_of, 0.5), BOX), 4)
    batched = draw(bind(revar.GaussianPolicy(means, 0.5, batched=True), BOX), 4)
    assert asked == [(4, 2)]
    np.testing.assert_array_equal(plain.rows, batched.rows)
    short = revar.GaussianPolicy(lambda seen: seen[:1], 0.5, batched=True)
    with pytest.raises(InputError, match="the mean function gives 1 rows for 4 observations"):
        draw(bind(short, BOX), 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: revar.GaussianPolicy(3.0, 1.0), "mean is a float; it must be a function"),
        (lambda: revar.GaussianPolicy(mean_of, -1.0), "std is -1.0; it must be finite"),
        (lambda: revar.GaussianPolicy(mean_of, [1.0, math.nan]), "std is nan"),
        (lambda: bind(revar.GaussianPolicy(mean_of, [1.0] * 3), BOX), "std has 3 numbers"),
        (lambda: bind(revar.GaussianPolicy(mean_of, 1.0), NESTED), "a GaussianPolicy needs a Box"),
        (
            lambda: draw(bind(revar.GaussianPolicy(lambda seen: [1.0], 1.0), BOX)),
            "the mean function gives 1 numbers at observation",
        ),
        (
            lambda: draw(bind(revar.GaussianPolicy(lambda seen: [math.nan, 0.0], 1.0), BOX)),
            r"the mean function gives \[nan, 0.0\] at observation",
        ),
        (
            lambda: draw(bind(revar.GaussianPolicy(mean_of, lambda seen: -1.0), BOX)),
            "what the std function gives is -1.0",
        ),
        (
            lambda: draw(bind(revar.GaussianPolicy(lambda seen: 1 / 0, 1.0), BOX)),
            "the policy raised ZeroDivisionError at observation",
        ),
        (lambda: revar.DeterministicPolicy(3), "a DeterministicPolicy is made of an int"),
        (
            lambda: draw(bind(revar.DeterministicPolicy(lambda seen: 4), spaces.Discrete(3))),
            r"the policy at observation array\(.*action 4 does not belong to Discrete\(3\)",
        ),
        (
            lambda: draw(bind(revar.DeterministicPolicy(lambda seen: [1, 2, 3]), BOX)),
            "the policy gives 3 numbers; an action of Box",
        ),
        (lambda: bind(lambda seen: [1.0], BOX), "give a GaussianPolicy, a DeterministicPolicy"),
        (lambda: bind(revar.GaussianPolicy, BOX), "policy is the class GaussianPolicy"),
        (
            lambda: bind("uniform", spaces.Box(0.0, np.inf, (1,))),
            "which is not bounded; no policy is uniform in it",
        ),
    ],
)
def test_policies_that_cannot_act_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_deterministic_policies_have_no_law() -> None:
    policy = bind(revar.DeterministicPolicy(lambda seen: 3.0 * seen), BOX)
    drawn = draw(policy)
    np.testing.assert_allclose(drawn.rows, [[1.0, -0.75]])
    assert not policy.law.parts
    numbered = bind(revar.DeterministicPolicy(lambda seen: np.array([2])), spaces.Discrete(3))
    assert draw(numbered).actions == [2]


@pytest.mark.parametrize(
    "actions",
    [
        spaces.Discrete(3, start=2),
        spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32)),
        spaces.Box(0, 3, (2,), np.int32),
        NESTED,
        spaces.Tuple([spaces.Discrete(2), spaces.Box(-1.0, 1.0, (2, 2))]),
    ],
    ids=str,
)
def test_uniform_in_every_space(actions: Any) -> None:
    policy = bind("uniform", actions)
    drawn = draw(policy, DRAWS)
    assert all(actions.contains(action) for action in drawn.actions[:100])
    assert_scores_have_mean_zero(policy)
    if isinstance(actions, spaces.Box):
        rows = np.array(drawn.rows)
        width = actions.high.astype(float) - actions.low
        variance = width**2 / 12.0 if actions.dtype.kind == "f" else ((width + 1) ** 2 - 1) / 12.0
        middle = (actions.low.astype(float) + actions.high) / 2.0
        assert np.all(np.abs(rows.mean(axis=0) - middle) < 4 * np.sqrt(variance / DRAWS))
        np.testing.assert_allclose(rows.var(axis=0), variance, rtol=0.1)


class Stepper:
    """A policy that draws for itself: a step to either side, from one normal number."""

    def sample(self, seen: Any, rng: np.random.Generator) -> Any:
        noise = rng.standard_normal()
        return int(noise > 0.0), noise


class Chooser:
    """One that tells its law: with probabilities as noise."""

    law = Law((Categorical(2),))

    def sample(self, seen: Any, rng: np.random.Generator) -> Any:
        return int(rng.random() < 0.3), [0.7, 0.3]


def test_objects_that_sample_for_themselves() -> None:
    policy = bind(Stepper(), spaces.Discrete(2))
    with pytest.raises(InputError, match="not known before it has acted"):
        _ = policy.law
    drawn = draw(policy, 3)
    assert str(policy.law) == "normal 1"
    assert drawn.actions == [int(noise[0] > 0.0) for noise in drawn.noise]
    told = bind(Chooser(), spaces.Discrete(2))
    assert str(told.law) == "categorical 2"
    assert_scores_have_mean_zero(told)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (1, "sample gives 1 at observation .* it must be an action and its noise"),
        ((2, [0.0]), r"action 2 does not belong to Discrete\(2\)"),
        ((1, "x"), "noise 'x', which are no numbers"),
        ((1, [math.inf]), "it must be 1 finite numbers"),
    ],
)
def test_samples_are_checked(answer: Any, message: str) -> None:
    policy = Stepper()
    policy.sample = lambda seen, rng: answer  # type: ignore[method-assign]
    with pytest.raises(InputError, match=message):
        draw(bind(policy, spaces.Discrete(2)))


@pytest.mark.parametrize(
    ("scale", "shift", "message"),
    [
        (0.5, 0.0, r"mean square 0\.[12]"),
        (2.0, 0.0, r"mean square [345]"),
        (1.0, 0.8, r"has mean 0\.[6789]"),
        (1.0, 0.0, ""),
    ],
)
def test_noise_that_is_not_standard_normal_is_found_out(
    scale: float, shift: float, message: str
) -> None:
    policy = Stepper()
    plain = policy.sample
    policy.sample = lambda seen, rng: (1, scale * plain(seen, rng)[1] + shift)  # type: ignore[method-assign]
    bound = bind(policy, spaces.Discrete(2))
    if not message:
        draw(bound, 5000)
        return
    draw(bound, 20)
    with pytest.raises(InputError, match=message):
        draw(bound, 60)


def test_false_alarms_are_as_rare_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    alarms = 0.1
    monkeypatch.setattr(sampled, "FALSE_ALARMS", alarms)
    source = np.random.default_rng(5)
    runs, refused = 400, 0
    for _ in range(runs):
        policy = Stepper()
        policy.sample = lambda seen, rng: (1, source.standard_normal(3))  # type: ignore[method-assign]
        bound = bind(policy, spaces.Discrete(2))
        try:
            bound.draw([SEEN] * 100, [source] * 100)
        except InputError:
            refused += 1
    # Six of infinitely many looks: 6/7 of the false alarms, and fewer as looks overlap.
    assert 0 < refused <= runs * alarms + 3.0 * math.sqrt(runs * alarms * (1.0 - alarms))


def test_tables_and_files_for_discrete_observations(tmp_path: Path) -> None:
    observations = spaces.Discrete(3, start=1)
    table = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    np.save(tmp_path / "policy.npy", table)
    for form in (table, table.tolist(), str(tmp_path / "policy.npy"), tmp_path / "policy.npy"):
        policy = bind(form, spaces.Discrete(2), observations)
        assert draw(policy, seen=3).noise == [[1.0, 0.0]]
    greedy = bind(revar.epsilon_greedy(table, 0.1, 2), spaces.Discrete(2), observations)
    np.testing.assert_allclose(draw(greedy, seen=1).noise, [[0.05, 0.95]])
    with pytest.raises(InputError, match=r"policy has shape \(2, 2\); .* it is \(3, 2\)"):
        bind(table[:2], spaces.Discrete(2), observations)
    with pytest.raises(InputError, match=r"observations must then be discrete, not Box"):
        bind(table, spaces.Discrete(2))
    with pytest.raises(InputError, match="actions must then be Discrete"):
        bind(table, BOX, observations)


def test_policies_can_be_sent_to_workers() -> None:
    for policy, actions in [
        (revar.GaussianPolicy(mean_of, 0.5), BOX),
        (revar.DeterministicPolicy(mean_of), BOX),
        (revar.uniform_policy(2), spaces.Discrete(2)),
        (Stepper(), spaces.Discrete(2)),
    ]:
        again = pickle.loads(pickle.dumps(policy))
        np.testing.assert_array_equal(
            draw(bind(policy, actions)).rows, draw(bind(again, actions)).rows
        )


def test_what_is_no_policy() -> None:
    with pytest.raises(InputError, match="policy is a dict; it must be a function"):
        bind({}, spaces.Discrete(2))

"""Sentences whose numbers are those of the data."""

import re
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from revar.errors import InputError
from revar.experiments.exact import Alone
from revar.reports.conclusions import answer_question, check_answer
from revar.reports.tables import make_tables
from tests.reports.made_up import EXACT_VALUES, results, series
from tests.reports.tiny import tiny


def test_order_names_the_errors_from_small_to_large() -> None:
    sentences = answer_question(
        results(
            series([2.0, 2.0], strategy="on-policy"),
            series([1.0, 1.0], strategy="flow"),
            series([3.0, 3.0], strategy="revar"),
        )
    )
    # Errors are the same in both runs: no standard error.
    assert sentences == [
        "On p, after 100 episodes, K·MSE is flow 100, on-policy 400, revar 900.",
        "On-policy collection has 0.4444 times the error of revar there.",
        "On-policy collection has 4 times the error of flow there.",
    ]


@pytest.mark.parametrize(
    ("errors", "ending"),
    [
        ([3.0, 3.0, 1.0, 1.0], "; its error is the larger one from K = 30 on."),
        ([1.0, 1.0, 1.0, 1.0], "; its error is the larger one at every budget."),
        ([1.0, 1.0, 1.0, 3.0], "; its error is the smaller one at the end."),
    ],
)
def test_order_says_from_where_on(errors: list[float], ending: str) -> None:
    points = [10, 20, 30, 40]
    sentences = answer_question(
        results(
            series([[2.0] * 4] * 2, strategy="on-policy", checkpoints=points),
            series([errors] * 2, strategy="flow", checkpoints=points),
        )
    )
    assert sentences[1].endswith(f"times the error of flow there{ending}")


def test_order_without_on_policy_or_an_estimate() -> None:
    sentences = answer_question(
        results(series([np.nan, 1.0], strategy="uniform"), series([1.0, 1.0], strategy="flow"))
    )
    assert sentences == ["On p, after 100 episodes, K·MSE is flow 100, uniform -."]


def test_the_tree_s_sentences_have_the_numbers_of_its_series() -> None:
    found = tiny("tree")
    first, *ratios = answer_question(found)
    squares = {
        s.strategy: (s.estimates[:, -1] - found.exact("tree").value) ** 2 for s in found.series
    }
    for strategy, errors in squares.items():
        mean = 60 * errors.mean()
        error = 60 * errors.std(ddof=1) / np.sqrt(len(errors))
        shown = re.search(rf"\b{re.escape(strategy)} ([\d.]+) ± ([\d.]+)", first)
        assert shown is not None
        assert float(shown[1]) == pytest.approx(mean, abs=error)  # rounded to its error
        assert float(shown[2]) == pytest.approx(error, rel=0.06)
    for strategy, sentence in zip(("revar", "flow"), ratios, strict=True):
        shown = re.search(rf"has ([\d.]+) ± [\d.]+ times the error of {strategy} there", sentence)
        assert shown is not None
        ratio = squares["on-policy"].mean() / squares[strategy].mean()
        assert float(shown[1]) == pytest.approx(ratio, rel=0.06)


def test_ablation_is_read_early_and_late() -> None:
    points = [10, 60, 100]
    parts = [
        series([[1.0, 2.0, 3.0]] * 2, strategy="revar", checkpoints=points),
        series([[1.0, 1.0, 4.0]] * 2, strategy="flow", checkpoints=points),
    ]
    assert answer_question(results(*parts, answer="ablation")) == [
        "On p at K = 60, K·MSE from best to worst: flow 60, revar 240.",
        "On p at K = 100, K·MSE from best to worst: revar 900, flow 1.6e+03.",
    ]
    # Where a collection ends early, early is late.
    short = [
        series([[1.0, 2.0]] * 2, strategy="revar", checkpoints=[10, 20]),
    ]
    assert answer_question(results(*short, answer="ablation")) == [
        "On p at K = 20, K·MSE from best to worst: revar 80."
    ]


def test_slopes() -> None:
    parts = [
        series(
            np.zeros(3),
            strategy="revar",
            budget=budget,
            variances=1.0 / budget + budget**-1.75 * np.array([0.9, 1.0, 1.1]),
        )
        for budget in (100, 1000, 10_000)
    ]
    (sentence,) = answer_question(results(*parts, answer="slopes"))
    assert sentence.startswith("On p regret falls like K^(-1.750 ± 0.018) with revar;")


def test_limit() -> None:
    parts = [series([0.1, 0.2], strategy="flow"), series([0.2, 0.2], strategy="oracle")]
    # K*MSE: 100 times 0.025 and 0.04; the standard error of the former is 100 times 0.015.
    assert answer_question(results(*parts, answer="limit")) == [
        "On p: the paper's oracle is 2.00 times the limit 1.000 by theory; measured K·MSE / limit "
        "at K = 100: flow 2.50 ± 1.50, oracle 4.00 ± 0.00."
    ]
    infinite = msgspec.structs.replace(EXACT_VALUES, oracle=None)
    (sentence,) = answer_question(results(*parts, answer="limit", exact=(infinite,)))
    assert sentence.startswith("On p: measured K·MSE / limit")


def test_intervals() -> None:
    # Of 20 intervals 19 and 15 hold the truth: 95% and 75%.
    parts = [
        series([0.0] * 19 + [5.0], strategy="flow"),
        series([0.0] * 15 + [5.0] * 5, strategy="revar"),
    ]
    assert answer_question(results(*parts, answer="intervals")) == [
        "After 100 episodes, 1 of 2 combinations have a measured coverage of 92.5% to 97.5% at "
        "nominal 95%.",
        "The lowest is 75.0% (revar on p), the highest 95.0% (flow on p).",
    ]


def test_relative_errors_at_the_end() -> None:
    parts = [
        replace(series([0.5, 0.5, 0.5, 0.0], standard_errors=0.1), true_value=0.5),
        replace(series([0.4, 0.6, 0.4, 0.6], standard_errors=0.1, strategy="flow"), true_value=0.5),
    ]
    exact = msgspec.structs.replace(EXACT_VALUES, value=0.5)
    found = results(*parts, answer="relative", tables=["relatives"], exact=(exact,))
    assert answer_question(found) == [
        "On p, whose value is 0.5, the relative error after 100 episodes (and how often 95% "
        "intervals hold) is 50.0% with on-policy (75%), 20.0% with flow (100%). By theory, "
        "the mean return needs 8 times as many episodes as the best collection."
    ]
    (table,) = make_tables(found)
    # Squared errors 0, 0, 0, 1/4: standard error 1/16, of the root 1/8, of the share 1/4.
    assert table.rows == (
        ("p", "on-policy", "100", "50.0 ± 25.0%", "75.0%", "25.0%"),
        ("p", "flow", "100", "20.0 ± 0.0%", "100.0%", "0.0%"),
    )


def test_first_or_not() -> None:
    flow = series(np.linspace(0.9, 1.1, 50), strategy="flow")
    near = series(np.linspace(1.1, 0.88, 50), strategy="revar")
    better = series(np.linspace(0.4, 0.6, 50), strategy="revar")
    told = series(np.linspace(0.1, 0.2, 50), strategy="oracle")
    found = answer_question(results(flow, near, told, answer="first"))
    assert found == [
        "At K = 100 flow has the smallest error, or one within two standard errors of it, on 1 of "
        "1 problems."
    ]
    sentence, why = answer_question(results(flow, better, told, answer="first"))
    assert why.startswith("Where it is not first, the budget is small")
    assert re.search(
        r"on 0 of 1 problems; not on p \(revar is first, flow has 3\.9\d+ ± 0\.\d+ times", sentence
    )
    # A peer that is told the model does not compete, and without it does.
    odi: dict[str, Any] = {"id": "odi", "label": "revar", "options": {"known_model": True}}
    (sentence,) = answer_question(results(flow, better, answer="first", strategies=["flow", odi]))
    assert "on 1 of 1 problems." in sentence
    del odi["options"]
    sentence, _ = answer_question(results(flow, better, answer="first", strategies=["flow", odi]))
    assert "on 0 of 1 problems;" in sentence
    with pytest.raises(InputError, match="the answer 'first' needs the strategy 'flow'"):
        answer_question(results(near, answer="first"))


def test_unknown_answers_are_refused() -> None:
    message = (
        "unknown answer 'why'; there are order, ablation, slopes, limit, intervals, first, "
        "difference, relative"
    )
    with pytest.raises(InputError) as caught:
        check_answer("why")
    assert str(caught.value) == message


def test_a_difference_by_how_it_was_collected() -> None:
    exact = msgspec.structs.replace(
        EXACT_VALUES,
        value=0.5,
        alone=(
            Alone(value=2.0, on_policy=9.0, limit=4.0),
            Alone(value=1.5, on_policy=16.0, limit=1.0),
        ),
    )
    ways = [
        {"id": "on-policy", "label": "each", "apart": True},
        {"id": "on-policy", "label": "both"},
        {"id": "revar"},
        {"id": "flow", "label": "planned"},
    ]
    parts = [
        series([error, -error], strategy=name)
        for error, name in ((0.6, "each"), (0.3, "both"), (0.25, "revar"), (0.1, "planned"))
    ]
    made = results(*parts, exact=(exact,), strategies=ways, answer="difference")
    errors, times, splits = answer_question(made)
    assert errors == (
        "On p, after 100 episodes, K·MSE of the difference 2.0000 - 1.5000 = 0.5000 is: each 36 "
        "(theory 50.0); both 9 (theory 4.0); revar 6.25; planned 1 (theory 1.0)."
    )
    assert times == (
        "The episodes that the same error takes, compared with planned: 36 times with each; 9 "
        "times with both; 6.25 times with revar."
    )
    assert splits.endswith(
        "theory gives 49.0 on-policy and 9.0 with flows; the limit, of the shared flow, is 1.0."
    )
    alone = results(parts[0], exact=(exact,), strategies=ways[:1], answer="difference")
    with pytest.raises(InputError, match="the answer 'difference' needs the strategy 'flow'"):
        answer_question(alone)
    with pytest.raises(InputError, match="experiment 'made-up' asks for no difference"):
        answer_question(results(parts[3], answer="difference", strategies=ways[3:]))

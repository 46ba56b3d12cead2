import re

import msgspec
import numpy as np
import pytest

from revar.errors import InputError
from revar.reports.tables import Table, check_tables, concise, make_tables
from tests.reports.made_up import EXACT_VALUES, results, series
from tests.reports.tiny import tiny


def table(name: str, *parts: object, **declared: object) -> Table:
    (found,) = make_tables(results(*parts, tables=[name], **declared))  # type: ignore[arg-type]
    assert all(len(row) == len(found.headings) for row in found.rows)
    return found


def test_errors() -> None:
    found = table(
        "errors",
        series([1.0, -3.0], strategy="on-policy", standard_errors=2.0),
        series([0.1, 0.1], strategy="flow", standard_errors=0.01),
    )
    assert found.title == "Errors on p"
    assert found.headings == ("strategy", "K", "K·MSE ± s.e.", "/ limit", "coverage", "no data")
    assert found.rows == (
        ("on-policy", "100", "500 ± 400", "500.00", "100.0%", "0%"),
        ("flow", "100", "1", "1.00", "0.0%", "0%"),
    )
    assert found.note.startswith("Estimator: certainty-equivalence. 2 runs each.")


def test_errors_of_several_problems_and_estimators_name_them() -> None:
    other = msgspec.structs.replace(EXACT_VALUES, problem="q", limit=0.0)
    found = table(
        "errors",
        series([1.0, 1.0]),
        series([1.0, 1.0], problem="q", estimator="monte-carlo"),
        exact=(EXACT_VALUES, other),
    )
    assert found.headings[:3] == ("problem", "strategy", "estimator")
    assert found.words == 3
    assert [row[:3] for row in found.rows] == [
        ("p", "on-policy", "certainty-equivalence"),
        ("q", "on-policy", "monte-carlo"),
    ]
    assert found.rows[1][5] == "-"  # no limit to divide by


def test_exact() -> None:
    infinite = msgspec.structs.replace(EXACT_VALUES, problem="q", on_policy=None, oracle=None)
    found = table("exact", series([1.0, 1.0]), exact=(EXACT_VALUES, infinite))
    assert found.rows == (
        ("p", "general", "0.0000", "8", "4", "2", "1"),
        ("q", "general", "0.0000", "8", "∞", "∞", "1"),
    )
    assert "transitions unknown" in found.note
    known = table("exact", series([1.0, 1.0]), known_transitions=True)
    assert "transitions known" in known.note


def test_exact_figures_of_the_tree() -> None:
    row = make_tables(tiny("tree"))[1].rows[0]
    assert row[:2] == ("tree", "tree")
    assert row[4:] == ("4.038", "0.8909", "0.8909")


def test_proportions() -> None:
    found = table(
        "proportions",
        series([1.0, 1.0], strategy="on-policy", visits=[[1, 3], [0, 0]]),
        series([1.0, 1.0], strategy="flow", visits=[[4, 4], [1, 0]]),
    )
    assert found.headings == (
        *("problem", "state", "action", "target policy", "oracle, exact"),
        *("on-policy", "flow"),
    )
    assert found.rows == (
        ("p", "0", "0", "0.500", "0.250", "0.250", "0.500"),
        ("p", "0", "1", "0.500", "0.750", "0.750", "0.500"),
        ("p", "1", "0", "0.500", "0.500", "-", "1.000"),
        ("p", "1", "1", "0.500", "0.500", "-", "0.000"),
    )


def test_proportions_leave_out_states_that_are_never_met() -> None:
    exact = msgspec.structs.replace(EXACT_VALUES, oracle_visits=[[1.0, 0.0], [0.0, 0.0]])
    found = table("proportions", series([1.0, 1.0]), exact=(exact,))
    assert [row[1] for row in found.rows] == ["0", "0"]


def test_proportions_of_example_1() -> None:
    rows = make_tables(tiny("examples"))[0].rows
    left, right = np.sqrt(200), np.sqrt(151)
    assert rows[0][:5] == ("example-1", "0", "0", "0.500", f"{left / (left + right):.3f}")


def test_peers_take_the_best_estimator() -> None:
    found = table(
        "peers",
        series([0.1, 0.2], strategy="on-policy", estimator="certainty-equivalence"),
        series([0.05, 0.15], strategy="on-policy", estimator="monte-carlo"),
        series([0.1, 0.1], strategy="flow", estimator="certainty-equivalence"),
    )
    assert found.headings == ("strategy", "K", "p")
    # 100 times the squares 0.01 and 0.04, then 0.0025 and 0.0225.
    assert found.rows == (("on-policy", "100", "1(1)m"), ("flow", "100", "1.00(0)"))
    assert "m monte-carlo" in found.note


def test_peers_without_a_limit_have_no_ratio() -> None:
    zero = msgspec.structs.replace(EXACT_VALUES, limit=0.0)
    found = table("peers", series([0.1, 0.2]), exact=(zero,))
    assert found.rows == (("on-policy", "100", "-"),)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.234, 0.05, "1.23(5)"),
        (1.234, 0.096, "1.2(1)"),
        (12.34, 1.2, "12(1)"),
        (123.4, 12.0, "123(12)"),
        (1.0, 0.0, "1.00(0)"),
        (float("inf"), 1.0, "∞"),
        (float("nan"), 1.0, "-"),
    ],
)
def test_concise_numbers(value: float, error: float, shown: str) -> None:
    assert concise(value, error) == shown


def test_coverages() -> None:
    found = table("coverages", series([0.0, 0.0, 1.5, 2.3, 9.0], standard_errors=1.0))
    assert found.headings[3:] == ("nominal 80%", "nominal 95%", "nominal 99%")
    # Within 1.28, 1.96 and 2.58 standard errors.
    assert found.rows == (("p", "on-policy", "100", "40.0%", "60.0%", "80.0%"),)
    noise = 100 * np.sqrt(0.95 * 0.05 / 5)
    assert re.search(rf"is {noise:.1f}% points", found.note)


def test_differences() -> None:
    (found,) = [t for t in make_tables(tiny("compare")) if t.headings[1] == "collection"]
    assert found.rows == (
        ("A - B", "on-policy, apart", "176.4", "162.3"),
        ("A - B", "flow, apart", "75.59", "62.76"),
        ("A - B", "on-policy, pooled", "56.54", "-"),
        ("A - B", "limit: flow, shared", "16.62", "-"),
    )


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        check_tables(("errors", "erorrs"))
    assert str(caught.value) == (
        "unknown table 'erorrs'; there are errors, exact, proportions, peers, coverages, "
        "differences, relatives"
    )

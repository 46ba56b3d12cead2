"""Tables of a report as text cells; the terminal, pages and Markdown show the same ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revar.errors import InputError
from revar.experiments.results import Results
from revar.reports.metrics import (
    best_estimators,
    coverage,
    difference_problems,
    final,
    relative_error,
)


@dataclass(frozen=True)
class Table:
    """Headings and rows of text; columns of numbers are flush right."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int  # how many columns from the left name the row
    note: str = ""


def make_tables(results: Results) -> list[Table]:
    """Make the tables that the experiment asks for."""
    return [_find(name)(results) for name in results.experiment.tables]


def check_tables(names: tuple[str, ...]) -> None:
    """Raise for an unknown table."""
    for name in names:
        _find(name)


def errors(results: Results) -> Table:
    """The error of every series at its end."""
    names = sorted({series.estimator for series in results.series})
    several = len(results.problems()) > 1
    rows = []
    for series in results.series:
        limit = results.exact(series.problem).limit
        error = final(series)
        rows.append(
            (
                *((series.problem,) if several else ()),
                series.strategy,
                *((series.estimator,) if len(names) > 1 else ()),
                f"{series.checkpoints[-1]:,}",
                str(error),
                f"{error.value / limit:.2f}" if limit > 0 else "-",
                f"{100 * coverage(series, 0.95).value:.1f}%",
                f"{100 * series.unvisited_probability[:, -1].mean():.2g}%",
            )
        )
    words = (
        *(("problem",) if several else ()),
        "strategy",
        *(("estimator",) if len(names) > 1 else ()),
    )
    return Table(
        "Errors" if several else f"Errors on {results.problems()[0]}",
        (*words, "K", "K·MSE ± s.e.", "/ limit", "coverage", "no data"),
        tuple(rows),
        len(words),
        (f"Estimator: {names[0]}. " if len(names) == 1 else "")
        + f"{results.experiment.runs:,} runs each. Limit: the smallest K·MSE that any collection "
        "can have for large K. Coverage: of nominal 95% intervals. No data: the share of the "
        "target policy's episodes that meet a state and action never tried.",
    )


def exact(results: Results) -> Table:
    """What theory says of the problems."""
    rows = tuple(
        (
            known.problem,
            known.structure,
            f"{known.value:.4f}",
            f"{known.monte_carlo:.4g}",
            _error(known.on_policy),
            _error(known.oracle),
            _error(known.limit),
        )
        for known in results.manifest.exact
    )
    headings = (
        "problem",
        "structure",
        "value",
        "Monte Carlo",
        "on-policy",
        "paper's oracle",
        "limit",
    )
    state = "known" if results.experiment.known_transitions else "unknown"
    return Table(
        "Exact figures",
        headings,
        rows,
        2,
        f"The last four columns are K·MSE for large K, transitions {state}. Monte Carlo averages "
        "the returns of on-policy episodes; the others are certainty equivalence.",
    )


def _error(error: float | None) -> str:
    return "∞" if error is None else f"{error:.4g}"


def proportions(results: Results) -> Table:
    """Target policy, oracle's proportions and measured shares, state by state."""
    rows = []
    for problem in results.problems():
        known = results.exact(problem)
        measured = {
            strategy: best_estimators(results.of(problem, strategy))[-1].visits.astype(float)
            for strategy in results.strategies()
        }
        for state, oracle in enumerate(known.oracle_behavior):
            if sum(known.oracle_visits[state]) == 0:
                continue
            for action in range(known.actions):
                shares = [
                    f"{v[state, action] / v[state].sum():.3f}" if v[state].any() else "-"
                    for v in measured.values()
                ]
                rows.append(
                    (
                        problem,
                        f"{state}",
                        f"{action}",
                        f"{known.policy[state][action]:.3f}",
                        f"{oracle[action]:.3f}",
                        *shares,
                    )
                )
    headings = ("problem", "state", "action", "target policy", "oracle, exact")
    return Table("Shares of actions", (*headings, *results.strategies()), tuple(rows), 3)


def peers(results: Results) -> Table:
    """K*MSE / limit of every strategy with its best estimator: strategies down, problems across."""
    problems = results.problems()
    letters = _letters(results)
    rows = []
    for budget in results.experiment.budgets():
        for strategy in results.strategies():
            cells = []
            for problem in problems:
                limit = results.exact(problem).limit or np.nan
                found = best_estimators(results.of(problem, strategy, budget))
                cells.append(
                    concise(final(found[0]).value / limit, final(found[0]).error / limit)
                    + letters[found[0].estimator]
                    if found
                    else "-"
                )
            rows.append((strategy, f"{budget:,}", *cells))
    others = ", ".join(f"{letter} {name}" for name, letter in letters.items() if letter)
    return Table(
        "K·MSE / limit of each strategy with its best estimator",
        ("strategy", "K", *problems),
        tuple(rows),
        2,
        "In parentheses the standard error of the last digits shown: 1.23(5) is 1.23 ± 0.05. "
        f"Certainty equivalence unless a letter says otherwise: {others}."
        f" {results.experiment.runs:,} runs.",
    )


def concise(value: float, error: float) -> str:
    """A number with its standard error in units of its last digit: 1.23(5)."""
    if np.isnan(value):
        return "-"
    if not (np.isfinite(value) and np.isfinite(error)):
        return "∞"
    digits = max(0, -int(np.floor(np.log10(error)))) if error > 0 else 2
    shown = round(error * 10**digits)
    if shown >= 10:  # 0.096 is 0.10, one digit less
        digits, shown = max(0, digits - 1), round(error * 10 ** max(0, digits - 1))
    return f"{value:.{digits}f}({shown})"


def _letters(results: Results) -> dict[str, str]:
    """A letter for each estimator but certainty equivalence."""
    names = sorted({series.estimator for series in results.series})
    return {name: "" if name == "certainty-equivalence" else name[0] for name in names}


def coverages(results: Results) -> Table:
    """Coverage at three levels."""
    levels = (0.8, 0.95, 0.99)
    rows = tuple(
        (
            series.problem,
            series.strategy,
            f"{series.budget:,}",
            *(f"{100 * coverage(series, level).value:.1f}%" for level in levels),
        )
        for series in results.series
    )
    noise = 100 * np.sqrt(0.95 * 0.05 / results.experiment.runs)
    return Table(
        "Coverage",
        ("problem", "strategy", "K", *(f"nominal {level:.0%}" for level in levels)),
        rows,
        3,
        f"{results.experiment.runs:,} runs: one standard error at 95% is {noise:.1f}% points.",
    )


def differences(results: Results) -> Table:
    """What theory says of differences: K*MSE by how the episodes are collected."""
    rows = []
    for problem in difference_problems(results):
        known = results.exact(problem)
        for way, equal, best in (
            (
                "on-policy, apart",
                known.expected("on-policy", apart=True),
                known.best_split("on-policy"),
            ),
            ("flow, apart", known.expected("flow", apart=True), known.best_split("flow")),
        ):
            rows.append((problem, way, _error(equal), _error(best)))
        rows.append((problem, "on-policy, pooled", _error(known.on_policy), "-"))
        rows.append((problem, "limit: flow, shared", _error(known.limit), "-"))
    return Table(
        "Exact figures of differences",
        ("problem", "collection", "equal shares", "best split"),
        tuple(rows),
        2,
        "K·MSE for large K. Apart: every policy from its own episodes, an equal share of them, or "
        "the best split, which nobody knows beforehand. Pooled: the policies' episodes in turn, "
        "and every value from all of them. Limit: of the flow that is optimal for the difference.",
    )


def relatives(results: Results) -> Table:
    """Errors as shares of the true value, and how often nothing was seen of it."""
    rows = tuple(
        (
            series.problem,
            series.strategy,
            f"{series.budget:,}",
            f"{100 * relative_error(series).value:.1f} ± {100 * relative_error(series).error:.1f}%",
            f"{100 * coverage(series, 0.95).value:.1f}%",
            f"{100 * np.mean(series.estimates[:, -1] == 0.0):.1f}%",
        )
        for series in results.series
    )
    return Table(
        "Relative errors",
        ("problem", "strategy", "K", "error / value ± s.e.", "coverage", "value 0"),
        rows,
        2,
        f"{results.experiment.runs:,} runs each. Error: root mean squared. Coverage: of nominal "
        "95% intervals. Value 0: the runs whose estimate is 0, because nothing else was seen.",
    )


_TABLES: dict[str, Callable[[Results], Table]] = {
    function.__name__: function
    for function in (errors, exact, proportions, peers, coverages, differences, relatives)
}


def _find(name: str) -> Callable[[Results], Table]:
    if name not in _TABLES:
        raise InputError(f"unknown table {name!r}; there are {', '.join(_TABLES)}")
    return _TABLES[name]

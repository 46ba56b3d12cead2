"""Sentences that answer an experiment's question, computed from its results."""

from collections.abc import Callable

import numpy as np

from revar.errors import InputError
from revar.experiments.experiment import build_strategy
from revar.experiments.results import Results, Series
from revar.reports.metrics import (
    best_estimators,
    coverage,
    crossing,
    difference_problems,
    error_ratio,
    final,
    merge_budgets,
    regret,
    relative_error,
)

# Where an ablation is read "early", in episodes.
EARLY = 50


def answer_question(results: Results) -> list[str]:
    """Answer the experiment's question in sentences."""
    return _find(results.experiment.answer)(results)


def check_answer(name: str) -> None:
    """Raise for an unknown answer."""
    _find(name)


def order(results: Results) -> list[str]:
    """Who has the smallest error, by how much, and from which budget on."""
    sentences = []
    for problem in results.problems():
        ends = _ends(results, problem)
        ranked = sorted(ends.values(), key=lambda s: np.nan_to_num(s.mse[-1], nan=np.inf))
        listed = ", ".join(f"{s.strategy} {final(s)}" for s in ranked)
        sentences.append(
            f"On {problem}, after {ranked[0].checkpoints[-1]:,} episodes, K·MSE is {listed}."
        )
        base = _first_of(results, ends, "on-policy")
        if base is None:
            continue
        for strategy_id in ("revar", "flow"):
            series = _first_of(results, ends, strategy_id)
            if series is None:
                continue
            ratio = error_ratio(base, series)
            sentences.append(
                f"On-policy collection has {ratio} times the error of {series.strategy} there"
                + _since_when(series, base)
            )
    return sentences


def ablation(results: Results) -> list[str]:
    """Which constant is best, early and late."""
    sentences = []
    for problem in results.problems():
        ends = _ends(results, problem)
        points = next(iter(ends.values())).checkpoints
        early = min(int(np.searchsorted(points, EARLY)), points.size - 1)
        for place in dict.fromkeys((early, points.size - 1)):
            ranked = sorted(ends.values(), key=lambda s: np.nan_to_num(s.mse[place], nan=np.inf))
            listed = ", ".join(f"{s.strategy} {s.scaled[place]:.3g}" for s in ranked)
            sentences.append(
                f"On {problem} at K = {points[place]:,}, K·MSE from best to worst: {listed}."
            )
    return sentences


def slopes(results: Results) -> list[str]:
    """How fast regret falls."""
    sentences = []
    for problem in results.problems():
        listed = ", ".join(
            f"K^({regret(results, problem, strategy).slope}) with {strategy}"
            for strategy in results.strategies()
        )
        sentences.append(
            f"On {problem} regret falls like {listed}; the paper's bound falls like K^(-3/2). The "
            f"loss is of second order in the deviation from the optimal shares, so that the bound "
            f"is not reached."
        )
    return sentences


def limit(results: Results) -> list[str]:
    """How near each strategy and the paper's oracle come to the limit."""
    sentences = []
    for problem in results.problems():
        exact = results.exact(problem)
        ends = _ends(results, problem)
        unit = exact.limit or np.nan
        listed = ", ".join(
            f"{s.strategy} {final(s).value / unit:.2f} ± {final(s).error / unit:.2f}"
            for s in ends.values()
        )
        theory = (
            ""
            if exact.oracle is None
            else (
                f"the paper's oracle is {exact.oracle / unit:.2f} times the limit "
                f"{exact.limit:.3f} by theory; "
            )
        )
        sentences.append(
            f"On {problem}: {theory}measured K·MSE / limit at K = "
            f"{results.of(problem)[-1].budget:,}: {listed}."
        )
    return sentences


def intervals(results: Results) -> list[str]:
    """Whether intervals cover as often as they should."""
    budget = max(results.experiment.budgets())
    found = {series.label(): coverage(series, 0.95).value for series in results.of(budget=budget)}
    low, high = min(found, key=lambda k: found[k]), max(found, key=lambda k: found[k])
    inside = sum(0.925 <= share <= 0.975 for share in found.values())
    return [
        f"After {budget:,} episodes, {inside} of {len(found)} combinations have a measured "
        f"coverage of 92.5% to 97.5% at nominal 95%.",
        f"The lowest is {found[low]:.1%} ({low[1]} on {low[0]}), the highest {found[high]:.1%} "
        f"({high[1]} on {high[0]}).",
    ]


def first(results: Results) -> list[str]:
    """Whether "flow" is first on every problem, within noise, and who is where it is not first."""
    sentences = []
    late = False
    for budget in results.experiment.budgets():
        behind = []
        for problem in results.problems():
            ends = _ends(results, problem, budget)
            series = _first_of(results, ends, "flow")
            if series is None:
                raise InputError("the answer 'first' needs the strategy 'flow'")
            # Oracles that are told the true model do not compete.
            rivals = [s for name, s in ends.items() if not _knows_model(results, name)]
            best = min(rivals, key=lambda s: s.mse[-1])
            ratio = error_ratio(series, best)
            if best is not series and ratio.value - 1.0 > 2.0 * ratio.error:
                behind.append(
                    f"{problem} ({best.strategy} is first, flow has {ratio} times its error)"
                )
        count = len(results.problems())
        sentences.append(
            f"At K = {budget:,} flow has the smallest error, or one within two standard errors of "
            f"it, on {count - len(behind)} of {count} problems"
            + (f"; not on {'; '.join(behind)}." if behind else ".")
        )
        late |= bool(behind)
    if late:
        sentences.append(
            "Where it is not first, the budget is small for the number of pairs: what few episodes "
            "tell of rare outcomes decides what is tried, and that biases the estimate."
        )
    return sentences


def difference(results: Results) -> list[str]:
    """What it takes to know a difference of policies, by how the episodes are collected."""
    sentences = []
    for problem in difference_problems(results):
        exact, ends = results.exact(problem), _ends(results, problem)
        choices = results.experiment.strategy_choices()
        shared = next((ends[c.name] for c in choices if c.id == "flow" and not c.apart), None)
        if shared is None:
            raise InputError("the answer 'difference' needs the strategy 'flow', not apart")
        values = " - ".join(f"{policy.value:.4f}" for policy in exact.alone)
        listed = []
        for choice in choices:
            theory = exact.expected(choice.id, apart=bool(choice.apart))
            known = "" if theory is None else f" (theory {theory:.1f})"
            listed.append(f"{choice.name} {final(ends[choice.name])}{known}")
        sentences.append(
            f"On {problem}, after {shared.checkpoints[-1]:,} episodes, K·MSE of the difference "
            f"{values} = {exact.value:.4f} is: {'; '.join(listed)}."
        )
        times = [
            f"{error_ratio(series, shared)} times with {name}"
            for name, series in ends.items()
            if series is not shared
        ]
        sentences.append(
            f"The episodes that the same error takes, compared with {shared.strategy}: "
            f"{'; '.join(times)}."
        )
        splits = [exact.best_split(strategy) for strategy in ("on-policy", "flow")]
        if None not in splits:
            sentences.append(
                f"Apart, each policy has an equal share of the episodes. With the best split, "
                f"which nobody knows beforehand, theory gives {splits[0]:.1f} on-policy and "
                f"{splits[1]:.1f} with flows; the limit, of the shared flow, is {exact.limit:.1f}."
            )
    return sentences


def relative(results: Results) -> list[str]:
    """How far off the value is as a share of it, and how often intervals hold, at the end."""
    sentences = []
    for problem in results.problems():
        exact = results.exact(problem)
        budget = max(results.experiment.budgets())
        listed = ", ".join(
            f"{100 * relative_error(series).value:.1f}% with {series.strategy} "
            f"({coverage(series, 0.95).value:.0%})"
            for series in results.of(problem, budget=budget)
        )
        sentences.append(
            f"On {problem}, whose value is {exact.value:.4g}, the relative error after {budget:,} "
            f"episodes (and how often 95% intervals hold) is {listed}. By theory, the mean "
            f"return needs {exact.monte_carlo / exact.limit:,.0f} times as many episodes as the "
            f"best collection."
        )
    return sentences


def _knows_model(results: Results, strategy: str) -> bool:
    choice = next(c for c in results.experiment.strategy_choices() if c.name == strategy)
    return build_strategy(choice).needs_model


def _ends(results: Results, problem: str, budget: int | None = None) -> dict[str, Series]:
    """Each strategy with its best estimator, along the budgets."""
    ends = {}
    for strategy in results.strategies():
        parts = best_estimators(results.of(problem, strategy, budget))
        if parts:
            ends[strategy] = merge_budgets(parts)
    return ends


def _first_of(results: Results, ends: dict[str, Series], strategy_id: str) -> Series | None:
    for choice in results.experiment.strategy_choices():
        if choice.id == strategy_id and choice.name in ends:
            return ends[choice.name]
    return None


def _since_when(series: Series, base: Series) -> str:
    if series.checkpoints.size < 3:
        return "."
    point = crossing(series, base)
    if point is None:
        return "; its error is the smaller one at the end."
    if point == series.checkpoints[0]:
        return "; its error is the larger one at every budget."
    return f"; its error is the larger one from K = {point:,} on."


_ANSWERS: dict[str, Callable[[Results], list[str]]] = {
    function.__name__: function
    for function in (order, ablation, slopes, limit, intervals, first, difference, relative)
}


def _find(name: str) -> Callable[[Results], list[str]]:
    if name not in _ANSWERS:
        raise InputError(f"unknown answer {name!r}; there are {', '.join(_ANSWERS)}")
    return _ANSWERS[name]

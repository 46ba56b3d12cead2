"""Results as plain numbers, as columns of a table, and as HTML for notebooks."""

from typing import TYPE_CHECKING, Any

from revar.evaluation.returns.result import PairedFindings, ReturnFindings
from revar.model.records import html_table

if TYPE_CHECKING:
    from revar.estimators.estimator import Estimate
    from revar.evaluation.comparison import ComparisonResult
    from revar.evaluation.result import CollectedResult, EvaluationResult


def numbers_of_value(result: "EvaluationResult") -> dict[str, Any]:
    """What `evaluate` has found, as plain numbers."""
    found = result.findings
    numbers: dict[str, Any] = {
        "value": result.value,
        "standard_error": result.standard_error,
        "interval": list(result.interval),
        "confidence": result.confidence,
        **_collected(result),
        "unvisited_probability": result.unvisited_probability,
        "limits": [
            {"name": each.name, "asked": each.asked, "realised": each.realised, "kept": each.kept}
            for each in result.kept
        ],
        "gain": result.gain,
        "gain_per_step": result.gain_per_step,
    }
    if isinstance(found, ReturnFindings):
        return {
            **numbers,
            **_mean_return(found),
            "explained_by_actions": found.corrected.actions_share,
            "explained_by_start": found.corrected.start_share,
            "resets": found.resets,
        }
    return {
        **numbers,
        "on_policy_standard_error": found.alternatives.on_policy,
        "monte_carlo_standard_error": found.alternatives.monte_carlo,
    }


def numbers_of_comparison(result: "ComparisonResult") -> dict[str, Any]:
    """What `compare` has found, as plain numbers."""
    found = result.findings
    returns = found.each if isinstance(found, PairedFindings) else {}
    return {
        "best": result.best,
        "decided": result.decided,
        "verdict": str(result.verdict),
        "confidence": result.confidence,
        "values": {
            name: _estimate(value) | (_mean_return(returns[name]) if returns else {})
            for name, value in result.values.items()
        },
        "differences": {
            name: {
                **_estimate(difference),
                "on_policy_episodes": result.on_policy_episodes[name],
            }
            for name, difference in result.differences.items()
        },
        "chances_of_best": result.chances_of_best,
        **_collected(result),
        "question": result.question,
    }


def _collected(result: "CollectedResult") -> dict[str, Any]:
    return {
        "method": result.method,
        "episodes": result.episodes,
        "steps": result.steps,
        "spent": result.spent,
        "unit": result.budget.unit,
        "prior_episodes": result.prior_episodes,
        "strategy": result.strategy,
        "seed": result.seed,
        "stopped": result.stopped,
    }


def _estimate(estimate: "Estimate") -> dict[str, Any]:
    return {
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "interval": list(estimate.interval),
        "unvisited_probability": estimate.unvisited_probability,
    }


def _mean_return(findings: ReturnFindings) -> dict[str, Any]:
    corrected = findings.corrected
    return {
        "mean_return": corrected.mean_return,
        "mean_return_standard_error": corrected.mean_return_error,
        "fitting_seconds": findings.fitting_seconds,
    }


def columns_of_value(result: "EvaluationResult") -> dict[str, list[Any]]:
    """A row for each checkpoint."""
    points = result.checkpoints
    reach = [result.quantile * each.estimate.standard_error for each in points]
    values = [each.estimate.value for each in points]
    return {
        "episodes": [each.episodes for each in points],
        "spent": [float(each.spent) for each in points],
        "value": values,
        "standard_error": [each.estimate.standard_error for each in points],
        "low": [value - width for value, width in zip(values, reach, strict=True)],
        "high": [value + width for value, width in zip(values, reach, strict=True)],
    }


def columns_of_comparison(result: "ComparisonResult") -> dict[str, list[Any]]:
    """A row for each policy, the best first; beside its value, how far it is below the best."""
    names = list(result.ranking.best_first)
    behind = [result.differences.get(name) for name in names]
    values = [result.values[name] for name in names]
    return {
        "policy": names,
        "value": [each.value for each in values],
        "standard_error": [each.standard_error for each in values],
        "low": [each.interval[0] for each in values],
        "high": [each.interval[1] for each in values],
        "chance_of_best": [result.chances_of_best[name] for name in names],
        "below_best": [0.0 if each is None else each.value for each in behind],
        "below_best_low": [0.0 if each is None else each.interval[0] for each in behind],
        "below_best_high": [0.0 if each is None else each.interval[1] for each in behind],
    }


def html_of_value(result: "EvaluationResult") -> str:
    """A table of what was found, and the picture where matplotlib is installed."""
    return html_table(result.rows(), caption=str(result)) + _picture(result)


def html_of_comparison(result: "ComparisonResult") -> str:
    """A table of the policies, and the picture where matplotlib is installed."""
    columns = result.columns()
    rows = [
        (str(name), f"{value:.4g}", f"[{low:.4g}, {high:.4g}]", f"{chance:.1%}")
        for name, value, low, high, chance in zip(
            *(columns[name] for name in ("policy", "value", "low", "high", "chance_of_best")),
            strict=True,
        )
    ]
    interval = f"{result.confidence:.0%} interval"
    table = html_table(
        rows,
        caption=str(result),
        headings=("policy", "value", interval, "chance of being the best"),
    )
    return table + _picture(result)


def _picture(result: Any) -> str:
    from revar.evaluation.plot import inline_picture  # noqa: PLC0415 - draws

    return inline_picture(result)

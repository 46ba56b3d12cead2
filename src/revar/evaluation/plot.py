"""The figure of an evaluation: the interval as it shrank, beside that of on-policy."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from revar.errors import InputError, require_extra

if TYPE_CHECKING:
    from revar.evaluation.result import EvaluationResult

# Okabe and Ito's colours, which those who see no red or green can tell apart.
BLUE, ORANGE = "#0072B2", "#D55E00"
TITLE_WIDTH = 75  # characters that fit on a line of the title


def checked_figure_path(path: Any) -> Path:
    """Where a figure can be saved, or a sentence that says why it cannot."""
    require_extra("matplotlib", "plots")
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra; no global state

    try:
        target = Path(path)
    except TypeError:
        raise InputError(f"a figure is saved to a path, not to {path!r}") from None
    known = sorted(Figure().canvas.get_supported_filetypes())
    if target.suffix and target.suffix[1:].lower() not in known:
        raise InputError(f"{path}: figures are saved as one of {', '.join(known)}")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    if target.is_dir():
        raise InputError(f"{path} is a folder; the figure needs a file")
    return target


def plot_result(result: "EvaluationResult", path: Any = None) -> Any:
    """Value and interval at every checkpoint, and the on-policy interval at the end."""
    require_extra("matplotlib", "plots")
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra; no global state

    target = None if path is None else checked_figure_path(path)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    checkpoints = [c for c in result.checkpoints if np.isfinite(c.estimate.standard_error)]
    if not checkpoints:
        _mark_value(axes, result)
    episodes = np.array([c.episodes for c in checkpoints], dtype=float)
    values = np.array([c.estimate.value for c in checkpoints])
    reach = result.quantile * np.array([c.estimate.standard_error for c in checkpoints])
    level = f"{result.confidence:.0%}"
    if checkpoints:
        if episodes[0] > 0:  # with prior data alone it is 0
            axes.set_xscale("log")
        label = f"{result.strategy}, {level} interval"
        axes.fill_between(episodes, values - reach, values + reach, color=BLUE, alpha=0.2, lw=0)
        axes.plot(episodes, values, color=BLUE, marker="o", ms=4, label=label)
        instead = result.quantile * result.comparison.on_policy
        axes.errorbar(
            [episodes[-1] * 1.12],
            [values[-1]],
            yerr=[instead],
            color=ORANGE,
            marker="s",
            ms=5,
            capsize=5,
            lw=2,
            label="on-policy with as many episodes",
        )
        # The first intervals are wide; what matters is where they end.
        shown = max(reach[len(reach) // 2 :].max(), instead)
        if 0.0 < shown < np.inf:
            axes.set_ylim(values[-1] - 2.0 * shown, values[-1] + 2.0 * shown)
        # Ticks at the checkpoints, from the last one back as far as their labels do not touch.
        ticks = [episodes[-1]]
        for count in episodes[-2::-1]:
            if ticks[-1] / count > 1.5:
                ticks.append(count)
        axes.set_xticks(ticks, [f"{count:,.0f}" for count in ticks])
        axes.set_xticks([], minor=True)
    axes.set_xlabel("episodes")
    axes.set_ylabel("estimated value of the policy")
    axes.set_title(fill(str(result), TITLE_WIDTH), fontsize=10)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if target is not None:
        figure.savefig(target, dpi=150)
    return figure


def _mark_value(axes: Any, result: "EvaluationResult") -> None:
    """The value alone, where there are too few episodes for an interval."""
    label = f"{result.strategy}, too few episodes for an interval"
    axes.plot([result.episodes], [result.value], color=BLUE, marker="o", ms=6, ls="", label=label)
    axes.set_xticks([result.episodes], [f"{result.episodes:,}"])

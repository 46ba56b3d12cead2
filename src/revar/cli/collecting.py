"""What `revar evaluate` and `revar compare` do alike: collect, save, print, draw."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from revar.cli.options import (
    EPISODES,
    parse_bins,
    parse_named_values,
    parse_returns,
    search_this_folder,
)
from revar.cli.output import print_json
from revar.cli.spending import parse_cost, parse_limits
from revar.errors import INTERRUPTED, InputError, RefusedError


def collect_and_show(
    run: Callable[..., Any],
    environment: str,
    *,
    env_options: tuple[str, ...],
    bins_text: str | None,
    method: str | None,
    features_name: str | None,
    resets: int | None,
    critic_names: tuple[str, ...],
    episodes: int | None,
    steps: int | None,
    budget: float | None,
    cost: str | None,
    forbid: tuple[str, ...],
    max_ratio: float | None,
    min_return: str | None,
    max_sums: tuple[str, ...],
    limit_confidence: float | None,
    output: str | None,
    resume: str | None,
    figure: str | None,
    as_json: bool,
    save_critic: str | None = None,
    **collecting: Any,
) -> None:
    """Run with the settings that the options give, and show the result; nothing is lost."""
    import revar
    from revar.evaluation.findings import TableFindings

    search_this_folder()
    if output is not None and Path(output).exists():
        raise InputError(f"{output} exists; go on from it with --resume, or name another file")
    _check_paths(figure, save_critic)
    stopped: revar.EvaluationError | None = None
    try:
        found = run(
            **_find_budget(episodes, steps, budget, resume),
            cost=parse_cost(cost),
            limits=parse_limits(
                forbid=forbid,
                max_ratio=max_ratio,
                min_return=min_return,
                max_sums=max_sums,
                limit_confidence=limit_confidence,
            ),
            env_options=parse_named_values(env_options),
            bins=parse_bins(bins_text),
            **parse_returns(
                method=method, features_name=features_name, resets=resets, critic_names=critic_names
            ),
            progress=sys.stderr.isatty(),
            save=output,
            resume=resume,
            **collecting,
        )
    except revar.EvaluationError as error:
        if error.result is None:
            raise
        stopped, found = error, error.result
    saved, troubles = _keep(found, stopped, output or resume, environment)
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(_text(found, saved))
    if figure is not None:
        troubles += _try_to_write(figure, found.plot)
    if save_critic is not None:
        if isinstance(found.findings, TableFindings):
            raise InputError(f"{save_critic} is not written: method 'table' learns no critic")
        troubles += _try_to_write(save_critic, found.save_critic)
    if stopped is not None:
        raise stopped
    if troubles:
        raise RefusedError("; ".join(troubles))
    if not found.complete:
        sys.exit(INTERRUPTED)


def _check_paths(figure: str | None, save_critic: str | None) -> None:
    """Raise before anything is collected if one of them could not be written."""
    if figure is not None:
        from revar.evaluation.plot import check_figure_path

        check_figure_path(figure)
    if save_critic is not None:
        from revar.evaluation.returns.saving import check_critic_path

        check_critic_path(save_critic)


def _keep(
    found: Any, stopped: Exception | None, path: str | None, environment: str
) -> tuple[str | None, list[str]]:
    """The file that the episodes are in, and what went wrong.

    Those of a collection that was stopped are written to a new one where none was named.
    """
    from revar.evaluation.episode_file import EpisodeFile
    from revar.evaluation.run import UnsavedError

    if isinstance(stopped, UnsavedError):  # which says where they are
        return None, []
    if found.complete or path is not None:
        return path, []
    file = EpisodeFile(Path(_unused_name(environment, found.seed)))
    file.write(found.dataset, found.conditions)
    if file.trouble is None:
        return str(file.path), []
    return None, [file.keep_elsewhere(found.dataset, found.conditions)]


def _try_to_write(path: str, write: Callable[[str], Any]) -> list[str]:
    """Write a file; what went wrong."""
    try:
        write(path)
    except OSError as error:
        return [f"{path} cannot be written ({error.strerror or error})"]
    return []


def _find_budget(
    episodes: int | None, steps: int | None, budget: float | None, resume: str | None
) -> dict[str, Any]:
    """The budget that is given, or that of the resumed file, or EPISODES."""
    given = {"episodes": episodes, "steps": steps, "budget": budget}
    if any(amount is not None for amount in given.values()):
        return given
    from revar.datasets.files import load_collected

    conditions = None if resume is None else load_collected(resume)[1]
    if conditions is None:
        return {"episodes": EPISODES}
    if conditions.budget_amount is None or conditions.budget_unit == "episodes":
        return {"episodes": conditions.episodes}
    unit = "budget" if conditions.budget_unit == "cost" else conditions.budget_unit
    return {unit: conditions.budget_amount}


def _unused_name(environment: str, seed: int) -> str:
    """A new file for episodes that would otherwise be lost."""
    stem = f"revar-{re.sub(r'[^A-Za-z0-9.]+', '-', environment)}-seed{seed}"
    number = 1
    while Path(name := f"{stem}{f'-{number}' if number > 1 else ''}.npz").exists():
        number += 1
    return name


def _text(result: Any, saved: str | None) -> str:
    lines = [str(result), "", result.table(), f"seed {result.seed}"]
    if saved is not None:
        lines.append(f"{result.episodes:,} episodes saved to {saved}")
    if result.stopped == "interrupted" and saved is not None:
        lines.append(
            f"to go on: the same command with --resume {saved} (and no --output); the seed is "
            f"{result.seed}"
        )
    return "\n".join(lines)

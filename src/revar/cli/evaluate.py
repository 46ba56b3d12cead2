"""`revar evaluate`: a policy's value in an environment; `revar advise`: what that will take."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from revar.cli.options import (
    environment_options,
    load_policy_option,
    parse_bins,
    parse_named_values,
    search_this_folder,
)
from revar.errors import INTERRUPTED

if TYPE_CHECKING:
    from revar.evaluation.result import EvaluationResult

EPISODES = 1000


@click.command()
@environment_options
@click.option("--strategy", default="flow", show_default=True, help="Strategy id.")
@click.option("--episodes", type=int, help=f"Default: {EPISODES}, or the resumed file's budget.")
@click.option("--half-width", type=float, help="Stop when the interval is that narrow.")
@click.option("--environments", default=1, show_default=True, help="Played side by side.")
@click.option("--workers", type=int, help="Worker processes; 1 is this process.")
@click.option(
    "--engine",
    type=click.Choice(["processes", "ray", "inline"]),
    default="processes",
    show_default=True,
    help="What workers are; the numbers are the same.",
)
@click.option("--batch", type=int, help="Episodes that a worker is given at once, at most.")
@click.option("--address", help="Of a running Ray cluster, e.g. auto. Default: this machine.")
@click.option("--prior", type=click.Path(), help="Episodes collected earlier (.npz, .parquet).")
@click.option("--output", type=click.Path(), help="Save the episodes (.npz or .parquet).")
@click.option("--resume", type=click.Path(), help="Go on from this file, and save to it.")
@click.option("--plot", "figure", type=click.Path(), help="Save a figure (.png, .svg, .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def evaluate(
    environment: str,
    policy_name: str | None,
    epsilon: float | None,
    env_options: tuple[str, ...],
    bins_text: str | None,
    horizon: int | None,
    discount: float | None,
    confidence: float,
    seed: int | None,
    strategy: str,
    episodes: int | None,
    half_width: float | None,
    environments: int,
    workers: int | None,
    engine: str,
    batch: int | None,
    address: str | None,
    prior: str | None,
    output: str | None,
    resume: str | None,
    figure: str | None,
    as_json: bool,
) -> None:
    """Evaluate a policy in a Gymnasium environment, and say how sure the value is.

    ENVIRONMENT is a Gymnasium id, module:factory, or a built-in problem. Ctrl-C prints the
    estimate so far and saves the episodes; the same command with --resume goes on from there.

    \b
    Examples:
      revar evaluate FrozenLake-v1 --policy uniform --discount 0.99 --episodes 2000
      revar evaluate FrozenLake-v1 --policy policy.npy --env-option map_name=8x8 --output lake.npz
      revar evaluate Blackjack-v1 --policy my_module:policy --half-width 0.02 --episodes 50000
      revar evaluate CartPole-v1 --policy my_module:policy --bins '[[0], [0], [-0.1, 0, 0.1], [0]]'
      revar evaluate gridworld
      revar evaluate my_module:Simulator --policy my_module:policy --workers 8 --output runs.npz
    """
    import revar
    from revar.errors import InputError

    search_this_folder()
    if output is not None and Path(output).exists():
        raise InputError(f"{output} exists; go on from it with --resume, or name another file")
    options = parse_named_values(env_options)
    if figure is not None:
        from revar.evaluation.plot import check_figure_path

        check_figure_path(figure)
    stopped: revar.EvaluationError | None = None
    try:
        found = revar.evaluate(
            environment,
            load_policy_option(environment, policy_name, epsilon, options),
            strategy=strategy,
            episodes=_read_budget(resume) if episodes is None else episodes,
            horizon=horizon,
            discount=discount,
            seed=seed,
            half_width=half_width,
            confidence=confidence,
            progress=sys.stderr.isatty(),
            bins=parse_bins(bins_text),
            environments=environments,
            env_options=options,
            workers=workers,
            engine=engine,
            batch=batch,
            address=address,
            prior=prior,
            save=output,
            resume=resume,
        )
    except revar.EvaluationError as error:
        if error.result is None:
            raise
        stopped, found = error, error.result
    saved = output or resume
    if not found.complete and saved is None:
        saved = _unused_name(environment, found.seed)
        found.save(saved)
    click.echo(_json(found) if as_json else _text(found, saved))
    if figure is not None:
        found.plot(figure)
    if stopped is not None:
        raise stopped
    if not found.complete:
        sys.exit(INTERRUPTED)


@click.command()
@environment_options
@click.option("--half-width", type=float, required=True, help="Of the wanted interval.")
@click.option("--pilot", default=200, show_default=True, help="On-policy episodes to play first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def advise(
    environment: str,
    policy_name: str | None,
    epsilon: float | None,
    env_options: tuple[str, ...],
    bins_text: str | None,
    horizon: int | None,
    discount: float | None,
    confidence: float,
    seed: int | None,
    half_width: float,
    pilot: int,
    as_json: bool,
) -> None:
    """Say how many episodes are needed, on-policy and with flow, from a pilot or stored episodes.

    ENVIRONMENT is a Gymnasium id, module:factory, a built-in problem, or a file of episodes
    (.npz, .parquet; --horizon is needed where the file does not know it).

    \b
    Examples:
      revar advise FrozenLake-v1 --policy uniform --discount 0.99 --pilot 2000 --half-width 0.005
      revar advise lake.npz --policy policy.npy --half-width 0.01
    """
    import revar

    options = parse_named_values(env_options)
    stored = Path(environment).suffix in (".npz", ".parquet")
    if stored and epsilon is not None:
        raise click.UsageError("--epsilon needs an environment, not stored episodes")
    advice = revar.advise(
        environment,
        load_policy_option(environment, policy_name, epsilon, options),
        half_width=half_width,
        confidence=confidence,
        horizon=horizon,
        discount=discount,
        pilot=pilot,
        seed=seed,
        bins=parse_bins(bins_text),
        env_options=options,
    )
    if as_json:
        click.echo(json.dumps({**asdict(advice), "sentence": advice.sentence}, indent=1))
    else:
        click.echo(str(advice))


def _read_budget(resume: str | None) -> int:
    from revar.datasets.files import load_collected

    conditions = None if resume is None else load_collected(resume)[1]
    return EPISODES if conditions is None else conditions.episodes


def _unused_name(environment: str, seed: int) -> str:
    """A new file for episodes that would otherwise be lost."""
    stem = f"revar-{re.sub(r'[^A-Za-z0-9.]+', '-', environment)}-seed{seed}"
    number = 1
    while Path(name := f"{stem}{f'-{number}' if number > 1 else ''}.npz").exists():
        number += 1
    return name


def _text(result: "EvaluationResult", saved: str | None) -> str:
    lines = [str(result), "", result.table(), f"seed {result.seed}"]
    if saved is not None:
        lines.append(f"{result.episodes:,} episodes saved to {saved}")
    if result.stopped == "interrupted":
        lines.append(
            f"to go on: the same command with --resume {saved} (and no --output); the seed is "
            f"{result.seed}"
        )
    return "\n".join(lines)


def _json(result: "EvaluationResult") -> str:
    from math import isfinite

    def finite(number: float) -> float | None:
        return float(number) if isfinite(number) else None

    content: dict[str, Any] = {
        "value": result.value,
        "standard_error": finite(result.standard_error),
        "interval": [finite(end) for end in result.interval],
        "confidence": result.confidence,
        "episodes": result.episodes,
        "prior_episodes": result.prior_episodes,
        "unvisited_probability": result.unvisited_probability,
        "strategy": result.strategy,
        "seed": result.seed,
        "stopped": result.stopped,
        "on_policy_standard_error": finite(result.alternatives.on_policy),
        "monte_carlo_standard_error": finite(result.alternatives.monte_carlo),
    }
    return json.dumps(content, indent=1)

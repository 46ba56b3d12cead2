"""`revar advise`: how many episodes a wanted half-width needs."""

from dataclasses import asdict
from pathlib import Path

import click

from revar.cli.inputs import asked_of_an_environment, bins_of, chosen_policy, named_values


@click.command()
@asked_of_an_environment
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

    options = named_values(env_options)
    stored = Path(environment).suffix in (".npz", ".parquet")
    if stored and epsilon is not None:
        raise click.UsageError("--epsilon needs an environment, not stored episodes")
    advice = revar.advise(
        environment,
        chosen_policy(environment, policy_name, epsilon, options),
        half_width=half_width,
        confidence=confidence,
        horizon=horizon,
        discount=discount,
        pilot=pilot,
        seed=seed,
        bins=bins_of(bins_text),
        env_options=options,
    )
    if as_json:
        import json

        click.echo(json.dumps({**asdict(advice), "sentence": advice.sentence}, indent=1))
    else:
        click.echo(str(advice))

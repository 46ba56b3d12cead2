"""`revar evaluate`: a policy's value in an environment; `revar advise`: what that will take."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from revar.cli.collecting import collect_and_show
from revar.cli.options import (
    collecting_options,
    environment_options,
    load_policy_option,
    parse_bins,
    parse_named_values,
    parse_returns,
    policy_options,
    returns_options,
)
from revar.cli.output import print_json
from revar.cli.spending import cost_option, limit_options, parse_cost, parse_limits

if TYPE_CHECKING:
    from revar.evaluation.result import EvaluationResult


@click.command()
@environment_options
@policy_options
@click.option("--half-width", type=float, help="Stop when the interval is that narrow.")
@returns_options
@click.option(
    "--save-critic", type=click.Path(), help="Write the critics that were learned (.npz)."
)
@collecting_options
def evaluate(
    environment: str,
    policy_name: str | None,
    epsilon: float | None,
    confidence: float,
    half_width: float | None,
    **collecting: Any,
) -> None:
    """Evaluate a policy in a Gymnasium environment, and say how sure the value is.

    ENVIRONMENT is a Gymnasium id, module:factory, or a built-in problem. Ctrl-C prints the
    estimate so far and saves the episodes; the same command with --resume goes on from there.

    Observations and actions may be anything: where they are not discrete the policy itself is
    played, and what learned critics explain is taken from its returns. That biases nothing.

    \b
    Examples:
      revar evaluate FrozenLake-v1 --policy uniform --discount 0.99 --episodes 2000
      revar evaluate FrozenLake-v1 --policy policy.npy --env-option map_name=8x8 --output lake.npz
      revar evaluate Blackjack-v1 --policy my_module:policy --half-width 0.02 --episodes 50000
      revar evaluate CartPole-v1 --policy my_module:policy --episodes 200
      revar evaluate Pendulum-v1 --policy my_module:gaussian --half-width 10 --critics linear
      revar evaluate ALE/Pong-v5 --policy my_module:agent --features my_module:embed --resets 0
      revar evaluate CartPole-v1 --policy my_module:policy --method mean --workers 4
      revar evaluate gridworld --steps 20000 --min-return 95%
      revar evaluate my_module:Simulator --policy uniform --budget 3600 --cost seconds
      revar evaluate my_module:Simulator --policy uniform --forbid 2 --max-sum unsafe=0.1
      revar evaluate my_module:Simulator --policy my_module:policy --workers 8 --output runs.npz
    """
    import revar

    def run(**settings: Any) -> "EvaluationResult":
        policy = load_policy_option(environment, policy_name, epsilon, settings["env_options"])
        return revar.evaluate(
            environment, policy, half_width=half_width, confidence=confidence, **settings
        )

    collect_and_show(run, environment, **collecting)


@click.command()
@environment_options
@policy_options
@click.option("--half-width", type=float, required=True, help="Of the wanted interval.")
@click.option("--pilot", default=200, show_default=True, help="On-policy episodes to play first.")
@returns_options
@cost_option
@limit_options
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
    method: str | None,
    features_name: str | None,
    resets: int | None,
    critic_names: tuple[str, ...],
    cost: str | None,
    as_json: bool,
    **limiting: Any,
) -> None:
    """Say how many episodes are needed, on-policy and with flow, from a pilot or stored episodes.

    Where there is no table (see revar evaluate --help): with the mean return and with critics.

    With --cost: what is needed in steps, or in what steps cost. Flow keeps to the limits.

    ENVIRONMENT is a Gymnasium id, module:factory, a built-in problem, or a file of episodes
    (.npz, .parquet; --horizon is needed where the file does not know it).

    \b
    Examples:
      revar advise FrozenLake-v1 --policy uniform --discount 0.99 --pilot 2000 --half-width 0.005
      revar advise CartPole-v1 --policy my_module:policy --half-width 2
      revar advise lake.npz --policy policy.npy --half-width 0.01
      revar advise FrozenLake-v1 --policy uniform --half-width 0.01 --cost steps --min-return 95%
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
        cost=parse_cost(cost),
        limits=parse_limits(**limiting),
        **parse_returns(
            method=method, features_name=features_name, resets=resets, critic_names=critic_names
        ),
    )
    if as_json:
        print_json({**asdict(advice), "sentence": advice.sentence})
    else:
        click.echo(str(advice))

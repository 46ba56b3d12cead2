"""`revar compare`: which of several policies is the best in an environment."""

from typing import TYPE_CHECKING, Any

import click

from revar.cli.collecting import collect_and_show, finite
from revar.cli.options import (
    collecting_options,
    environment_options,
    parse_returns,
    returns_options,
)
from revar.errors import InputError

if TYPE_CHECKING:
    from revar.estimators.estimator import Estimate
    from revar.evaluation.comparison import ComparisonResult

OWN = "own"


@click.command()
@environment_options
@click.argument("policies", nargs=-1, metavar="NAME=POLICY...")
@click.option(
    "--question",
    type=click.Choice(["best", "values", "difference"]),
    default="best",
    show_default=True,
    help="What the episodes are to answer.",
)
@click.option("--decide", type=float, help="Stop when the best is known with that confidence.")
@click.option("--indifference", type=float, help="A difference that does not matter.")
@click.option("--confidence", type=float, help="Default: 0.95, or that of --decide.")
@returns_options
@collecting_options
def compare(
    environment: str,
    policies: tuple[str, ...],
    question: str,
    decide: float | None,
    indifference: float | None,
    confidence: float | None,
    method: str | None,
    features_name: str | None,
    resets: int | None,
    critic_names: tuple[str, ...],
    **collecting: Any,
) -> None:
    """Compare policies by episodes that answer which of them is the best.

    ENVIRONMENT is a Gymnasium id, module:factory, or a built-in problem. Each policy has a NAME;
    POLICY is uniform, a .npy or .npz file, module:function, or own, for that of a built-in problem.
    Ctrl-C prints what is known so far and saves the episodes; --resume goes on from there.

    \b
    Examples:
      revar compare FrozenLake-v1 old=old.npy new=new.npy --discount 0.99 --episodes 5000
      revar compare FrozenLake-v1 a=my_module:a b=my_module:b c=uniform --decide 0.95
      revar compare gridworld own=own uniform=uniform --decide 0.99 --indifference 0.05
      revar compare CartPole-v1 a=my_module:a b=my_module:b --episodes 400 --critics linear
      revar compare FrozenLake-v1 old=old.npy new=new.npy --steps 50000 --max-ratio 3
      revar compare my_module:Simulator old=old.npy new=new.npy --workers 8 --output runs.npz
    """
    import revar

    def run(**settings: Any) -> "ComparisonResult":
        chosen = _load(policies)
        returns = parse_returns(
            method=method, features_name=features_name, resets=resets, critic_names=critic_names
        )
        return revar.compare(
            environment,
            chosen,
            question=question,
            decide=decide,
            indifference=indifference,
            confidence=confidence,
            **settings,
            **returns,
        )

    collect_and_show(run, _numbers, environment, **collecting)


def _load(policies: tuple[str, ...]) -> dict[str, Any]:
    from revar.evaluation.target_policies import name_policy
    from revar.policies.forms import load_policy

    loaded: dict[str, Any] = {}
    for text in policies:
        name, equals, source = text.partition("=")
        if not (equals and name and source):
            raise InputError(f"{text!r} is not NAME=POLICY, such as new=new.npy")
        if name in loaded:
            raise InputError(f"two policies are called {name!r}; each needs a name of its own")
        with name_policy(name):
            loaded[name] = None if source == OWN else load_policy(source)
    return loaded


def _numbers(result: "ComparisonResult") -> dict[str, Any]:
    return {
        "best": result.best,
        "decided": result.decided,
        "verdict": str(result.verdict),
        "confidence": result.confidence,
        "values": {name: _estimate(value) for name, value in result.values.items()},
        "differences": {
            name: {
                **_estimate(difference),
                "on_policy_episodes": finite(result.on_policy_episodes[name]),
            }
            for name, difference in result.differences.items()
        },
        "chances_of_best": result.chances_of_best,
        "episodes": result.episodes,
        "steps": result.steps,
        "spent": result.spent,
        "unit": result.budget.unit,
        "prior_episodes": result.prior_episodes,
        "strategy": result.strategy,
        "question": result.question,
        "seed": result.seed,
        "stopped": result.stopped,
    }


def _estimate(estimate: "Estimate") -> dict[str, Any]:
    return {
        "value": estimate.value,
        "standard_error": finite(estimate.standard_error),
        "interval": [finite(end) for end in estimate.interval],
        "unvisited_probability": estimate.unvisited_probability,
    }

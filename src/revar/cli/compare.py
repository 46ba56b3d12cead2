"""`revar compare`: which of several policies is the best in an environment."""

from typing import TYPE_CHECKING, Any

import click

from revar.cli.collecting import collect_and_show
from revar.cli.options import collecting_options, environment_options, returns_options
from revar.errors import InputError

if TYPE_CHECKING:
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
    **collecting: Any,
) -> None:
    """Compare policies by episodes that answer which of them is the best.

    ENVIRONMENT is a Gymnasium id, module:factory, or a built-in problem. Each policy has a NAME;
    POLICY is uniform, a .npy or .npz file, a model.zip of Stable-Baselines3, module:function, or
    own, for that of a built-in problem.
    Ctrl-C prints what is known so far and saves the episodes; --resume goes on from there.

    Where observations or actions are not discrete, the policies play in turn, each from the same
    resets, and critics narrow the intervals: see revar evaluate --help.

    \b
    Examples:
      revar compare FrozenLake-v1 old=old.npy new=new.npy --discount 0.99 --episodes 5000
      revar compare FrozenLake-v1 a=my_module:a b=my_module:b c=uniform --decide 0.95
      revar compare gridworld own=own uniform=uniform --decide 0.99 --indifference 0.05
      revar compare FrozenLake-v1 old=old.npy new=new.npy --steps 50000 --max-ratio 3
      revar compare my_module:Simulator old=old.npy new=new.npy --workers 8 --output runs.npz
      revar compare CartPole-v1 old=my_module:old new=my_module:new --episodes 400 --critics linear
      revar compare Pendulum-v1 a=my_module:a b=my_module:b --decide 0.95 --episodes 2000
      revar compare CartPole-v1 a=my_module:a b=uniform --method mean --episodes 200
    """
    import revar

    def run(**settings: Any) -> "ComparisonResult":
        return revar.compare(
            environment,
            _load(policies),
            question=question,
            decide=decide,
            indifference=indifference,
            confidence=confidence,
            **settings,
        )

    collect_and_show(run, environment, **collecting)


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

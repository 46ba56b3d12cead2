"""Options that several commands share: what is evaluated, and who runs an experiment."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from revar.cli.spending import LIMITS, SPENDING, ClickFunction, add_options
from revar.errors import InputError

if TYPE_CHECKING:
    from revar.environments.observations import Bins
    from revar.experiments.engines import Engine


_POLICY = (
    click.option(
        "--policy",
        "policy_name",
        help="uniform, a .npy or .npz file, or module:function. Built-in problems have their own.",
    ),
    click.option(
        "--epsilon", type=float, help="Share of random actions; otherwise the policy's best."
    ),
    click.option("--confidence", default=0.95, show_default=True),
)
_ENVIRONMENT = (
    click.argument("environment"),
    click.option(
        "--env-option",
        "env_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Given to the environment; VALUE is JSON or plain text. May be repeated.",
    ),
    click.option("--bins", "bins_text", help="Edges for continuous observations, as JSON lists."),
    click.option("--horizon", type=int, help="Default: the environment's time limit."),
    click.option("--discount", type=float, help="Default: a built-in problem's own, else 1."),
    click.option("--seed", type=int, help="Default: a new one, which is printed."),
)
EPISODES = 1000
_COLLECTING = (
    click.option("--strategy", default="flow", show_default=True, help="Strategy id."),
    click.option("--episodes", type=int, help=f"Default: {EPISODES}, or that of the resumed file."),
    *SPENDING,
    *LIMITS,
    click.option("--environments", default=1, show_default=True, help="Played side by side."),
    click.option("--workers", type=int, help="Worker processes; 1 is this process."),
    click.option(
        "--engine",
        type=click.Choice(["processes", "ray", "inline"]),
        default="processes",
        show_default=True,
        help="What workers are; the numbers are the same.",
    ),
    click.option("--batch", type=int, help="Episodes that a worker is given at once, at most."),
    click.option("--address", help="Of a running Ray cluster, e.g. auto. Default: this machine."),
    click.option("--prior", type=click.Path(), help="Episodes collected earlier (.npz, .parquet)."),
    click.option("--output", type=click.Path(), help="Save the episodes (.npz or .parquet)."),
    click.option("--resume", type=click.Path(), help="Go on from this file, and save to it."),
    click.option("--plot", "figure", type=click.Path(), help="Save a figure (.png, .svg, .pdf)."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for machines."),
)
_RETURNS = (
    click.option(
        "--method",
        type=click.Choice(["table", "critic", "mean"]),
        help="Default: a table where observations and actions are discrete or --bins are given, "
        "critics elsewhere. mean is the mean return.",
    ),
    click.option(
        "--features",
        "features_name",
        metavar="MODULE:FUNCTION",
        help="From an observation to the numbers that critics see.",
    ),
    click.option(
        "--resets",
        type=click.IntRange(min=0),
        help="First observations to draw besides. Default: 10 an episode where an id is opened and "
        "that is cheap, and none for a factory.",
    ),
    click.option(
        "--critics",
        "critic_names",
        multiple=True,
        metavar="NAME",
        help="linear, network, a saved critic (.npz), or module:object. May be repeated.",
    ),
)
_ENGINE = (
    click.option(
        "--threads", type=click.IntRange(min=1), default=None, help="Default: every core."
    ),
    click.option(
        "--engine",
        "engine_name",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="This process, or Ray; tables are the same.",
    ),
    click.option(
        "--address",
        default=None,
        help="Of a running Ray cluster, e.g. auto. Default: one on this machine.",
    ),
)


def environment_options(command: ClickFunction) -> ClickFunction:
    """Add the environment, and the options that say how it is played."""
    return add_options(_ENVIRONMENT, command)


def policy_options(command: ClickFunction) -> ClickFunction:
    """Add --policy, --epsilon and --confidence."""
    return add_options(_POLICY, command)


def collecting_options(command: ClickFunction) -> ClickFunction:
    """Add the options that say how episodes are collected, and where to."""
    return add_options(_COLLECTING, command)


def returns_options(command: ClickFunction) -> ClickFunction:
    """Add --method, --features, --resets and --critics."""
    return add_options(_RETURNS, command)


def parse_returns(
    *,
    method: str | None,
    features_name: str | None,
    resets: int | None,
    critic_names: tuple[str, ...],
) -> dict[str, Any]:
    """Read how values are found without a table."""
    from revar.environments.opening import import_object

    search_this_folder()
    critics = [
        import_object(each, "critic") if ":" in each and not each.endswith(".npz") else each
        for each in critic_names
    ]
    return {
        "method": method,
        "features": None if features_name is None else import_object(features_name, "features"),
        "resets": resets,
        "critics": critics or None,
    }


def engine_options(command: ClickFunction) -> ClickFunction:
    """Add --threads, --engine and --address."""
    return add_options(_ENGINE, command)


def make_engine(name: str, threads: int | None, address: str | None) -> "Engine":
    """Make the engine that the options name."""
    from revar.experiments.engines import LocalEngine, RayEngine

    if name == "ray":
        return RayEngine(address, threads)
    if address is not None:
        raise InputError("--address is for --engine ray")
    return LocalEngine(threads)


def load_policy_option(
    environment: str, name: str | None, epsilon: float | None, options: dict[str, Any]
) -> Any:
    """Load the policy by its name; with epsilon, make it epsilon-greedy."""
    from revar.environments.opening import action_count, open_environment
    from revar.policies.forms import load_policy

    search_this_folder()
    if name is None and epsilon is not None:
        raise click.UsageError("--epsilon is for a policy that is given with --policy")
    if name is None or epsilon is None:
        return None if name is None else load_policy(name)
    opened = open_environment(environment, options)
    actions = action_count(opened)
    opened.close()
    return load_policy(name, epsilon, actions)


def search_this_folder() -> None:
    """Find the user's own modules as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def parse_named_values(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value that is not JSON is plain text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--env-option")
        try:
            values[name] = json.loads(text)
        except json.JSONDecodeError:
            values[name] = text
    return values


def parse_bins(text: str | None) -> "Bins | None":
    """Read edges from JSON, one list for each number of the observation."""
    from revar.environments.observations import Bins

    if text is None:
        return None
    try:
        return Bins(json.loads(text))
    except (json.JSONDecodeError, TypeError) as error:
        raise click.BadParameter(f"not a list of lists ({error})", param_hint="--bins") from None

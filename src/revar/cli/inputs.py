"""What `revar evaluate` and `revar advise` have in common: the environment and the policy."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from revar.environments.observations import Bins

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = [
    click.argument("environment"),
    click.option(
        "--policy",
        "policy_name",
        help="uniform, a .npy or .npz file, or module:function. Built-in problems have their own.",
    ),
    click.option("--epsilon", type=float, help="Act greedily by the policy but for this share."),
    click.option(
        "--env-option",
        "env_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Given to the environment; VALUE is JSON or a plain text. May be repeated.",
    ),
    click.option("--bins", "bins_text", help="Edges for continuous observations, as JSON lists."),
    click.option("--horizon", type=int, help="Default: the environment's time limit."),
    click.option("--discount", type=float, help="Default: a built-in problem's own, else 1."),
    click.option("--confidence", default=0.95, show_default=True),
    click.option("--seed", type=int, help="Default: a new one, which is printed."),
]


def asked_of_an_environment(command: Command) -> Command:
    """Add the options that say what is evaluated."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_policy(
    environment: str, name: str | None, epsilon: float | None, options: dict[str, Any]
) -> Any:
    """The policy by its name, made epsilon-greedy if that is wanted."""
    from revar.environments.opening import action_count, open_environment
    from revar.evaluation.policies import load_policy

    look_in_this_folder()
    if name is None and epsilon is not None:
        raise click.UsageError("--epsilon is for a policy that is given with --policy")
    if name is None or epsilon is None:
        return None if name is None else load_policy(name)
    opened = open_environment(environment, options)
    actions = action_count(opened)
    opened.close()
    return load_policy(name, epsilon, actions)


def look_in_this_folder() -> None:
    """Find the user's own modules as `python -m` does."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def named_values(pairs: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs; what is no JSON is taken as a text."""
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


def bins_of(text: str | None) -> "Bins | None":
    """Edges given as JSON, one list for each number of the observation."""
    from revar.environments.observations import Bins

    if text is None:
        return None
    try:
        return Bins(json.loads(text))
    except (json.JSONDecodeError, TypeError) as error:
        raise click.BadParameter(f"not a list of lists ({error})", param_hint="--bins") from None

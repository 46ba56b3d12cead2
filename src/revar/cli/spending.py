"""What may be spent, and what collection may not do: options that several commands share."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from revar.errors import InputError

if TYPE_CHECKING:
    from revar.model.limits import Limits

ClickFunction = TypeVar("ClickFunction", bound=Callable[..., Any])

COST = click.option(
    "--cost",
    help="What a step costs: the name of what info reports, steps, or a .npy file with an array "
    "[states, actions].",
)
SPENDING = (
    click.option("--steps", type=int, help="The budget in steps, in place of episodes."),
    click.option("--budget", type=float, help="The budget in what steps cost; needs --cost."),
    COST,
)
LIMITS = (
    click.option(
        "--forbid",
        multiple=True,
        metavar="[STATE:]ACTION",
        help="Never taken: 2 is an action, 5:2 an action of a state, [1, 2]:0 of one that is given "
        "as JSON. May be repeated.",
    ),
    click.option(
        "--max-ratio",
        type=float,
        help="No action is taken more than so many times as often as the target policy takes it.",
    ),
    click.option(
        "--min-return",
        metavar="NUMBER|SHARE",
        help="Least expected return of an episode that collects: a number, or a share of the "
        "policy's value such as 95%.",
    ),
    click.option(
        "--max-sum",
        "max_sums",
        multiple=True,
        metavar="KEY=MOST",
        help="At most so much an episode, in expectation, of what info reports as KEY, or of a "
        ".npy file with an array [states, actions]. May be repeated.",
    ),
    click.option(
        "--limit-confidence",
        type=float,
        help="With which every plan keeps --min-return and --max-sum. Default: 0.9.",
    ),
)


def add_options(
    options: tuple[Callable[[ClickFunction], ClickFunction], ...], command: ClickFunction
) -> ClickFunction:
    """Add options to a command, in that order."""
    for option in reversed(options):
        command = option(command)
    return command


def cost_option(command: ClickFunction) -> ClickFunction:
    """Add --cost."""
    return add_options((COST,), command)


def spending_options(command: ClickFunction) -> ClickFunction:
    """Add --steps, --budget and --cost."""
    return add_options(SPENDING, command)


def limit_options(command: ClickFunction) -> ClickFunction:
    """Add the options that say what collection may not do."""
    return add_options(LIMITS, command)


def parse_cost(text: str | None) -> Any:
    """Read what steps cost: an array from a file, or a name as it is."""
    return text if text is None else _amounts(text, "--cost")


def parse_limits(
    *,
    forbid: tuple[str, ...],
    max_ratio: float | None,
    min_return: str | None,
    max_sums: tuple[str, ...],
    limit_confidence: float | None,
) -> "Limits | None":
    """Read what collection may not do; None where that is nothing."""
    if not (forbid or max_sums) and max_ratio is None and min_return is None:
        if limit_confidence is not None:
            raise InputError("--limit-confidence is for --min-return and --max-sum")
        return None
    from revar.model.limits import Limits

    settings = {} if limit_confidence is None else {"confidence": limit_confidence}
    return Limits(
        forbidden=[_forbidden(text) for text in forbid] or None,
        max_ratio=max_ratio,
        min_return=_number(min_return),
        max_sums=[_limited_sum(text) for text in max_sums],
        **settings,
    )


def _forbidden(text: str) -> Any:
    """An action, or a state, as JSON or plain text, with an action."""
    state, colon, action = text.rpartition(":")
    if not action.strip().isdecimal() or (colon and not state):
        raise InputError(f"--forbid {text} is neither an action such as 2 nor STATE:ACTION as 5:2")
    if not colon:
        return int(action)
    try:
        return json.loads(state), int(action)
    except json.JSONDecodeError:
        if ":" in state:  # is it one state, or are there two things too many?
            raise InputError(
                f"--forbid {text} has more than one colon; write a state of several parts, or "
                f"with a colon in it, as JSON: [1, 2]:{int(action)} or "
                f"{json.dumps(state, ensure_ascii=False)}:{int(action)}"
            ) from None
        return state, int(action)


def _number(text: str | None) -> Any:
    """A number, where the text is one."""
    try:
        return text if text is None else float(text)
    except ValueError:
        return text


def _limited_sum(text: str) -> tuple[Any, float]:
    name, _, most = text.rpartition("=")
    try:
        return _amounts(name, "--max-sum"), float(most)
    except ValueError:
        raise InputError(f"--max-sum {text} is not KEY=MOST, such as unsafe=0.1") from None


def _amounts(text: str, option: str) -> Any:
    """The array in a .npy file; anything else is a name."""
    if not text.endswith(".npy"):
        if not text:
            raise InputError(f"{option} names nothing")
        return text
    import numpy as np

    try:
        return np.load(text, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{option} {text} cannot be read: {error}") from error

"""Options of commands that run experiments: which engine, and how much of the machine."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from revar.errors import InputError

if TYPE_CHECKING:
    from revar.experiments.engines import Engine

Command = TypeVar("Command", bound=Callable[..., Any])


def engine_options(command: Command) -> Command:
    """Add --threads, --engine and --address."""
    for option in reversed(
        (
            click.option(
                "--threads", type=click.IntRange(min=1), default=None, help="Default: every core."
            ),
            click.option(
                "--engine",
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
    ):
        command = option(command)
    return command


def engine_of(engine: str, threads: int | None, address: str | None) -> "Engine":
    """The engine that the options ask for."""
    from revar.experiments.engines import LocalEngine
    from revar.experiments.ray_engine import RayEngine

    if engine == "ray":
        return RayEngine(address, threads)
    if address is not None:
        raise InputError("--address is for --engine ray")
    return LocalEngine(threads)

"""`revar serve`: campaigns over HTTP, with a dashboard."""

import os
from pathlib import Path

import click

from revar.cli.campaign import storage_option


@click.command()
@storage_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8321,
    show_default=True,
    help="0 takes one that is free.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with bearer tokens, one a line, of 16 characters or more; or set REVAR_TOKEN.",
)
@click.option(
    "--max-request-bytes",
    default=2**20,
    show_default=True,
    type=click.IntRange(min=1024),
    help="Longer requests are refused.",
)
def serve(
    storage: str, host: str, port: int, token_file: Path | None, max_request_bytes: int
) -> None:
    """Serve campaigns: a JSON API and a dashboard.

    Without tokens the service answers on loopback only. Ctrl-C or SIGTERM lets requests that are
    under way finish.

    \b
    Examples:
      revar serve --storage sqlite:///campaigns.db
      revar serve --storage postgresql://revar@db/revar --host 0.0.0.0 --token-file tokens.txt
    """
    from revar.campaigns.storage import open_storage
    from revar.errors import require_extra

    for module in ("uvicorn", "starlette", "jinja2"):
        require_extra(module, "serve")
    from revar.campaigns.service.app import serve as serve_campaigns

    serve_campaigns(
        open_storage(storage),
        host=host,
        port=port,
        tokens=_tokens(token_file),
        largest_request=max_request_bytes,
        started=lambda address: click.echo(f"revar serves campaigns at {address}"),
    )


def _tokens(token_file: Path | None) -> list[str]:
    lines = [] if token_file is None else token_file.read_text().splitlines()
    tokens = [line.strip() for line in lines if line.strip()]
    if token_file is not None and not tokens:
        from revar.errors import InputError

        raise InputError(f"{token_file} holds no token")
    if os.environ.get("REVAR_TOKEN"):
        tokens.append(os.environ["REVAR_TOKEN"])
    return tokens

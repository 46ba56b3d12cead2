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
    help="File with bearer tokens, one a line, of 16 characters or more, or set REVAR_TOKEN; a "
    "token followed by read-only may not change anything. Read again when it changes.",
)
@click.option(
    "--max-request-bytes",
    default=2**20,
    show_default=True,
    type=click.IntRange(min=1024),
    help="Longer requests are refused.",
)
@click.option(
    "--max-connections",
    default=1000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Then callers that are slow to speak make room for others. Fewer where the system "
    "allows fewer open files.",
)
@click.option(
    "--webhook",
    metavar="URL",
    help="Where a JSON message is sent when a campaign ends or stalls.",
)
@click.option("--log-json", is_flag=True, help="Log as JSON, with a line for every request.")
def serve(
    storage: str,
    host: str,
    port: int,
    token_file: Path | None,
    max_request_bytes: int,
    max_connections: int,
    webhook: str | None,
    log_json: bool,
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

    for module in ("uvicorn", "httptools", "starlette", "jinja2", "prometheus_client"):
        require_extra(module, "serve")
    from revar.campaigns.service.app import serve as serve_campaigns

    given = os.environ.get("REVAR_TOKEN")
    serve_campaigns(
        open_storage(storage),
        host=host,
        port=port,
        tokens=[given] if given else [],
        token_file=token_file,
        largest_request=max_request_bytes,
        most_connections=max_connections,
        log_json=log_json,
        webhook=webhook,
        started=lambda address: click.echo(f"revar serves campaigns at {address}"),
    )

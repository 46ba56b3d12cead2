"""`revar campaign`: where the campaigns of a storage stand."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from revar.cli.campaign import campaign, open_campaign, progress_of_reading, storage_option

if TYPE_CHECKING:
    from revar.campaigns import CampaignError, Status, Storage

__all__ = ["campaign"]
COLUMNS = ("name", "episodes", "budget", "open", "value", "95% interval")


@campaign.command("list")
@storage_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("--all", "with_archived", is_flag=True, help="Those that are archived, too.")
def list_campaigns(storage: str, as_json: bool, with_archived: bool) -> None:
    """List the campaigns of a storage, in the order of creation."""
    from revar.campaigns import CampaignError, open_storage

    with open_storage(storage, create=False) as store:
        found = [
            (name, stands)
            for name, stands in _find_all(store)
            if with_archived or isinstance(stands, CampaignError) or not stands.archived
        ]
    if as_json:
        _print_json([_message(name, stands) for name, stands in found])
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{len(found)} campaigns")
    for heading in COLUMNS:
        table.add_column(heading, justify="left" if heading == "name" else "right")
    problems = []
    for name, stands in found:
        if isinstance(stands, CampaignError):
            problems.append(str(stands))
            table.add_row(name, stands.code)
        else:
            table.add_row(name, *map(Text, _cells(stands)))  # a name may hold brackets
    Console().print(table)
    for problem in problems:
        click.echo(problem)


@campaign.command()
@click.argument("name")
@storage_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def status(name: str, storage: str, as_json: bool) -> None:
    """Show where a campaign stands."""
    found = open_campaign(storage, name).status()
    if as_json:
        _print_json(_message(name, found))
    else:
        click.echo(str(found))


def _find_all(store: "Storage") -> "Iterator[tuple[str, Status | CampaignError]]":
    """Every campaign by name: its status, or why there is none."""
    from revar.campaigns import Campaign, CampaignError
    from revar.campaigns.storage.interface import MissingCampaignError

    for entry in store.entries():
        try:
            with progress_of_reading(entry.name) as progress:
                found = Campaign(store, entry, progress).status()
            yield entry.name, found
        except CampaignError as error:
            yield entry.name, error
        except MissingCampaignError:
            continue  # others have removed it


def _cells(status: "Status") -> tuple[str, ...]:
    """What the table has of a campaign behind its name."""
    value = interval = "-"
    estimate, leader = status.estimate, ""
    if status.ranking is not None:
        leader = status.ranking.names[status.ranking.leader]
        estimate = status.ranking.values[leader]
    if estimate is not None:
        low, high = estimate.interval
        value, interval = f"{leader} {estimate.value:.4g}".strip(), f"{low:.4g} to {high:.4g}"
    return f"{status.episodes}", _budget(status), f"{status.open}", value, interval


def _budget(status: "Status") -> str:
    """The budget; in another unit than episodes, with what was spent of it."""
    if status.unit == "episodes":
        return f"{status.budget}"
    from revar.campaigns.text import amount

    return f"{amount(status.used)} of {status.allowance.text(status.budget)}"


def _message(name: str, stands: "Status | CampaignError") -> Any:
    """A campaign for machines."""
    from revar.campaigns import CampaignError
    from revar.campaigns.status_messages import StatusMessage

    if isinstance(stands, CampaignError):
        return {"name": name, "error": {"code": stands.code, "message": str(stands)}}
    return StatusMessage.of(stands)


def _print_json(messages: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(messages), indent=1).decode())

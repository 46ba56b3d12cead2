"""`revar campaign`: the end of a campaign, and what comes after it."""

from typing import Any

import click

from revar.cli.campaign import open_campaign, storage_option
from revar.cli.campaign_status import campaign

__all__ = ["campaign"]  # complete once this module is loaded


@campaign.command()
@click.argument("name")
@storage_option
def close(name: str, storage: str) -> None:
    """Close a campaign: it starts no more episodes.

    Those that are open may still act and report.
    """
    found = open_campaign(storage, name)
    found.close()
    click.echo(str(found.status()))


@campaign.command()
@click.argument("name")
@storage_option
@click.option("--episodes", type=int, help="How many more.")
@click.option("--steps", type=int, help="How many more, where the budget is of steps.")
@click.option("--budget", type=float, help="How much more, where the budget is of cost.")
def extend(name: str, storage: str, **more: Any) -> None:
    """Add to the budget of a campaign; one that was spent goes on."""
    found = open_campaign(storage, name)
    found.extend(**more)
    click.echo(str(found.status()))


@campaign.command()
@click.argument("name")
@storage_option
def reopen(name: str, storage: str) -> None:
    """Start episodes again, after a campaign was closed, archived, or found precise enough."""
    found = open_campaign(storage, name)
    found.reopen()
    click.echo(str(found.status()))


@campaign.command()
@click.argument("name")
@storage_option
def archive(name: str, storage: str) -> None:
    """Close a campaign and have lists leave it out."""
    found = open_campaign(storage, name)
    found.archive()
    click.echo(str(found.status()))


@campaign.command()
@click.argument("name")
@storage_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(name: str, storage: str, yes: bool) -> None:
    """Remove an archived campaign with all its data, for good."""
    from revar.campaigns import Campaign

    if not yes:
        click.confirm(f"Delete {name} with all its data, for good?", abort=True)
    Campaign.delete(storage, name)
    click.echo(f"deleted {name}")


@campaign.command()
@click.argument("name")
@click.argument("episode")
@storage_option
def release(name: str, episode: str, storage: str) -> None:
    """Give the place of an open episode to others at once.

    Its complete steps count. EPISODE is its id, as the status with --json shows it.
    """
    done = open_campaign(storage, name).release(episode)
    click.echo(f"released episode {done.episode}, after {done.steps} steps")

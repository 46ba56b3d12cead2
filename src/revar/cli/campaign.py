"""`revar campaign`: create, export and merge campaigns of a storage."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from revar.cli.spending import LIMITS, add_options, parse_limits

if TYPE_CHECKING:
    from revar.campaigns import Campaign

LIMIT_ARGUMENTS = ("forbid", "max_ratio", "min_return", "max_sums", "limit_confidence")
MAX_SUM = click.option(
    "--max-sum",
    "max_sums",
    multiple=True,
    metavar="NAME=MOST",
    help="At most so much an episode, in expectation, of the amounts that every reward tells as "
    "NAME. May be repeated.",
)

storage_option = click.option(
    "--storage",
    envvar="REVAR_STORAGE",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="sqlite:///file.db, postgresql://user@host/database, or the path of a SQLite file.",
)


@click.group()
def campaign() -> None:
    """Create, show, export, merge, extend, close and remove campaigns.

    \b
    Examples:
      export REVAR_STORAGE=sqlite:///campaigns.db
      revar campaign create ads --actions 3 --horizon 5 --episodes 2000
      revar campaign status ads
      revar campaign export ads --output ads.jsonl
    """


def limit_options(command: Any) -> Any:
    """Add the options that say what collection may not do; amounts have names here."""
    forbid, max_ratio, min_return, _, confidence = LIMITS
    return add_options((forbid, max_ratio, min_return, MAX_SUM, confidence), command)


@campaign.command()
@click.argument("name")
@storage_option
@click.option("--horizon", type=int, required=True, help="Most steps of an episode.")
@click.option("--episodes", type=int, help="The budget: how many in all.")
@click.option("--steps", type=int, help="The budget in steps, in place of episodes.")
@click.option("--budget", type=float, help="The budget in what every reward says its step cost.")
@click.option("--discount", type=float, default=1.0, show_default=True, help="From 0 to 1.")
@click.option("--strategy", default="flow", show_default=True, help="An id of `revar list`.")
@click.option("--seed", type=int, default=None, help="Of all decisions; drawn if not given.")
@click.option(
    "--lease",
    type=float,
    default=900.0,
    show_default=True,
    help="Seconds of silence after which an episode's place may go to another.",
)
@click.option(
    "--half-width",
    type=float,
    help="Start no more once the interval reaches so far to each side.",
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Of the interval that --half-width is about.",
)
@click.option("--actions", type=int, default=None, help="How many; needed without --policy.")
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='The target policy as JSON: [{"state": ..., "probabilities": [...]}, ...], or with '
    'texts as states {"home": [0.9, 0.1], ...}.',
)
@click.option(
    "--policies",
    multiple=True,
    metavar="NAME[=FILE]",
    help="One of several policies to compare, with its table as in --policy; repeat it for each.",
)
@click.option(
    "--question", default=None, help="About several: best (the default), values or difference."
)
@limit_options
def create(
    name: str, storage: str, policy: Path | None, policies: tuple[str, ...], **question: Any
) -> None:
    """Create a campaign.

    Without tables every decision brings the target policies' probabilities with it. The budget is
    one of --episodes, --steps and --budget. What --max-sum names is told with every reward.

    \b
    Examples:
      revar campaign create ads --actions 3 --horizon 5 --episodes 2000
      revar campaign create shop --policies old=old.json --policies new=new.json \\
          --horizon 5 --episodes 2000
      revar campaign create site --actions 3 --horizon 5 --steps 10000 --min-return 95% \\
          --max-ratio 3 --forbid cart:2
      revar campaign create robot --actions 4 --horizon 50 --budget 3600 --max-sum unsafe=0.1
    """
    from revar.campaigns import Campaign

    table = None if policy is None else _policy_table(policy)
    several = _several(policies) if policies else None
    limits = parse_limits(**{option: question.pop(option) for option in LIMIT_ARGUMENTS})
    made = Campaign.create(storage, name, policy=table, policies=several, limits=limits, **question)
    click.echo(f"created {made.name}, id {made.id}, seed {made.definition.seed}")


@campaign.command()
@click.argument("name")
@storage_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file ending in .jsonl, .csv, .npz or .parquet. Default: print JSON lines.",
)
def export(name: str, storage: str, output: Path | None) -> None:
    """Write the data to a file, or to the terminal.

    An episode a line (.jsonl) or a step a row (.csv): every complete step. Or a dataset of revar
    (.npz, .parquet): the complete episodes.
    """
    from revar.campaigns.export import FORMATS, StoredCampaign
    from revar.campaigns.storage import open_storage
    from revar.campaigns.stored import find_entry
    from revar.datasets.files import save_dataset
    from revar.errors import InputError

    form = "jsonl" if output is None else output.suffix.removeprefix(".")
    if form not in (*FORMATS, "npz", "parquet"):
        raise InputError(f"{output} must end in .jsonl, .csv, .npz or .parquet")
    store = open_storage(storage, create=False)
    entry = find_entry(store, name)
    if output is None:
        for piece in StoredCampaign(store, entry).export_text(form):
            click.echo(piece, nl=False)
        return
    with progress_of_reading(name) as progress:
        found = StoredCampaign(store, entry, progress)
        if form not in FORMATS:
            save_dataset(found.dataset(), output)
        else:
            with output.open("w", encoding="utf-8", newline="") as file:
                file.writelines(found.export_text(form))
    click.echo(f"wrote {output}")


@campaign.command()
@click.argument("name")
@click.argument("source")
@storage_option
@click.option(
    "--source-name", default=None, help="The campaign's name in SOURCE; the same if not given."
)
def merge(name: str, source: str, storage: str, source_name: str | None) -> None:
    """Merge a campaign of another storage into this one.

    Adds what the campaign of the storage SOURCE knows to campaign NAME, which is created if it is
    missing. Both must ask the same question. Merging again adds only what is new.
    """
    from revar.campaigns import Campaign, open_storage
    from revar.campaigns.merging import merge as merge_campaigns

    other = open_campaign(source, source_name or name)
    store = open_storage(storage)
    if store.find(name) is None:
        target = Campaign.copy_of(other, store, name)
    else:
        target = Campaign.open(store, name)
    done = merge_campaigns(target, other)
    click.echo(f"merged {done.episodes} new episodes, {done.events} events")


def open_campaign(storage: str, name: str) -> "Campaign":
    """The campaign of that name."""
    from revar.campaigns import Campaign

    with progress_of_reading(name) as progress:
        return Campaign.open(storage, name, progress)


@contextmanager
def progress_of_reading(name: str) -> Iterator[Callable[[int, int], None]]:
    """Shows people how much of a long log has been read, where there is no snapshot."""
    with ExitStack() as stack:
        shown: list[Callable[..., None]] = []

        def tell(read: int, length: int) -> None:
            if not shown and sys.stderr.isatty():
                from revar.progress import progress_bar

                bar = progress_bar(f"reading the log of {name}", "events")
                shown.append(stack.enter_context(bar))
            for show in shown:
                show(read, length)

        yield tell


def _several(given: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Names with their tables, None where there is none."""
    parts = [each.partition("=") for each in given]
    return [(name, _policy_table(Path(path)) if mark else None) for name, mark, path in parts]


def _policy_table(path: Path) -> Any:
    import msgspec

    from revar.errors import InputError

    try:
        table = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if isinstance(table, dict):
        return table
    rows = table if isinstance(table, list) else [table]
    for place, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != {"state", "probabilities"}:
            raise InputError(f"row {place} of {path} must have a state and probabilities")
    return [(row["state"], row["probabilities"]) for row in rows]

"""The option that says where campaigns are kept, shared by the commands that need it."""

import click

storage_option = click.option(
    "--storage",
    envvar="REVAR_STORAGE",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="sqlite:///file.db, postgresql://user@host/database, or the path of a SQLite file.",
)

"""`python -m revar`, and what the command `revar` starts with: Ctrl-C is heard from here on."""

import sys

from revar.errors import INTERRUPTED


def main() -> None:
    """Run the command; one that is stopped while it is still being loaded says so in a line."""
    try:
        from revar.cli.main import main as run  # noqa: PLC0415 - loading takes a while

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

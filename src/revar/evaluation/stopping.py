"""What ends a collection early: the user's wish, and what goes wrong in an episode."""

from revar.errors import InputError
from revar.model.episodes import Episodes


class Stopped(Exception):  # noqa: N818 - not an error
    """The user wants to see what is there."""

    complete: Episodes | None = None  # what was played before, where a player hands it back


class EpisodeError(InputError):
    """What went wrong in one episode of several that were under way."""

    def __init__(self, message: str, episode: int, complete: Episodes | None = None) -> None:
        super().__init__(message)
        self.episode = episode
        self.complete = complete  # what was played before, where a player hands it back

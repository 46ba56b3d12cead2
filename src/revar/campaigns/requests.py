"""Several requests at once: each has an answer of its own, and a bad one touches no other."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from revar.campaigns.commands import check_episode_id
from revar.campaigns.rules import CampaignError
from revar.errors import InputError

RequestError: TypeAlias = CampaignError | InputError  # the answer to one of several requests
Made = TypeVar("Made")


class ActRequest(NamedTuple):
    """One of several acts; see `CampaignEpisode.act`."""

    episode: str
    step: int
    state: Any
    probabilities: Any = None


class RewardReport(NamedTuple):
    """One of several rewards; see `CampaignEpisode.reward`."""

    episode: str
    step: int
    reward: float
    next_state: Any
    cost: float | None = None
    amounts: Mapping[str, float] | None = None


RequestKind: TypeAlias = type[ActRequest] | type[RewardReport]


def make_commands(
    kind: RequestKind, make: Callable[..., Made], requests: Iterable[Any]
) -> list[Made | InputError]:
    """A command for each of several requests, or the error that there is in it."""
    made: list[Made | InputError] = []
    for request in requests:
        try:
            fields = _fields(kind, request)
            check_episode_id(fields[0])
            made.append(make(*fields))
        except InputError as error:
            made.append(error)
    return made


def answer_requests(made: Iterable[Any], replies: Iterable[Any]) -> list[Any]:
    """An answer for each request, in order, from the replies to the commands among them."""
    found = iter(replies)
    return [each if isinstance(each, InputError) else next(found) for each in made]


def _fields(kind: RequestKind, request: Any) -> tuple[Any, ...]:
    try:
        return kind(*request)
    except TypeError:
        names = ", ".join(kind._fields)
        raise InputError(f"a request is {request!r:.60}; it must be a tuple of {names}") from None

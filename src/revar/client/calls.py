"""Every request to a service as data: where it goes, what it brings, and what its answer is.

Whatever makes a request safe to repeat is part of it before it is first sent: ids of campaigns and
episodes, and the numbers of steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload
from urllib.parse import urlencode

import msgspec

from revar.campaigns.commands import (
    Act,
    ActionReply,
    Command,
    EpisodeReply,
    check_episode_id,
)
from revar.campaigns.definition import Definition, check_name
from revar.campaigns.events import Closed, Finished, Released, Rewarded, Started
from revar.campaigns.export import ExportedEpisode, read_json_lines
from revar.campaigns.service.messages import (
    ActMessage,
    CampaignMessage,
    CampaignsMessage,
    CreateCampaign,
    EmptyMessage,
    RewardMessage,
    StartEpisode,
)
from revar.campaigns.status_messages import EstimateMessage, RankingMessage, StatusMessage

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request that may be repeated, and how its answer is read."""

    method: str
    path: str  # behind the service's address
    read: Callable[[bytes], Answer]
    body: bytes | None = None
    campaign: str = ""  # that it is about
    checked: bool = False  # for errors in its input, before it was sent


def list_names() -> Call[CampaignsMessage]:
    """The names of all campaigns."""
    return Call("GET", "/api/campaigns", _reader(CampaignsMessage))


def create(name: str, campaign_id: str, definition: Definition) -> Call[StatusMessage]:
    """A new campaign of that definition, or the one of that id."""
    fields: dict[str, Any] = msgspec.structs.asdict(definition)
    if definition.policies is not None and not definition.has_table:
        fields["policies"] = list(definition.names)
    message = CreateCampaign(name=check_name(name), id=campaign_id, **fields)
    body = msgspec.json.encode(message)
    return Call("POST", "/api/campaigns", _reader(StatusMessage), body, name)


def describe(name: str) -> Call[CampaignMessage]:
    """What never changes about a campaign."""
    return _get(check_name(name), "/definition", _reader(CampaignMessage))


def ask_status(name: str) -> Call[StatusMessage]:
    """Where a campaign stands."""
    return _get(name, "", _reader(StatusMessage))


def ask_estimate(name: str, confidence: float) -> Call[EstimateMessage]:
    """The target policy's value."""
    return _get(name, "/estimate", _reader(EstimateMessage), confidence=confidence)


def ask_ranking(name: str, confidence: float) -> Call[RankingMessage]:
    """The values of several target policies."""
    return _get(name, "/ranking", _reader(RankingMessage), confidence=confidence)


def find_episode(name: str, episode_id: str) -> Call[EpisodeReply]:
    """Where an episode stands."""
    return _get(name, f"/episodes/{check_episode_id(episode_id)}", _reader(EpisodeReply))


def download(name: str) -> Call[list[ExportedEpisode]]:
    """Every complete step."""
    return _get(name, "/data", read_json_lines, format="jsonl")


@overload
def command_call(name: str, command: Act) -> Call[ActionReply]: ...


@overload
def command_call(
    name: str, command: Started | Rewarded | Finished | Released
) -> Call[EpisodeReply]: ...


@overload
def command_call(name: str, command: Closed) -> Call[None]: ...


def command_call(name: str, command: Command) -> Call[Any]:
    """The request that has a service carry out a command, which was checked when it was made."""
    if isinstance(command, Closed):
        return _post(name, "/close", EmptyMessage(), _nothing)
    if isinstance(command, Started):
        return _post(name, "/episodes", StartEpisode(command.episode), _reader(EpisodeReply))
    episode = f"/episodes/{command.episode}"
    if isinstance(command, Act):
        asked = ActMessage(command.step, msgspec.Raw(command.state), command.probabilities)
        return _post(name, f"{episode}/act", asked, _reader(ActionReply))
    read = _reader(EpisodeReply)
    if isinstance(command, Rewarded):
        told = command.step, command.reward, command.next_state, command.cost, command.amounts
        return _post(name, f"{episode}/reward", RewardMessage(*told), read)
    verb = "finish" if isinstance(command, Finished) else "abandon"
    return _post(name, f"{episode}/{verb}", EmptyMessage(), read)


def _get(name: str, path: str, read: Callable[[bytes], Answer], **query: Any) -> Call[Answer]:
    asked = f"?{urlencode(query)}" if query else ""
    return Call("GET", f"/api/campaigns/{name}{path}{asked}", read, campaign=name)


def _post(name: str, path: str, message: Any, read: Callable[[bytes], Answer]) -> Call[Answer]:
    body = msgspec.json.encode(message)
    return Call("POST", f"/api/campaigns/{name}{path}", read, body, name, checked=True)


def _reader(kind: type[Answer]) -> Callable[[bytes], Answer]:
    return msgspec.json.Decoder(kind).decode


def _nothing(answer: bytes) -> None:
    """What is done needs no answer."""

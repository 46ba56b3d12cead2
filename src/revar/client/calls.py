"""Every request to a service as data: where it goes, what it brings, and what its answer is.

Whatever makes a request safe to repeat is part of it before it is first sent: ids of campaigns and
episodes, and the numbers of steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec

from revar.campaigns.commands import Act, ActionReply, Command, EpisodeReply, check_episode_id
from revar.campaigns.definition import Definition, check_name
from revar.campaigns.events import (
    AboutCampaign,
    Archived,
    Closed,
    Extended,
    Finished,
    Merged,
    Released,
    Renewed,
    Reopened,
    Rewarded,
    Started,
    encode_event,
)
from revar.campaigns.export import ExportedEpisode, read_json_lines
from revar.campaigns.service.messages import (
    ActionOutcomes,
    ActMessage,
    ActOfEpisode,
    CampaignMessage,
    CampaignsMessage,
    CreateCampaign,
    EmptyMessage,
    EpisodeOutcomes,
    EventsMessage,
    ExtendCampaign,
    RewardMessage,
    RewardOfEpisode,
    StartEpisode,
    StartMany,
    VerdictsMessage,
)
from revar.campaigns.status_messages import EstimateMessage, RankingMessage, StatusMessage
from revar.campaigns.verdicts import Verdict
from revar.client.errors import campaign_error
from revar.errors import InputError

Answer = TypeVar("Answer")

AboutEpisode: TypeAlias = Started | Rewarded | Finished | Released | Renewed
Batch: TypeAlias = Callable[[str, Sequence[bytes]], "Call[list[Any]]"]  # of a campaign's requests


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request that may be repeated, and how its answer is read."""

    method: str
    path: str  # behind the service's address
    read: Callable[[bytes], Answer]
    body: bytes | None = None
    campaign: str = ""  # that it is about
    campaign_id: str | None = None  # which one is meant, of those that have had its name
    checked: bool = False  # for errors in its input, before it was sent
    removes: bool = False  # what it is about, so that a second try does not find it


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


def delete(name: str) -> Call[None]:
    """Remove an archived campaign."""
    path = f"/api/campaigns/{check_name(name)}"
    return Call("DELETE", path, _nothing, campaign=name, removes=True)


def extend(name: str, definition: Definition, command: Extended) -> Call[None]:
    """Add to the budget, in its unit."""
    field = {"cost": "budget"}.get(definition.allowance.unit, definition.allowance.unit)
    added: dict[str, Any] = {field: command.amount}
    message = ExtendCampaign(extension=command.extension, **added)
    return _post(name, "/extend", message, _nothing)


def ask_events(name: str, after: int) -> Call[EventsMessage]:
    """Events of the log, from behind a position on."""
    return _get(name, "/events", _reader(EventsMessage), after=after)


def start_many(name: str, episodes: Sequence[str]) -> Call[list[EpisodeReply | Exception]]:
    """Places in the budget for episodes of these ids."""
    return _post(name, "/starts", StartMany(list(episodes)), _outcomes(name, EpisodeOutcomes))


def encode_act(command: Act) -> bytes:
    """One of several acts as it is sent; `InputError` where a service would not take it."""
    asked = command.step, msgspec.Raw(command.state), command.probabilities
    return _encode(ActOfEpisode(*asked, episode=command.episode))


def encode_reward(command: Rewarded) -> bytes:
    """One of several rewards as it is sent; `InputError` where a service would not take it."""
    return _encode(RewardOfEpisode(*_told(command), episode=command.episode))


def act_many(name: str, acts: Sequence[bytes]) -> Call[list[ActionReply | Exception]]:
    """The actions of steps of several episodes."""
    return _post(name, "/acts", {"acts": _raw(acts)}, _outcomes(name, ActionOutcomes))


def reward_many(name: str, rewards: Sequence[bytes]) -> Call[list[EpisodeReply | Exception]]:
    """What the actions of several episodes led to."""
    return _post(name, "/rewards", {"rewards": _raw(rewards)}, _outcomes(name, EpisodeOutcomes))


def add_events(name: str, events: Sequence[bytes]) -> Call[list[Verdict]]:
    """Add events to the log."""
    decode = _reader(VerdictsMessage)
    return _post(name, "/events", {"events": _raw(events)}, lambda body: decode(body).verdicts)


def command_call(name: str, definition: Definition, command: Command) -> Call[Any]:
    """The request that has a service carry out a command, which was checked when it was made."""
    if isinstance(command, AboutCampaign):
        return _campaign_call(name, definition, command)
    if isinstance(command, Started):
        return _post(name, "/episodes", StartEpisode(command.episode), _reader(EpisodeReply))
    episode = f"/episodes/{command.episode}"
    if isinstance(command, Act):
        asked = ActMessage(command.step, msgspec.Raw(command.state), command.probabilities)
        return _post(name, f"{episode}/act", asked, _reader(ActionReply))
    read = _reader(EpisodeReply)
    if isinstance(command, Rewarded):
        return _post(name, f"{episode}/reward", RewardMessage(*_told(command)), read)
    verb = {Finished: "finish", Released: "abandon", Renewed: "heartbeat"}[type(command)]
    return _post(name, f"{episode}/{verb}", EmptyMessage(), read)


def _campaign_call(name: str, definition: Definition, command: AboutCampaign) -> Call[Any]:
    if isinstance(command, Merged):
        return _post(name, "/events", {"events": _raw([encode_event(command)])}, _nothing)
    if isinstance(command, Extended):
        return extend(name, definition, command)
    verb = {Closed: "close", Reopened: "reopen", Archived: "archive"}[type(command)]
    return _post(name, f"/{verb}", EmptyMessage(), _nothing)


def _encode(message: ActOfEpisode | RewardOfEpisode) -> bytes:
    body = msgspec.json.encode(message)
    try:
        msgspec.json.decode(body, type=type(message))
    except msgspec.ValidationError as error:
        raise InputError(f"step {message.step} of episode {message.episode!r}: {error}") from None
    return body


def _raw(items: Sequence[bytes]) -> list[msgspec.Raw]:
    return [msgspec.Raw(item) for item in items]


def _told(command: Rewarded) -> tuple[Any, ...]:
    return command.step, command.reward, command.next_state, command.cost, command.amounts


def _get(name: str, path: str, read: Callable[[bytes], Answer], **query: Any) -> Call[Answer]:
    asked = f"?{urlencode(query)}" if query else ""
    return Call("GET", f"/api/campaigns/{name}{path}{asked}", read, campaign=name)


def _post(name: str, path: str, message: Any, read: Callable[[bytes], Answer]) -> Call[Answer]:
    body = msgspec.json.encode(message)
    return Call("POST", f"/api/campaigns/{name}{path}", read, body, name, checked=True)


def _reader(kind: type[Answer]) -> Callable[[bytes], Answer]:
    return msgspec.json.Decoder(kind).decode


def _outcomes(name: str, kind: Any) -> Callable[[bytes], list[Any]]:
    """Reads an outcome for each of several requests: a reply, or an error."""
    decode = _reader(kind)

    def read(body: bytes) -> list[Any]:
        return [
            each.reply if each.error is None else campaign_error(name, each.error)
            for each in decode(body).outcomes
        ]

    return read


def _nothing(answer: bytes) -> None:
    """What is done needs no answer."""

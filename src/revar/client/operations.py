"""What can be asked of a service and of its campaigns, for plain and async calls alike."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Required, TypedDict, TypeVar, overload

from msgspec.structs import astuple

from revar.campaigns.commands import (
    Act,
    ActionReply,
    Command,
    EpisodeReply,
    Reply,
    ask_action,
    check_campaign_id,
    check_episode_id,
    extend_budget,
    new_campaign_id,
    new_episode_id,
    tell_reward,
)
from revar.campaigns.defining import define
from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.episode import DescribedCampaign
from revar.campaigns.events import AboutCampaign, Event, Started, encode_event
from revar.campaigns.export import dataset_of
from revar.campaigns.folding import fold, without_cycles
from revar.campaigns.requests import (
    ActRequest,
    RequestError,
    RewardReport,
    answer_requests,
    make_commands,
)
from revar.campaigns.rules import BudgetReservedError, BudgetSpentError, CampaignError
from revar.campaigns.service.messages import (
    LARGEST_REQUEST,
    MOST_IN_BATCH,
    CampaignMessage,
    EventsMessage,
)
from revar.campaigns.state import CampaignState
from revar.campaigns.status import Status
from revar.campaigns.storage.interface import StoredEvent
from revar.campaigns.verdicts import Verdict
from revar.client import calls
from revar.client.calls import AboutEpisode, Batch, Call
from revar.client.errors import TooLargeError
from revar.client.exchange import Exchange, carry_out
from revar.client.service import Service
from revar.errors import InputError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.limits import Limits
from revar.model.trajectory import Dataset
from revar.model.validation import check_count
from revar.strategies.strategy import Strategy

FRAME = 32  # bytes, at most, around the items of a batch
Answer = TypeVar("Answer")
Read = TypeVar("Read")


class CampaignQuestion(TypedDict, total=False):
    """The arguments of `Campaign.create` that follow the name."""

    policy: Any
    policies: Any
    question: str | None
    actions: int | None
    horizon: Required[int]
    discount: float
    episodes: int | None
    steps: int | None
    budget: float | None
    limits: Limits | Mapping[str, Any] | None
    strategy: str | Strategy | StrategyRecord
    seed: int | None
    lease: float
    half_width: float | None
    confidence: float
    campaign_id: str | None


def create_campaign(
    service: Service, name: str, question: CampaignQuestion
) -> Exchange[CampaignMessage]:
    """A new campaign; what is drawn, its seed and its id, is drawn here, once for all tries."""
    given: dict[str, Any] = {**question}
    campaign_id = given.pop("campaign_id", None)
    chosen = new_campaign_id() if campaign_id is None else check_campaign_id(campaign_id)
    return (yield from _create(service, name, chosen, define(**given)))


def copy_campaign(
    service: Service, source: DescribedCampaign, name: str
) -> Exchange[CampaignMessage]:
    """An empty campaign with the question and the id of another."""
    return _create(service, name, source.id, source.definition)


def _create(
    service: Service, name: str, campaign_id: str, definition: Definition
) -> Exchange[CampaignMessage]:
    yield from carry_out(service, calls.create(name, campaign_id, definition))
    made = replace(calls.describe(name), campaign_id=campaign_id)
    return (yield from carry_out(service, made))


def open_campaign(service: Service, name: str) -> Exchange[CampaignMessage]:
    """The campaign of that name."""
    return (yield from carry_out(service, calls.describe(name)))


def delete_campaign(service: Service, name: str) -> Exchange[None]:
    """Remove an archived campaign."""
    return carry_out(service, calls.delete(name))


def list_names(service: Service) -> Exchange[list[str]]:
    """The names of all campaigns."""
    return (yield from carry_out(service, calls.list_names())).campaigns


class CampaignOperations:
    """What can be asked of one campaign."""

    def __init__(self, service: Service, about: CampaignMessage) -> None:
        self._service = service
        self._id = about.id
        self._name = about.name
        self._definition = about.definition
        self.state = CampaignState(about.definition)  # as far as the log has been read

    @overload
    def execute(self, command: Act) -> Exchange[ActionReply]: ...

    @overload
    def execute(self, command: AboutEpisode) -> Exchange[EpisodeReply]: ...

    @overload
    def execute(self, command: AboutCampaign) -> Exchange[None]: ...

    def execute(self, command: Command) -> Exchange[Any]:
        """Have the service carry out a command."""
        call: Call[Any] = calls.command_call(self._name, self._definition, command)
        return self._carry_out(call)

    def execute_all(self, commands: Iterable[Command]) -> Exchange[list[Reply]]:
        """The same with several, in order; errors are returned."""
        replies: list[Reply] = []
        for command in commands:
            call = calls.command_call(self._name, self._definition, command)
            try:
                replies.append((yield from self._carry_out(call)))
            except CampaignError as error:
                replies.append(error)
        return replies

    def start(self, episode_id: str | None) -> Exchange[EpisodeReply]:
        """Reserve a place in the budget, by an id that is the same at every try."""
        chosen = new_episode_id() if episode_id is None else check_episode_id(episode_id)
        return self.execute(Started(chosen))

    def start_next(self, poll: float) -> Exchange[EpisodeReply | None]:
        """The same as soon as there is a place; None when the budget is spent."""
        call = calls.command_call(self._name, self._definition, Started(new_episode_id()))
        after = 0.0
        while True:
            try:
                reply: EpisodeReply = yield from self._carry_out(call, after)
                return reply
            except BudgetSpentError:
                return None
            except BudgetReservedError as error:
                after = min(poll, error.retry_after + 0.001)

    def start_many(self, count: int) -> Exchange[list[EpisodeReply]]:
        """Places in the budget for up to `count` episodes, at least for one."""
        ids = [new_episode_id() for _ in range(check_count(count, "count"))]
        started: list[EpisodeReply] = []
        for first in range(0, len(ids), MOST_IN_BATCH):
            call = calls.start_many(self._name, ids[first : first + MOST_IN_BATCH])
            found = yield from self._carry_out(call)
            started += [reply for reply in found if isinstance(reply, EpisodeReply)]
            refused = next((reply for reply in found if isinstance(reply, Exception)), None)
            if refused is not None and not started:
                raise refused
            if refused is not None:
                break
        return started

    def act_many(
        self, requests: Iterable[ActRequest]
    ) -> Exchange[list[ActionReply | RequestError]]:
        """The actions of steps of several episodes."""

        def make(*asked: Any) -> bytes:
            return calls.encode_act(ask_action(self._definition, *asked))

        return self._answer_many(calls.act_many, make_commands(ActRequest, make, requests))

    def reward_many(
        self, reports: Iterable[RewardReport]
    ) -> Exchange[list[EpisodeReply | RequestError]]:
        """What the actions of several episodes led to."""

        def make(*told: Any) -> bytes:
            return calls.encode_reward(tell_reward(self._definition, *told))

        return self._answer_many(calls.reward_many, make_commands(RewardReport, make, reports))

    def add(self, events: Iterable[Event]) -> Exchange[list[Verdict]]:
        """Add events to the log; the verdict on each."""
        verdicts: list[Verdict] = []
        for found in (yield from self._send_many(calls.add_events, map(encode_event, events))):
            if isinstance(found, Exception):
                raise found
            verdicts.append(found)
        return verdicts

    def _answer_many(self, batch: Batch, made: list[bytes | InputError]) -> Exchange[list[Any]]:
        sent = [each for each in made if not isinstance(each, InputError)]
        return answer_requests(made, (yield from self._send_many(batch, sent)))

    def _send_many(self, batch: Batch, items: Iterable[bytes]) -> Exchange[list[Any]]:
        """A reply for each; a service that takes less at once than usual is sent less."""
        replies: list[Any] = []
        left = list(reversed(list(split(items))))
        while left:
            piece = left.pop()
            try:
                replies += yield from self._carry_out(batch(self._name, piece))
            except TooLargeError as error:
                if half := len(piece) // 2:
                    left += [piece[half:], piece[:half]]
                else:
                    replies.append(error)
        return replies

    def extend(
        self, episodes: Any, steps: Any, budget: Any, extension_id: str | None
    ) -> Exchange[None]:
        """Add to the budget, once for all tries."""
        return self.execute(extend_budget(self._definition, episodes, steps, budget, extension_id))

    def find_episode(self, episode_id: str) -> Exchange[EpisodeReply]:
        """Where an episode stands."""
        return self._carry_out(calls.find_episode(self._name, episode_id))

    def estimate(self, confidence: float) -> Exchange[Estimate]:
        """The target policy's value."""
        call = calls.ask_estimate(self._name, confidence)
        return (yield from self._carry_out(call)).estimate()

    def ranking(self, confidence: float) -> Exchange[Ranking]:
        """The values of several target policies."""
        call = calls.ask_ranking(self._name, confidence)
        return (yield from self._carry_out(call)).ranking()

    def status(self) -> Exchange[Status]:
        """Where the campaign stands."""
        message = yield from self._carry_out(calls.ask_status(self._name))
        return message.status(self._definition)

    def dataset(self, partial: bool) -> Exchange[Dataset]:
        """The complete episodes, or every complete step."""
        episodes = yield from self._carry_out(calls.download(self._name))
        return dataset_of(self._definition, episodes, partial=partial)

    def list_events(self, after: int) -> Exchange[EventsMessage]:
        """Events of the log, from behind a position on."""
        return self._carry_out(calls.ask_events(self._name, after))

    def read(self, reader: Callable[[CampaignState, float], Read]) -> Exchange[Read]:
        """What `reader` makes of the state, which follows from the log here as it does there."""
        while True:
            page = yield from self.list_events(self.state.position)
            with without_cycles():
                fold(self.state, [StoredEvent(*astuple(each)) for each in page.events])
            if self.state.position >= page.length:
                return reader(self.state, page.now)

    def _carry_out(self, call: Call[Answer], after: float = 0.0) -> Exchange[Answer]:
        return carry_out(self._service, replace(call, campaign_id=self._id), after)


def split(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """As many at a time as a service takes, by their number and by their bytes."""
    piece: list[bytes] = []
    size = FRAME
    for item in items:
        if piece and (len(piece) == MOST_IN_BATCH or size + len(item) + 1 > LARGEST_REQUEST):
            yield piece
            piece, size = [], FRAME
        piece.append(item)
        size += len(item) + 1
    if piece:
        yield piece

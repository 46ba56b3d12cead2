"""What can be asked of a service and of its campaigns, for plain and async calls alike."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Required, TypedDict, TypeVar, overload

from revar.campaigns.commands import (
    Act,
    ActionReply,
    ActRequest,
    EpisodeReply,
    RequestError,
    RewardReport,
    answer_requests,
    ask_action,
    check_campaign_id,
    check_episode_id,
    extend_budget,
    make_commands,
    new_campaign_id,
    new_episode_id,
    tell_reward,
)
from revar.campaigns.defining import define
from revar.campaigns.definition import StrategyRecord
from revar.campaigns.events import Started
from revar.campaigns.export import dataset_of
from revar.campaigns.rules import BudgetReservedError, BudgetSpentError
from revar.campaigns.service.messages import MOST_IN_BATCH, CampaignMessage
from revar.campaigns.status import Status
from revar.client import calls
from revar.client.calls import AboutCampaign, AboutEpisode, Call, RemoteCommand
from revar.client.exchange import Exchange, carry_out
from revar.client.service import Service
from revar.errors import InputError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.limits import Limits
from revar.model.trajectory import Dataset
from revar.model.validation import check_count
from revar.strategies.strategy import Strategy

Item = TypeVar("Item")


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
    yield from carry_out(service, calls.create(name, chosen, define(**given)))
    return (yield from open_campaign(service, name))


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
        self._name = about.name
        self._definition = about.definition

    @overload
    def execute(self, command: Act) -> Exchange[ActionReply]: ...

    @overload
    def execute(self, command: AboutEpisode) -> Exchange[EpisodeReply]: ...

    @overload
    def execute(self, command: AboutCampaign) -> Exchange[None]: ...

    def execute(self, command: RemoteCommand) -> Exchange[Any]:
        """Have the service carry out a command."""
        call: Call[Any] = calls.command_call(self._name, command)
        return carry_out(self._service, call)

    def start(self, episode_id: str | None) -> Exchange[EpisodeReply]:
        """Reserve a place in the budget, by an id that is the same at every try."""
        chosen = new_episode_id() if episode_id is None else check_episode_id(episode_id)
        return self.execute(Started(chosen))

    def start_next(self, poll: float) -> Exchange[EpisodeReply | None]:
        """The same as soon as there is a place; None when the budget is spent."""
        call = calls.command_call(self._name, Started(new_episode_id()))
        after = 0.0
        while True:
            try:
                return (yield from carry_out(self._service, call, after))
            except BudgetSpentError:
                return None
            except BudgetReservedError as error:
                after = min(poll, error.retry_after + 0.001)

    def start_many(self, count: int) -> Exchange[list[EpisodeReply]]:
        """Places in the budget for up to `count` episodes, at least for one."""
        ids = [new_episode_id() for _ in range(check_count(count, "count"))]
        started: list[EpisodeReply] = []
        for piece in _pieces(ids):
            found = yield from carry_out(self._service, calls.start_many(self._name, piece))
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
        made = make_commands(lambda each: ask_action(self._definition, *each), requests)
        return self._carry_out_many(calls.act_many, made)

    def reward_many(
        self, reports: Iterable[RewardReport]
    ) -> Exchange[list[EpisodeReply | RequestError]]:
        """What the actions of several episodes led to."""
        made = make_commands(lambda each: tell_reward(self._definition, *each), reports)
        return self._carry_out_many(calls.reward_many, made)

    def _carry_out_many(
        self, call_of: Callable[[str, Any], Call[list[Any]]], made: list[Any]
    ) -> Exchange[list[Any]]:
        replies: list[Any] = []
        for piece in _pieces([each for each in made if not isinstance(each, InputError)]):
            replies += yield from carry_out(self._service, call_of(self._name, piece))
        return answer_requests(made, replies)

    def extend(
        self, episodes: Any, steps: Any, budget: Any, extension_id: str | None
    ) -> Exchange[None]:
        """Add to the budget, once for all tries."""
        added = extend_budget(self._definition, episodes, steps, budget, extension_id)
        return carry_out(self._service, calls.extend(self._name, self._definition, added))

    def find_episode(self, episode_id: str) -> Exchange[EpisodeReply]:
        """Where an episode stands."""
        return carry_out(self._service, calls.find_episode(self._name, episode_id))

    def estimate(self, confidence: float) -> Exchange[Estimate]:
        """The target policy's value."""
        call = calls.ask_estimate(self._name, confidence)
        return (yield from carry_out(self._service, call)).estimate()

    def ranking(self, confidence: float) -> Exchange[Ranking]:
        """The values of several target policies."""
        call = calls.ask_ranking(self._name, confidence)
        return (yield from carry_out(self._service, call)).ranking()

    def status(self) -> Exchange[Status]:
        """Where the campaign stands."""
        message = yield from carry_out(self._service, calls.ask_status(self._name))
        return message.status(self._definition)

    def dataset(self, partial: bool) -> Exchange[Dataset]:
        """The complete episodes, or every complete step."""
        episodes = yield from carry_out(self._service, calls.download(self._name))
        return dataset_of(self._definition, episodes, partial=partial)


def _pieces(several: list[Item]) -> Iterator[list[Item]]:
    """As many at a time as a service takes."""
    for first in range(0, len(several), MOST_IN_BATCH):
        yield several[first : first + MOST_IN_BATCH]

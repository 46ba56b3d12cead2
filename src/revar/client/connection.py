"""Campaigns of a service in plain calls."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from revar.campaigns.commands import (
    Act,
    ActionReply,
    Command,
    EpisodeReply,
    Reply,
    check_episode_id,
)
from revar.campaigns.episode import CampaignEpisode, DescribedCampaign
from revar.campaigns.events import (
    AboutCampaign,
    Archived,
    Closed,
    Event,
    Released,
    Renewed,
    Reopened,
    Unreadable,
    decode_event,
)
from revar.campaigns.requests import ActRequest, RequestError, RewardReport
from revar.campaigns.service.messages import CampaignMessage
from revar.campaigns.state import CampaignState
from revar.campaigns.status import Status
from revar.campaigns.storage.forking import ForkAware
from revar.campaigns.verdicts import Verdict
from revar.client import operations
from revar.client.calls import AboutEpisode, Call
from revar.client.exchange import Exchange, Outcome
from revar.client.operations import CampaignOperations, CampaignQuestion
from revar.client.service import RETRIES, TIMEOUT, Service, ServiceError
from revar.client.transport import client_options, lost, received, request_options
from revar.errors import require_extra
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.trajectory import Dataset

if TYPE_CHECKING:
    import httpx

Read = TypeVar("Read")
Result = TypeVar("Result")


def connect(
    address: str, token: str | None = None, *, timeout: float = TIMEOUT, retries: int = RETRIES
) -> "Connection":
    """The campaigns of the service at `address`.

    Parameters
    ----------
    address
        Of the service, such as "https://host/path".
    token
        What the service asks for, except on loopback.
    timeout
        How many seconds to wait for a connection, or for the next piece of an answer.
    retries
        How many times a call that got no answer is made again: nothing counts twice.
    """
    return Connection(Service(address, token, timeout, retries))


class Connection:
    """A service and its campaigns. May be used from any thread, after a fork, and pickled."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._httpx = require_extra("httpx", "client")
        self._client, self._process = self._new_client(), os.getpid()

    def create(self, name: str, **question: Unpack[CampaignQuestion]) -> "ConnectedCampaign":
        """A new campaign, by the arguments of `Campaign.create`."""
        return ConnectedCampaign(
            self, self.run(operations.create_campaign(self.service, name, question))
        )

    def open(self, name: str) -> "ConnectedCampaign":
        """The campaign of that name, as it stands."""
        return ConnectedCampaign(self, self.run(operations.open_campaign(self.service, name)))

    def copy_of(self, source: DescribedCampaign, name: str) -> "ConnectedCampaign":
        """See `Campaign.copy_of`; the source may be in a storage, or behind a service."""
        made = self.run(operations.copy_campaign(self.service, source, name))
        return ConnectedCampaign(self, made)

    def delete(self, name: str) -> None:
        """Remove an archived campaign with its log, for good."""
        self.run(operations.delete_campaign(self.service, name))

    def names(self) -> list[str]:
        """The names of all campaigns, in the order of creation."""
        return self.run(operations.list_names(self.service))

    def close(self) -> None:
        """Let go of the connections; a second call does nothing."""
        self._client.close()

    def run(self, exchange: Exchange[Result]) -> Result:
        """Do what an exchange asks for, until it has its result."""
        try:
            attempt = next(exchange)
            while True:
                if attempt.after > 0.0:
                    time.sleep(attempt.after)
                attempt = exchange.send(self._send(attempt.call))
        except StopIteration as done:
            result: Result = done.value
            return result

    def _send(self, call: Call[Any]) -> Outcome:
        if self._process != os.getpid():  # two processes must not read from one socket
            self._client, self._process = self._new_client(), os.getpid()
        if self._client.is_closed:
            raise ServiceError(f"the connection to {self.service} was closed")
        try:
            return received(self._client.request(**request_options(self.service, call)))
        except self._httpx.HTTPError as error:
            return lost(error)

    def _new_client(self) -> "httpx.Client":
        client: httpx.Client = self._httpx.Client(**client_options(self.service))
        return client

    def __repr__(self) -> str:
        return f"Connection({self.service.address!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Connection, (self.service,)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ConnectedCampaign(ForkAware):
    """One campaign of a service, with the methods of a local `Campaign`.

    It is that very campaign: another that has its name later is refused. May be used from any
    thread, and pickled for workers; the token goes with it.
    """

    def __init__(self, connection: Connection, about: CampaignMessage) -> None:
        ForkAware.__init__(self)
        self.connection = connection
        self._about = about
        self._reading = threading.RLock()  # of what was read of the log
        self.id = about.id
        self.name = about.name
        self.created = about.created
        self.definition = about.definition
        self._operations = CampaignOperations(connection.service, about)

    def __reduce__(self) -> tuple[Any, ...]:
        return ConnectedCampaign, (self.connection, self._about)

    def after_fork(self) -> None:
        """See `ForkAware`. What another thread was reading is read anew."""
        self._reading = threading.RLock()
        self._operations = CampaignOperations(self.connection.service, self._about)

    def __repr__(self) -> str:
        return f"ConnectedCampaign({self.connection.service.address!r}, {self.name!r})"

    # -- collecting ------------------------------------------------------------------------

    def start_episode(self, episode_id: str | None = None) -> CampaignEpisode:
        """See `Campaign.start_episode`."""
        return CampaignEpisode(self, self._run(self._operations.start(episode_id)))

    def episode(self, episode_id: str) -> CampaignEpisode:
        """See `Campaign.episode`."""
        return CampaignEpisode(self, self.find_episode(episode_id))

    def episodes(self, poll: float = 1.0) -> Iterator[CampaignEpisode]:
        """See `Campaign.episodes`."""
        while (reply := self._run(self._operations.start_next(poll))) is not None:
            yield CampaignEpisode(self, reply)

    def start_episodes(self, count: int) -> list[CampaignEpisode]:
        """See `Campaign.start_episodes`."""
        replies = self._run(self._operations.start_many(count))
        return [CampaignEpisode(self, reply) for reply in replies]

    def act_many(self, requests: Iterable[ActRequest]) -> list[ActionReply | RequestError]:
        """See `Campaign.act_many`."""
        return self._run(self._operations.act_many(requests))

    def reward_many(self, reports: Iterable[RewardReport]) -> list[EpisodeReply | RequestError]:
        """See `Campaign.reward_many`."""
        return self._run(self._operations.reward_many(reports))

    def heartbeat(self, episode_id: str) -> EpisodeReply:
        """See `Campaign.heartbeat`."""
        return self.execute_one(Renewed(check_episode_id(episode_id)))

    def release(self, episode_id: str) -> EpisodeReply:
        """See `Campaign.release`."""
        return self.execute_one(Released(check_episode_id(episode_id), "abandoned"))

    # -- its end, and after ----------------------------------------------------------------

    def close(self) -> None:
        """See `Campaign.close`; the connection stays open."""
        self.execute_one(Closed())

    def extend(
        self,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        budget: float | None = None,
        extension_id: str | None = None,
    ) -> None:
        """See `Campaign.extend`."""
        self._run(self._operations.extend(episodes, steps, budget, extension_id))

    def reopen(self) -> None:
        """See `Campaign.reopen`."""
        self.execute_one(Reopened())

    def archive(self) -> None:
        """See `Campaign.archive`."""
        self.execute_one(Archived())

    # -- reading ---------------------------------------------------------------------------

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """See `Campaign.estimate`."""
        return self._run(self._operations.estimate(confidence))

    def ranking(self, confidence: float = 0.95) -> Ranking:
        """See `Campaign.ranking`."""
        return self._run(self._operations.ranking(confidence))

    def status(self) -> Status:
        """See `Campaign.status`."""
        return self._run(self._operations.status())

    def find_episode(self, episode_id: str) -> EpisodeReply:
        """See `Campaign.find_episode`."""
        return self._run(self._operations.find_episode(episode_id))

    def dataset(self, *, partial: bool = False) -> Dataset:
        """See `Campaign.dataset`."""
        return self._run(self._operations.dataset(partial))

    # -- its log ---------------------------------------------------------------------------

    def read(self, reader: Callable[[CampaignState, float], Read]) -> Read:
        """See `Campaign.read`; what is new in the log is fetched, and replayed here."""
        with self._reading:
            return self._run(self._operations.read(reader))

    def peek(self, reader: Callable[[CampaignState], Read]) -> Read:
        """See `Campaign.peek`; of the state as it was last read."""
        return reader(self._operations.state)

    def events(self) -> Iterator[tuple[float, Event | Unreadable]]:
        """See `Campaign.events`."""
        after = 0
        while page := self._run(self._operations.list_events(after)).events:
            for each in page:
                yield each.time, decode_event(each.body)
            after = page[-1].position

    def add(self, events: Sequence[Event]) -> list[Verdict]:
        """See `Campaign.add`; as many at a time as the service takes."""
        return self._run(self._operations.add(events))

    # -- commands --------------------------------------------------------------------------

    @overload
    def execute_one(self, command: Act) -> ActionReply: ...

    @overload
    def execute_one(self, command: AboutEpisode) -> EpisodeReply: ...

    @overload
    def execute_one(self, command: AboutCampaign) -> None: ...

    def execute_one(self, command: Command) -> Any:
        """Have the service carry out one command; an error is raised."""
        exchange: Exchange[Any] = self._operations.execute(command)
        return self._run(exchange)

    def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """Have it carry out commands, in order; errors are returned, not raised."""
        return self._run(self._operations.execute_all(commands))

    def _run(self, exchange: Exchange[Result]) -> Result:
        return self.connection.run(exchange)

"""Campaigns of a service in async calls: the same methods, to be awaited."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
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
from revar.campaigns.episode import DescribedCampaign
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
from revar.campaigns.verdicts import Verdict
from revar.client import operations
from revar.client.async_episode import AsyncEpisode
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


def connect_async(
    address: str, token: str | None = None, *, timeout: float = TIMEOUT, retries: int = RETRIES
) -> "AsyncConnection":
    """See `connect`; every method is to be awaited, on asyncio's loops.

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
    return AsyncConnection(Service(address, token, timeout, retries))


class AsyncConnection:
    """A service and its campaigns, for the event loop that first uses it. May be pickled."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._httpx = require_extra("httpx", "client")
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def create(self, name: str, **question: Unpack[CampaignQuestion]) -> "AsyncCampaign":
        """A new campaign, by the arguments of `Campaign.create`."""
        return AsyncCampaign(
            self, await self.run(operations.create_campaign(self.service, name, question))
        )

    async def open(self, name: str) -> "AsyncCampaign":
        """The campaign of that name, as it stands."""
        return AsyncCampaign(self, await self.run(operations.open_campaign(self.service, name)))

    async def copy_of(self, source: DescribedCampaign, name: str) -> "AsyncCampaign":
        """See `Connection.copy_of`."""
        return AsyncCampaign(
            self, await self.run(operations.copy_campaign(self.service, source, name))
        )

    async def delete(self, name: str) -> None:
        """Remove an archived campaign with its log, for good."""
        await self.run(operations.delete_campaign(self.service, name))

    async def names(self) -> list[str]:
        """The names of all campaigns, in the order of creation."""
        return await self.run(operations.list_names(self.service))

    async def close(self) -> None:
        """Let go of the connections; a second call does nothing."""
        self._closed = True
        if self._client is not None:
            await self._client.aclose()

    async def run(self, exchange: Exchange[Result]) -> Result:
        """Do what an exchange asks for, until it has its result."""
        try:
            attempt = next(exchange)
            while True:
                if attempt.after > 0.0:
                    await asyncio.sleep(attempt.after)
                attempt = exchange.send(await self._send(attempt.call))
        except StopIteration as done:
            result: Result = done.value
            return result

    async def _send(self, call: Call[Any]) -> Outcome:
        if self._closed:
            raise ServiceError(f"the connection to {self.service} was closed")
        if self._client is None:
            self._loop = asyncio.get_running_loop()
            self._client = self._httpx.AsyncClient(**client_options(self.service))
        if self._loop is not asyncio.get_running_loop():
            raise ServiceError(f"the connection to {self.service} belongs to another event loop")
        try:
            return received(await self._client.request(**request_options(self.service, call)))
        except self._httpx.HTTPError as error:
            return lost(error)

    def __repr__(self) -> str:
        return f"AsyncConnection({self.service.address!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return AsyncConnection, (self.service,)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncCampaign:
    """One campaign of a service, with the methods of a local `Campaign`, to be awaited."""

    def __init__(self, connection: AsyncConnection, about: CampaignMessage) -> None:
        self.connection = connection
        self._about = about
        self._reading = asyncio.Lock()  # of what was read of the log
        self.id = about.id
        self.name = about.name
        self.created = about.created
        self.definition = about.definition
        self._operations = CampaignOperations(connection.service, about)

    def __reduce__(self) -> tuple[Any, ...]:
        return AsyncCampaign, (self.connection, self._about)

    def __repr__(self) -> str:
        return f"AsyncCampaign({self.connection.service.address!r}, {self.name!r})"

    # -- collecting ------------------------------------------------------------------------

    async def start_episode(self, episode_id: str | None = None) -> AsyncEpisode:
        """See `Campaign.start_episode`."""
        return AsyncEpisode(self, await self._run(self._operations.start(episode_id)))

    async def episode(self, episode_id: str) -> AsyncEpisode:
        """See `Campaign.episode`."""
        return AsyncEpisode(self, await self.find_episode(episode_id))

    async def episodes(self, poll: float = 1.0) -> AsyncIterator[AsyncEpisode]:
        """See `Campaign.episodes`."""
        while (reply := await self._run(self._operations.start_next(poll))) is not None:
            yield AsyncEpisode(self, reply)

    async def start_episodes(self, count: int) -> list[AsyncEpisode]:
        """See `Campaign.start_episodes`."""
        replies = await self._run(self._operations.start_many(count))
        return [AsyncEpisode(self, reply) for reply in replies]

    async def act_many(self, requests: Iterable[ActRequest]) -> list[ActionReply | RequestError]:
        """See `Campaign.act_many`."""
        return await self._run(self._operations.act_many(requests))

    async def reward_many(
        self, reports: Iterable[RewardReport]
    ) -> list[EpisodeReply | RequestError]:
        """See `Campaign.reward_many`."""
        return await self._run(self._operations.reward_many(reports))

    async def heartbeat(self, episode_id: str) -> EpisodeReply:
        """See `Campaign.heartbeat`."""
        return await self.execute_one(Renewed(check_episode_id(episode_id)))

    async def release(self, episode_id: str) -> EpisodeReply:
        """See `Campaign.release`."""
        return await self.execute_one(Released(check_episode_id(episode_id), "abandoned"))

    # -- its end, and after ----------------------------------------------------------------

    async def close(self) -> None:
        """See `Campaign.close`; the connection stays open."""
        await self.execute_one(Closed())

    async def extend(
        self,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        budget: float | None = None,
        extension_id: str | None = None,
    ) -> None:
        """See `Campaign.extend`."""
        await self._run(self._operations.extend(episodes, steps, budget, extension_id))

    async def reopen(self) -> None:
        """See `Campaign.reopen`."""
        await self.execute_one(Reopened())

    async def archive(self) -> None:
        """See `Campaign.archive`."""
        await self.execute_one(Archived())

    # -- reading ---------------------------------------------------------------------------

    async def estimate(self, confidence: float = 0.95) -> Estimate:
        """See `Campaign.estimate`."""
        return await self._run(self._operations.estimate(confidence))

    async def ranking(self, confidence: float = 0.95) -> Ranking:
        """See `Campaign.ranking`."""
        return await self._run(self._operations.ranking(confidence))

    async def status(self) -> Status:
        """See `Campaign.status`."""
        return await self._run(self._operations.status())

    async def find_episode(self, episode_id: str) -> EpisodeReply:
        """See `Campaign.find_episode`."""
        return await self._run(self._operations.find_episode(episode_id))

    async def dataset(self, *, partial: bool = False) -> Dataset:
        """See `Campaign.dataset`."""
        return await self._run(self._operations.dataset(partial))

    # -- its log ---------------------------------------------------------------------------

    async def read(self, reader: Callable[[CampaignState, float], Read]) -> Read:
        """See `ConnectedCampaign.read`."""
        async with self._reading:
            return await self._run(self._operations.read(reader))

    async def peek(self, reader: Callable[[CampaignState], Read]) -> Read:
        """See `ConnectedCampaign.peek`."""
        return reader(self._operations.state)

    async def events(self) -> AsyncIterator[tuple[float, Event | Unreadable]]:
        """See `Campaign.events`."""
        after = 0
        while page := (await self._run(self._operations.list_events(after))).events:
            for each in page:
                yield each.time, decode_event(each.body)
            after = page[-1].position

    async def add(self, events: Sequence[Event]) -> list[Verdict]:
        """See `ConnectedCampaign.add`."""
        return await self._run(self._operations.add(events))

    # -- commands --------------------------------------------------------------------------

    @overload
    async def execute_one(self, command: Act) -> ActionReply: ...

    @overload
    async def execute_one(self, command: AboutEpisode) -> EpisodeReply: ...

    @overload
    async def execute_one(self, command: AboutCampaign) -> None: ...

    async def execute_one(self, command: Command) -> Any:
        """Have the service carry out one command; an error is raised."""
        exchange: Exchange[Any] = self._operations.execute(command)
        return await self._run(exchange)

    async def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """See `ConnectedCampaign.execute`."""
        return await self._run(self._operations.execute_all(commands))

    async def _run(self, exchange: Exchange[Result]) -> Result:
        return await self.connection.run(exchange)

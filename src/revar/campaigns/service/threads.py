"""The campaigns that a service has open, and the threads that work for them.

Commands that arrive while a commit is under way wait for it and then share the next one, so that
many callers cost little more than one. A campaign has a thread while it is asked to do something;
reading, opening and downloading have a bounded number of their own, of which one campaign takes
few. What may wait for others to end their writing has threads that nothing else needs.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import Command, Reply
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.storage.interface import MissingCampaignError, Storage, StorageError

MOST_AT_ONCE = 256  # commands in one commit
IDLE = 30.0  # seconds after which a thread ends that has nothing to do
READERS, OPENERS, DOWNLOADERS, PLANNERS, WRITERS = 8, 64, 4, 2, 8  # threads
READERS_OF_ONE = 2  # at most of these for one campaign, whose state one thread reads at a time
LISTED_AT_ONCE = 4  # campaigns that are opened for a list at a time
LINES = 500  # of a download sent at once
STOPPING = 8.0  # seconds that commands under way get when the service stops
CLOSING = 1.0  # seconds more for the storage to be closed
POOL = "revar-"  # begins the names of threads that Python would wait for at its end
Result = TypeVar("Result")


class CampaignThread:
    """Carries out the waiting commands of one campaign together."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.gone = False  # others have removed the campaign
        self.readers = asyncio.Semaphore(READERS_OF_ONE)
        self._waiting: deque[tuple[Command, asyncio.Future[Reply]]] = deque()
        self._news = threading.Condition()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None  # None while there is nothing to do

    def submit(self, command: Command) -> "asyncio.Future[Reply]":
        """Have the command carried out; an error is raised. To be called from the event loop."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        with self._news:
            if self._stopped:
                raise StorageError("the service is shutting down")
            self._waiting.append((command, future))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"campaign {self.campaign.name}", daemon=True
                )
                self._thread.start()
            self._news.notify()
        return future

    def stop(self) -> threading.Thread | None:
        """Take no more commands; the thread that still carries some out, if there is one."""
        with self._news:
            self._stopped = True
            self._news.notify()
            return self._thread

    def _run(self) -> None:
        while batch := self._next_batch():
            replies: list[Reply] | Exception
            try:
                replies = self.campaign.execute([command for command, _ in batch])
            except Exception as error:  # reaches every caller of the batch
                replies = error
                self.gone = isinstance(error, MissingCampaignError)
            futures = [future for _, future in batch]
            self._loop.call_soon_threadsafe(_deliver, futures, replies)

    def _next_batch(self) -> list[tuple[Command, "asyncio.Future[Reply]"]]:
        """What is waiting, as soon as there is something; nothing where the thread may end."""
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._stopped, IDLE)
            count = min(len(self._waiting), MOST_AT_ONCE)
            if count == 0:
                self._thread = None
            return [self._waiting.popleft() for _ in range(count)]


def _deliver(futures: "list[asyncio.Future[Reply]]", replies: "list[Reply] | Exception") -> None:
    for place, future in enumerate(futures):
        if future.done():  # its caller has gone
            continue
        reply = replies if isinstance(replies, Exception) else replies[place]
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)


class CampaignThreads:
    """The campaigns of a storage that have been asked for."""

    def __init__(self, storage: Storage, metrics: Metrics) -> None:
        self.storage = storage
        self._metrics = metrics
        self._threads: dict[str, CampaignThread] = {}
        self._opening: dict[str, asyncio.Task[CampaignThread]] = {}
        self._progress: dict[str, tuple[int, int]] = {}  # events read, of how many
        self._for_lists = asyncio.Semaphore(LISTED_AT_ONCE)
        self._readers = ThreadPoolExecutor(READERS, POOL + "read")
        self._openers = ThreadPoolExecutor(OPENERS, POOL + "open")
        self._downloaders = ThreadPoolExecutor(DOWNLOADERS, POOL + "download")
        self._planners = ThreadPoolExecutor(PLANNERS, POOL + "plan")
        self._writers = ThreadPoolExecutor(WRITERS, POOL + "write")
        self._checker = ThreadPoolExecutor(1, POOL + "check")
        self._deleting: dict[str, asyncio.Task[None]] = {}

    @property
    def open(self) -> list[Campaign]:
        """The campaigns that are open."""
        return [thread.campaign for thread in self._threads.values()]

    def share_read(self, name: str) -> float | None:
        """How much of the log of a campaign that is being opened was read, where it is known."""
        read, length = self._progress.get(name, (0, 0))
        return read / length if length else None

    async def find(self, name: str) -> CampaignThread:
        """The thread of the campaign of that name, which is opened where it is not."""
        found = self._threads.get(name)
        if found is not None and not found.gone:
            return found
        opening = self._opening.get(name)
        if opening is None:
            opening = asyncio.get_running_loop().create_task(self._open(name))
            self._opening[name] = opening
            opening.add_done_callback(lambda task: self._opened(name, task))
        return await asyncio.shield(opening)

    async def read(self, name: str, reader: Callable[[Campaign], Result]) -> Result:
        """What `reader` makes of the campaign, away from the event loop."""
        return await self._ask(self._readers, name, reader)

    async def read_many(
        self, names: Iterable[str], reader: Callable[[Campaign], Result], patience: float
    ) -> dict[str, Result | Exception | None]:
        """What `reader` makes of each campaign, or why it cannot be read.

        None of those that are not open after so many seconds: that goes on.
        """
        tasks = {
            name: asyncio.get_running_loop().create_task(self._read_listed(name, reader))
            for name in names
        }
        if tasks:
            await asyncio.wait(tasks.values(), timeout=patience)
        found: dict[str, Result | Exception | None] = {}
        for name, task in tasks.items():
            if not task.done():
                task.cancel()
                found[name] = None
            else:
                problem = task.exception()
                if problem is not None and not isinstance(problem, Exception):
                    raise problem
                found[name] = problem or task.result()
        return found

    async def download(
        self, name: str, lines: Callable[[Campaign], Iterator[str]]
    ) -> AsyncIterator[str]:
        """The lines that are made of a campaign, in pieces that are made when they are due."""
        return self._pieces(await self._ask(self._downloaders, name, lines))

    async def create(self, **question: Any) -> Campaign:
        """A new campaign, by the arguments of `Campaign.create`."""
        return await self._in_pool(self._writers, lambda: Campaign.create(self.storage, **question))

    async def delete(self, name: str) -> None:
        """Remove an archived campaign for good; who asks meanwhile waits for the same."""
        deleting = self._deleting.get(name)
        if deleting is None:
            deleting = asyncio.get_running_loop().create_task(self._delete(name))
            self._deleting[name] = deleting
            deleting.add_done_callback(lambda _: self._deleting.pop(name))
        await asyncio.shield(deleting)

    async def _delete(self, name: str) -> None:
        await self._in_pool(self._writers, lambda: Campaign.delete(self.storage, name))
        self._forget(name)

    async def names(self) -> list[str]:
        """Every campaign, in the order of creation."""
        entries = await self._in_pool(self._readers, self.storage.entries)
        ids = {entry.name: entry.id for entry in entries}
        for name, thread in list(self._threads.items()):
            if ids.get(name) != thread.campaign.id:  # others have removed it
                self._forget(name)
        return list(ids)

    async def check_writable(self) -> None:
        """Raise where the storage takes nothing."""
        await self._in_pool(self._checker, self.storage.check_writable)

    async def stop(self) -> None:
        """Finish what is under way, within bounds, then close the storage."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + STOPPING
        busy = [each.stop() for each in self._threads.values()]
        closing = threading.Thread(target=self.storage.close, daemon=True)
        threads = [each for each in busy if each is not None]
        while any(each.is_alive() for each in threads) and loop.time() < ends:
            await asyncio.sleep(0.01)
        closing.start()
        while closing.is_alive() and loop.time() < ends + CLOSING:
            await asyncio.sleep(0.01)
        for pool in (
            self._readers,
            self._openers,
            self._downloaders,
            self._planners,
            self._writers,
            self._checker,
        ):
            pool.shutdown(wait=False, cancel_futures=True)

    def _forget(self, name: str) -> None:
        thread = self._threads.pop(name, None)
        if thread is not None:
            thread.stop()

    async def _open(self, name: str) -> CampaignThread:
        def note(read: int, length: int) -> None:
            self._progress[name] = read, length

        campaign = await self._in_pool(
            self._openers, lambda: Campaign.open(self.storage, name, progress=note)
        )
        campaign.plan_later = self._plan_later
        thread = self._threads[name] = CampaignThread(campaign)
        return thread

    def _plan_later(self, plan: Callable[[], None]) -> "Future[None]":
        def timed() -> None:
            with self._metrics.planning.time():
                plan()

        return self._planners.submit(timed)

    def _opened(self, name: str, task: "asyncio.Task[CampaignThread]") -> None:
        del self._opening[name]
        self._progress.pop(name, None)
        if not task.cancelled():
            task.exception()  # told to those who wait; nobody else needs to know

    async def _read_listed(self, name: str, reader: Callable[[Campaign], Result]) -> Result:
        if name not in self._threads:
            async with self._for_lists:
                await self.find(name)
        return await self.read(name, reader)

    async def _pieces(self, lines: Iterator[str]) -> AsyncIterator[str]:
        while piece := await self._in_pool(
            self._downloaders, lambda: "".join(islice(lines, LINES))
        ):
            yield piece

    async def _ask(
        self, pool: ThreadPoolExecutor, name: str, reader: Callable[[Campaign], Result]
    ) -> Result:
        found = await self.find(name)
        try:
            return await self._read_one(pool, found, reader)
        except MissingCampaignError:
            found.gone = True
        another = await self.find(name)  # of the same name, if there is one
        return await self._read_one(pool, another, reader)

    async def _read_one(
        self, pool: ThreadPoolExecutor, thread: CampaignThread, reader: Callable[[Campaign], Result]
    ) -> Result:
        await thread.readers.acquire()
        reading = asyncio.ensure_future(self._in_pool(pool, lambda: reader(thread.campaign)))
        reading.add_done_callback(lambda _: thread.readers.release())
        return await asyncio.shield(reading)  # who has gone is not waited for, but the thread is

    async def _in_pool(self, pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def threads_left(patience: float) -> list[str]:
    """The names of threads that are still at work after so many seconds, though all is stopped."""
    left = [each for each in threading.enumerate() if each.name.startswith(POOL)]
    ends = time.monotonic() + patience
    for thread in left:
        thread.join(max(0.0, ends - time.monotonic()))
    return [thread.name for thread in left if thread.is_alive()]

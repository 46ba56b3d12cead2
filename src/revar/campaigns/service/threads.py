"""The campaigns that a service has open, and the threads that work for all of them.

Reading, opening and downloading have a bounded number each, of which one campaign takes few. What
may wait for others to end their writing has threads that nothing else needs.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from revar.campaigns.campaign import Campaign
from revar.campaigns.export import StoredCampaign
from revar.campaigns.rules import CampaignError
from revar.campaigns.service.campaign_thread import CampaignThread
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.opening import Opener
from revar.campaigns.service.replies import from_first, take_lines
from revar.campaigns.storage.interface import MissingCampaignError, Storage
from revar.campaigns.stored import find_entry

READERS, OPENERS, DOWNLOADERS, PLANNERS, WRITERS = 8, 64, 4, 2, 8  # threads
LISTED_AT_ONCE = 4  # campaigns that are opened for a list at a time
FIRST_PIECE, PIECE = 2**10, 2**16  # characters of a download sent at once: few at first
# What downloads leave to others that ask meanwhile: Python runs one thread at a time.
REST = 3.0  # times as long as a piece of a download took
STOPPING = 8.0  # seconds that commands under way get when the service stops
CLOSING = 1.0  # seconds more for the storage to be closed
POOL = "revar-"  # begins the names of threads that Python would wait for at its end
Result = TypeVar("Result")


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
        self._asked = 0  # how often anybody asked for a campaign
        self._opener = Opener(storage, lambda: self._asked)

    @property
    def open(self) -> list[Campaign]:
        """The campaigns that are open."""
        return [thread.campaign for thread in self._threads.values()]

    def share_read(self, name: str) -> float | None:
        """How much of the log of a campaign that is being opened was read, where it is known."""
        read, length = self._progress.get(name, (0, 0))
        return read / length if length else None

    async def find(self, name: str, campaign_id: str | None = None) -> CampaignThread:
        """The thread of the campaign of that name, which is opened where it is not.

        Where it is to have a certain id, that of another of its name is refused.
        """
        self._asked += 1
        found = await self._find(name)
        if campaign_id in (None, found.campaign.id):
            return found
        entry = await self._in_pool(self._readers, lambda: self.storage.find(name))
        if entry is not None and entry.id == campaign_id:  # others have removed the one found
            found.gone = True
            return await self._find(name)
        raise _another_campaign(name)

    async def _find(self, name: str) -> CampaignThread:
        found = self._threads.get(name)
        if found is not None and not found.gone:
            return found
        opening = self._opening.get(name)
        if opening is None:
            opening = asyncio.get_running_loop().create_task(self._open(name))
            self._opening[name] = opening
            opening.add_done_callback(lambda task: self._opened(name, task))
        return await asyncio.shield(opening)

    async def read(
        self, name: str, reader: Callable[[Campaign], Result], campaign_id: str | None = None
    ) -> Result:
        """What `reader` makes of the campaign, away from the event loop."""
        found = await self.find(name, campaign_id)
        try:
            return await self._work(self._readers, found, found.readers, reader)
        except MissingCampaignError:
            found.gone = True
        another = await self.find(name, campaign_id)  # of the same name, if there is one
        return await self._work(self._readers, another, another.readers, reader)

    def is_open(self, name: str) -> bool:
        """Whether the campaign of that name is in memory."""
        return name in self._threads

    async def look(self, name: str, reader: Callable[[Campaign], Result], *, keep: bool) -> Result:
        """What `reader` makes of the campaign, for nobody who waits: it slows nothing else down.

        One that is not open is opened for this alone, unless it is to be kept.
        """
        if not (keep or name in self._threads or name in self._opening):
            return await self._in_pool(
                self._openers, lambda: reader(self._opener.open(name, lambda *_: None))
            )
        found = await self._find(name)
        try:
            return await self._work(self._readers, found, found.readers, reader)
        except MissingCampaignError:
            found.gone = True
            raise

    async def ask_storage(self, question: Callable[[Storage], Result]) -> Result:
        """What comes of reading in the storage."""
        return await self._in_pool(self._readers, lambda: question(self.storage))

    async def write(self, thread: CampaignThread, writer: Callable[[Campaign], Result]) -> Result:
        """What comes of work on a campaign that is no command, and may have to wait for others."""
        return await self._work(self._writers, thread, thread.writers, writer)

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
        self,
        name: str,
        lines: Callable[[StoredCampaign], Iterator[str]],
        campaign_id: str | None = None,
    ) -> AsyncIterator[str]:
        """The lines that are made of a campaign, in pieces that are made when they are due.

        It need not be open, and is not opened. Raises what keeps the first piece from being made.
        """
        self._asked += 1

        def begin() -> Iterator[str]:
            entry = find_entry(self.storage, name)
            if campaign_id not in (None, entry.id):
                raise _another_campaign(name)
            return lines(StoredCampaign(self.storage, entry))

        pieces = self._pieces(await self._in_pool(self._downloaders, begin))
        return from_first(await anext(pieces, ""), pieces)

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
        self._opener.stop()
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

        campaign = await self._in_pool(self._openers, lambda: self._opener.open(name, note))
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
        """The pieces, with rests where others ask."""
        wanted = FIRST_PIECE
        while True:
            asked = self._asked
            take = partial(take_lines, lines, wanted)
            piece, seconds = await self._in_pool(self._downloaders, take)
            if not piece:
                return
            yield piece
            if self._asked > asked:
                await asyncio.sleep(REST * seconds)
            wanted = PIECE

    async def _work(
        self,
        pool: ThreadPoolExecutor,
        thread: CampaignThread,
        places: asyncio.Semaphore,
        work: Callable[[Campaign], Result],
    ) -> Result:
        """Work on one campaign, which takes one of its places until the thread is free again."""
        await places.acquire()
        working = asyncio.ensure_future(self._in_pool(pool, lambda: work(thread.campaign)))
        working.add_done_callback(lambda _: places.release())
        return await asyncio.shield(working)  # though its caller may have gone

    async def _in_pool(self, pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def _another_campaign(name: str) -> CampaignError:
    return CampaignError(
        "another-campaign",
        f"campaign {name!r} is not the one that was opened: that one was removed, and another "
        f"has its name",
    )

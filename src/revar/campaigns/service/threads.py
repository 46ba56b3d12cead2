"""The campaigns that a service has open, each with a thread that carries out its commands.

Commands that arrive while a commit is under way wait for it and then share the next one, so that
many callers cost little more than one.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import Command, Reply
from revar.campaigns.storage.interface import Storage, StorageError

MOST_AT_ONCE = 256  # commands in one commit
Result = TypeVar("Result")


class CampaignThread:
    """Carries out the waiting commands of one campaign together."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self._waiting: deque[tuple[Command, asyncio.Future[Reply]]] = deque()
        self._news = threading.Condition()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._run, name=f"campaign {campaign.name}", daemon=True
        )
        self._thread.start()

    def submit(self, command: Command) -> "asyncio.Future[Reply]":
        """Have the command carried out; an error is raised. To be called from the event loop."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        with self._news:
            if self._stopped:
                raise StorageError("the service is shutting down")
            self._waiting.append((command, future))
            self._news.notify()
        return future

    def stop(self) -> None:
        """Carry out what is waiting, and end the thread."""
        with self._news:
            self._stopped = True
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting and not self._stopped:
                    self._news.wait()
                if not self._waiting:
                    return
                count = min(len(self._waiting), MOST_AT_ONCE)
                batch = [self._waiting.popleft() for _ in range(count)]
            replies: list[Reply] | Exception
            try:
                replies = self.campaign.execute([command for command, _ in batch])
            except Exception as error:  # reaches every caller of the batch
                replies = error
            futures = [future for _, future in batch]
            self._loop.call_soon_threadsafe(_deliver, futures, replies)


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
    """The campaigns of a storage that have been asked for, one thread each."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._threads: dict[str, CampaignThread] = {}
        self._opening = asyncio.Lock()

    async def find(self, name: str) -> CampaignThread:
        """The thread of the campaign of that name."""
        found = self._threads.get(name)
        if found is not None:
            return found
        async with self._opening:
            found = self._threads.get(name)
            if found is None:
                campaign = await asyncio.to_thread(Campaign.open, self.storage, name)
                found = self._threads[name] = CampaignThread(campaign)
            return found

    async def read(self, name: str, reader: Callable[[Campaign], Result]) -> Result:
        """What `reader` makes of the campaign, away from the event loop."""
        found = await self.find(name)
        return await asyncio.to_thread(reader, found.campaign)

    async def create(self, **question: Any) -> Campaign:
        """A new campaign, by the arguments of `Campaign.create`."""
        return await asyncio.to_thread(lambda: Campaign.create(self.storage, **question))

    async def names(self) -> list[str]:
        """Every campaign, in the order of creation."""
        entries = await asyncio.to_thread(self.storage.entries)
        return [entry.name for entry in entries]

    async def stop(self) -> None:
        """Finish what is under way, then close the storage."""
        for thread in self._threads.values():
            await asyncio.to_thread(thread.stop)
        await asyncio.to_thread(self.storage.close)

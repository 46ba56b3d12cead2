"""The thread of one campaign, which carries out all that waits together.

Commands that arrive while a commit is under way wait for it and then share the next one, so that
many callers cost little more than one. A campaign has a thread while it is asked to do something.
"""

import asyncio
import threading
from collections import deque

from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import Command, Reply
from revar.campaigns.storage.interface import MissingCampaignError, StorageError

MOST_AT_ONCE = 256  # commands in one commit
IDLE = 30.0  # seconds after which a thread ends that has nothing to do
READERS_OF_ONE = 2  # of the threads that read: the state is read by one at a time


class CampaignThread:
    """Carries out the waiting commands of one campaign together."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.gone = False  # others have removed the campaign
        self.readers = asyncio.Semaphore(READERS_OF_ONE)
        self.writers = asyncio.Semaphore(1)
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

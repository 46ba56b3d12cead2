"""How long episodes have been silent, by a clock that somebody may set.

Events carry the time of the storage's clock. Where a process sees it jump, by its own monotonic
clock, the time that it jumped over has not passed. An episode that was last heard of in what is
now the future is given one lease more, counted by the monotonic clock.
"""

from revar.campaigns.records import EpisodeRecord
from revar.campaigns.rules import SET_BACK
from revar.campaigns.state import CampaignState
from revar.campaigns.storage import Storage


class LeaseClock:
    """The time, and which leases have run out by it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._last: tuple[float, float] | None = None  # the time, by both clocks
        self._gaps: list[tuple[float, float]] = []  # times that the clock has jumped over
        self._ahead: dict[str, float] = {}  # by id: when an episode of the future was noticed

    def now(self) -> float:
        """Seconds since 1970 by the storage's clock."""
        now = self._storage.now()
        self.note(now)
        return now

    def note(self, now: float) -> None:
        """The storage's clock shows that time now."""
        counted = self._storage.monotonic()
        if self._last is not None:
            before, then = self._last
            jump = (now - before) - (counted - then)
            if jump > SET_BACK:
                self._gaps.append((now - jump, now))
            elif jump < -SET_BACK:  # what it had jumped over may pass after all
                self._gaps = [(start, end) for start, end in self._gaps if end <= now]
        self._last = now, counted

    def overdue(self, state: CampaignState) -> list[EpisodeRecord]:
        """Episodes whose lease has run out and was not taken back yet."""
        now = self.now()
        self._ahead = {each: when for each, when in self._ahead.items() if each in state.leases}
        return [record for record in state.leases.values() if self._is_overdue(state, record, now)]

    def wait(self, state: CampaignState) -> float:
        """Seconds until the next lease may run out."""
        lease, now = state.definition.lease, self.now()
        left = [lease - max(0.0, self._silence(each, now)) for each in state.leases.values()]
        return max(0.0, min(left, default=0.0))

    def _is_overdue(self, state: CampaignState, record: EpisodeRecord, now: float) -> bool:
        lease = state.definition.lease
        if now >= record.seen - SET_BACK:
            self._ahead.pop(record.id, None)
            return self._silence(record, now) >= lease
        counted = self._storage.monotonic()
        return counted - self._ahead.setdefault(record.id, counted) >= lease

    def _silence(self, record: EpisodeRecord, now: float) -> float:
        jumped = sum(max(0.0, min(end, now) - max(start, record.seen)) for start, end in self._gaps)
        return now - record.seen - jumped

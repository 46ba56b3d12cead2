"""The books: who holds a place in the budget, where each episode stands, what is due next.

Knows nothing of statistics, reads no clock, and is a function of the events that took effect.
Which those are is for `rules` to say.
"""

from dataclasses import dataclass, field

from revar.campaigns.definition import Definition
from revar.campaigns.events import (
    Acted,
    Closed,
    Event,
    Joined,
    Released,
    Rewarded,
    Started,
)


@dataclass
class Chosen:
    """The decision of one step."""

    state: bytes
    action: int
    propensity: float | None


@dataclass
class EpisodeRecord:
    """Where an episode stands."""

    id: str
    number: int
    started: float
    seen: float  # when it was last heard of: its lease counts from here
    merged: bool = False  # it needs no place: it came with its own
    steps: int = 0  # complete ones
    waiting: Chosen | None = None  # an action whose outcome is not known yet
    state: bytes | None = None  # where the next action is to be taken, if that is known
    done: list[Chosen] = field(default_factory=list)  # of complete steps, while it is open
    ended: bool = False  # by itself
    over: bool = False  # no more actions: ended, cut by the horizon, or finished
    finished: bool = False  # over with at least one step: it has used its place


class Ledger:
    """The log so far, folded."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.budget = definition.episodes
        self.episodes: dict[str, EpisodeRecord] = {}
        self.leases: dict[str, EpisodeRecord] = {}  # open episodes that hold a place
        self.finished = 0
        self.late = 0  # finished after their place had gone
        self.steps = 0
        self.closed = False
        self.joined: set[str] = set()
        self.policy: dict[bytes, tuple[float, ...]] = {
            bytes(row.state): tuple(row.probabilities) for row in definition.policy or ()
        }

    @property
    def free(self) -> int:
        """Places in the budget that nobody has used or holds."""
        return max(0, self.budget - self.finished - len(self.leases))

    @property
    def partial(self) -> int:
        """Episodes that were left with complete steps, and hold no place."""
        return sum(
            record.steps > 0 and not record.finished and record.id not in self.leases
            for record in self.episodes.values()
        )

    @property
    def spent(self) -> bool:
        """Whether nothing is left to be started, now or later."""
        return self.closed or self.finished >= self.budget

    def overdue(self, now: float) -> list[EpisodeRecord]:
        """Leases that have run out and were not taken back yet."""
        lease = self.definition.lease
        return [record for record in self.leases.values() if now >= record.seen + lease]

    def known_step(self, record: EpisodeRecord, step: int) -> Chosen | None:
        """What was decided at that step, as far as it is still known."""
        if step == record.steps and record.waiting is not None:
            return record.waiting
        return record.done[step] if 0 <= step < len(record.done) else None

    def take(self, event: Event, time: float) -> None:
        """Let an event take effect that the rules allow."""
        if isinstance(event, Started):
            self._start(event, time)
        elif isinstance(event, Closed):
            self.closed = True
        elif isinstance(event, Joined):
            self.joined.add(event.campaign)
            self.budget += event.episodes
        elif isinstance(event, Released):
            self.leases.pop(event.episode, None)
        else:
            record = self.episodes[event.episode]
            record.seen = time
            if isinstance(event, Acted):
                self._act(event, record)
            elif isinstance(event, Rewarded):
                self._reward(event, record)
            else:
                self._finish(record)

    def _start(self, event: Started, time: float) -> None:
        record = EpisodeRecord(event.episode, len(self.episodes), time, time, event.merged)
        self.episodes[record.id] = record
        if not record.merged:
            self.leases[record.id] = record

    def _act(self, event: Acted, record: EpisodeRecord) -> None:
        self._lease_again(record)
        state = bytes(event.state)
        record.waiting = Chosen(state, event.action, event.propensity)
        record.state = state
        if event.probabilities is not None:
            self.policy.setdefault(state, tuple(event.probabilities))

    def _reward(self, event: Rewarded, record: EpisodeRecord) -> None:
        chosen = record.waiting
        if chosen is None:
            raise AssertionError(f"episode {record.id} was not waiting for a reward")
        self._lease_again(record)
        record.done.append(chosen)
        record.waiting = None
        record.steps += 1
        self.steps += 1
        record.state = event.following
        record.ended = record.state is None
        if record.over:
            self._count_finished(record)
            record.done.clear()
        elif record.ended or record.steps == self.definition.horizon:
            self._finish(record)

    def _finish(self, record: EpisodeRecord) -> None:
        record.over = True
        if record.steps > 0:
            self._lease_again(record)
            self._count_finished(record)
        else:
            self.leases.pop(record.id, None)
        if record.waiting is None:
            record.done.clear()

    def _count_finished(self, record: EpisodeRecord) -> None:
        if record.finished:
            return
        record.finished = True
        self.finished += 1
        self.late += not (record.merged or record.id in self.leases)
        self.leases.pop(record.id, None)

    def _lease_again(self, record: EpisodeRecord) -> None:
        """A sign of life of an episode that had lost its place takes a free one, if there is."""
        holds = record.merged or record.id in self.leases
        if not holds and self.free > 0 and not self.closed:
            self.leases[record.id] = record

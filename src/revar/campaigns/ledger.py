"""The rules: which events take effect, who holds a place in the budget, what is due next.

Knows nothing of rewards' meaning or of statistics, reads no clock, and is a function of the log
alone. docs/campaigns.md states the same rules for people.
"""

from dataclasses import dataclass, field

from revar.campaigns.definition import Definition
from revar.campaigns.events import (
    Acted,
    Closed,
    Event,
    Finished,
    Joined,
    Released,
    Rewarded,
    Started,
)
from revar.campaigns.verdicts import REPEATED, TAKEN, Effect, Verdict, refused
from revar.model.validation import SUM_TOLERANCE


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
    def spent(self) -> bool:
        """Whether nothing is left to be started, now or later."""
        return self.closed or self.finished >= self.budget

    def overdue(self, now: float) -> list[EpisodeRecord]:
        """Leases that have run out and were not taken back yet."""
        lease = self.definition.lease
        return [record for record in self.leases.values() if now >= record.seen + lease]

    def apply(self, event: Event, time: float) -> Verdict:
        """Let the event take effect if the rules allow it."""
        verdict = self.judge(event, time)
        if verdict.effect is Effect.TAKEN:
            self._take(event, time)
        return verdict

    # -- judging ---------------------------------------------------------------------------

    def judge(self, event: Event, time: float) -> Verdict:
        """What `apply` would say; nothing changes."""
        if isinstance(event, Started):
            return self._judge_start(event)
        if isinstance(event, Closed):
            return REPEATED if self.closed else TAKEN
        if isinstance(event, Joined):
            return REPEATED if event.campaign in self.joined else TAKEN
        record = self.episodes.get(event.episode)
        if record is None:
            return refused("unknown-episode", f"there is no episode {event.episode!r}")
        if isinstance(event, Acted):
            return self._judge_action(event, record)
        if isinstance(event, Rewarded):
            return _judge_reward(event, record)
        if isinstance(event, Finished):
            return REPEATED if record.over else TAKEN
        return self._judge_release(event, record, time)

    def _judge_start(self, event: Started) -> Verdict:
        if event.episode in self.episodes:
            return REPEATED
        if event.merged:
            return TAKEN
        if self.closed:
            return refused("budget-spent", "the campaign is closed: no more episodes are started")
        if self.finished >= self.budget:
            return refused("budget-spent", f"all {self.budget} episodes are finished")
        if self.free == 0:
            return refused(
                "budget-reserved",
                f"all of the {self.budget - self.finished} episodes left are with other workers",
            )
        return TAKEN

    def _judge_action(self, event: Acted, record: EpisodeRecord) -> Verdict:
        name = f"episode {record.id!r}"
        state = bytes(event.state)
        known = self.known_step(record, event.step)
        if known is not None:
            if known.state != state:
                return refused(
                    "conflict",
                    f"step {event.step} of {name} was taken in state {_shown(known.state)}, not in "
                    f"{_shown(state)}",
                )
            return REPEATED
        if record.over:
            return refused("episode-over", f"{name} is over after {record.steps} steps")
        if record.waiting is not None:
            return refused(
                "out-of-order",
                f"{name} waits for the reward of step {record.steps} and is asked for step "
                f"{event.step}",
            )
        if event.step != record.steps:
            return refused("out-of-order", f"{name} is at step {record.steps}, not {event.step}")
        if record.state is not None and record.state != state:
            return refused(
                "conflict",
                f"{name} is in state {_shown(record.state)}, and is asked to act in state "
                f"{_shown(state)}",
            )
        if not (record.merged or record.id in self.leases or self.free > 0):
            return refused(
                "lease-lost",
                f"the lease of {name} ran out and its place in the budget has gone to another "
                f"episode; what it has completed counts",
            )
        return self._judge_policy(event, state)

    def _judge_policy(self, event: Acted, state: bytes) -> Verdict:
        known = self.policy.get(state)
        if self.definition.policy is not None:
            if event.probabilities is not None:
                return refused("invalid", "the target policy is a table: send no probabilities")
            if known is None:
                return refused("unknown-state", f"the target policy has no state {_shown(state)}")
            return TAKEN
        if event.probabilities is None:
            return refused("invalid", "the target policy's probabilities in this state are missing")
        if len(event.probabilities) != self.definition.actions:
            return refused(
                "invalid",
                f"{len(event.probabilities)} probabilities, but {self.definition.actions} actions",
            )
        if known is not None and any(
            abs(now - before) > SUM_TOLERANCE
            for now, before in zip(event.probabilities, known, strict=True)
        ):
            return refused(
                "conflict",
                f"the target policy had probabilities {list(known)} in state {_shown(state)} "
                f"before, and {event.probabilities} now; a policy under evaluation must not change",
            )
        return TAKEN

    def _judge_release(self, event: Released, record: EpisodeRecord, time: float) -> Verdict:
        if record.id not in self.leases:
            return REPEATED
        if event.reason == "expired" and time < record.seen + self.definition.lease:
            return refused("leased", f"the lease of episode {record.id!r} has been renewed")
        return TAKEN

    def known_step(self, record: EpisodeRecord, step: int) -> Chosen | None:
        """What was decided at that step, as far as it is still known."""
        if step == record.steps and record.waiting is not None:
            return record.waiting
        return record.done[step] if 0 <= step < len(record.done) else None

    # -- taking effect ---------------------------------------------------------------------

    def _take(self, event: Event, time: float) -> None:
        if isinstance(event, Started):
            self._start(event, time)
        elif isinstance(event, Closed):
            self.closed = True
        elif isinstance(event, Joined):
            self.joined.add(event.campaign)
            self.budget += event.episodes
        else:
            record = self.episodes[event.episode]
            if isinstance(event, Released):
                self._let_go(record)
                return
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
        if not record.over:
            self._lease_again(record)
        record.done.append(chosen)
        record.waiting = None
        record.steps += 1
        self.steps += 1
        record.ended = event.next_state is None
        record.state = None if event.next_state is None else bytes(event.next_state)
        if record.over:
            self._count_finished(record)
            record.done.clear()
        elif record.ended or record.steps == self.definition.horizon:
            self._finish(record)

    def _finish(self, record: EpisodeRecord) -> None:
        record.over = True
        if record.steps > 0:
            self._count_finished(record)
        else:
            self._let_go(record)
        if record.waiting is None:
            record.done.clear()

    def _count_finished(self, record: EpisodeRecord) -> None:
        if record.finished:
            return
        record.finished = True
        self.finished += 1
        self.late += not (record.merged or record.id in self.leases)
        self._let_go(record)

    def _lease_again(self, record: EpisodeRecord) -> None:
        """A sign of life of an episode that had lost its place takes a free one, if there is."""
        if not (record.merged or record.id in self.leases) and self.free > 0:
            self.leases[record.id] = record

    def _let_go(self, record: EpisodeRecord) -> None:
        self.leases.pop(record.id, None)


def _judge_reward(event: Rewarded, record: EpisodeRecord) -> Verdict:
    if 0 <= event.step < record.steps:
        return REPEATED
    if record.waiting is None or event.step != record.steps:
        return refused(
            "out-of-order",
            f"episode {record.id!r} has no action of step {event.step} that waits for its reward",
        )
    return TAKEN


def _shown(state: bytes) -> str:
    """A state in a message, not longer than a line."""
    text = state.decode()
    return text if len(text) <= 60 else f"{text[:57]}..."

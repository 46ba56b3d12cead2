"""The state of a campaign: what follows from the events of its log that took effect.

Which those are is for `rules` to say. The state reads no clock.
"""

from dataclasses import dataclass
from math import nan

from revar.campaigns.definition import Definition, new_collection
from revar.campaigns.events import Acted, Event, Finished, Merged, Released, Rewarded, Started
from revar.campaigns.progress import Progress
from revar.collection import Episode


@dataclass
class EpisodeRecord:
    """An episode of the campaign: its lease, and the collection's episode with its steps."""

    id: str
    number: int
    started: float
    seen: float  # when it was last heard of: its lease counts from here
    merged: bool  # it came with its own place in the budget
    episode: Episode | None  # None once nothing more can come of it
    finished_early: bool = False  # its caller takes no more actions
    final_steps: int = 0  # of an episode that is None

    @property
    def steps(self) -> int:
        """How many steps are complete."""
        return self.final_steps if self.episode is None else self.episode.steps

    @property
    def over(self) -> bool:
        """No more actions: it ended, was cut by the horizon, or was finished."""
        return self.finished_early or self.episode is None or self.episode.over

    @property
    def finished(self) -> bool:
        """Over with at least one step: it has used its place."""
        return self.over and self.steps > 0

    @property
    def waits(self) -> bool:
        """Whether the outcome of its last action is not known yet."""
        return self.episode is not None and self.episode.action is not None

    def decision(self, step: int) -> tuple[int, int, float] | None:
        """State, action and propensity of a step, as long as they are known."""
        episode = self.episode
        if episode is None:
            return None
        if step == episode.steps and episode.action is not None and episode.state is not None:
            return episode.state, episode.action, episode.propensity
        if 0 <= step < episode.steps:
            return episode.states[step], episode.actions[step], episode.propensities[step]
        return None


class CampaignState:
    """Budget, leases, episodes, and what was learned, up to a position of the log."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.position = 0
        self.budget = definition.episodes
        self.finished = 0  # episodes that have used their place
        self.late = 0  # finished after their place had gone
        self.steps = 0
        self.closed = False
        self.merged: set[str] = set()  # ids of campaigns that were merged into this one
        self.records: dict[str, EpisodeRecord] = {}  # by id, in the order of their numbers
        self.leases: dict[str, EpisodeRecord] = {}  # open episodes that hold a place
        self.policy: dict[bytes, tuple[float, ...]] = {
            bytes(row.state): tuple(row.probabilities) for row in definition.policy or ()
        }
        self.collection = new_collection(definition)  # states are known by their canonical bytes
        self.progress = Progress()

    @property
    def free(self) -> int:
        """Places in the budget that nobody has used or holds."""
        return max(0, self.budget - self.finished - len(self.leases))

    @property
    def partial(self) -> int:
        """Episodes that were left with complete steps, and hold no place."""
        return sum(
            record.steps > 0 and not record.finished and record.id not in self.leases
            for record in self.records.values()
        )

    @property
    def spent(self) -> bool:
        """Whether nothing is left to be started, now or later."""
        return self.closed or self.finished >= self.budget

    def overdue(self, now: float) -> list[EpisodeRecord]:
        """Episodes whose lease has run out and was not taken back yet."""
        lease = self.definition.lease
        return [record for record in self.leases.values() if now >= record.seen + lease]

    def take(self, event: Event, time: float) -> None:
        """Let an event take effect that the rules allow."""
        self.progress.saw_event(time)
        if isinstance(event, Acted):
            self._act(event, self._hear_of(event.episode, time))
        elif isinstance(event, Rewarded):
            self._reward(event, self._hear_of(event.episode, time), time)
        elif isinstance(event, Started):
            self._start(event, time)
        elif isinstance(event, Finished):
            record = self._hear_of(event.episode, time)
            record.finished_early = True
            self._finish(record, time)
        elif isinstance(event, Released):
            self.leases.pop(event.episode, None)
        elif isinstance(event, Merged):
            self.merged.add(event.campaign)
            self.budget += event.episodes
            self.collection.budget = self.budget
        else:
            self.closed = True

    def _start(self, event: Started, time: float) -> None:
        number = len(self.records)
        episode = self.collection.start(number)
        record = EpisodeRecord(event.episode, number, time, time, event.merged, episode)
        self.records[record.id] = record
        if not record.merged:
            self.leases[record.id] = record

    def _act(self, event: Acted, record: EpisodeRecord) -> None:
        self._lease_again(record)
        state = bytes(event.state)
        if event.probabilities is not None:
            self.policy.setdefault(state, tuple(event.probabilities))
        _open_episode(record).repeat(
            state,
            self.policy[state],
            event.action,
            nan if event.propensity is None else event.propensity,
            draws=event.draws,
        )

    def _reward(self, event: Rewarded, record: EpisodeRecord, time: float) -> None:
        if not record.finished:
            self._lease_again(record)
        _open_episode(record).observe(event.reward, event.following)
        self.steps += 1
        self.progress.saw_step(time)
        if record.over:
            self._finish(record, time)

    def _finish(self, record: EpisodeRecord, time: float) -> None:
        """Count an episode that is over, once; forget its steps when none can be added."""
        episode = _open_episode(record)
        if episode.steps > 0 and not episode.finished:
            self._lease_again(record)
            self.late += not (record.merged or record.id in self.leases)
            episode.finish()
            self.finished += 1
            self.progress.saw_finish(time, self.finished, self.steps, self.collection)
        self.leases.pop(record.id, None)
        if not record.waits:
            record.final_steps, record.episode = episode.steps, None

    def _hear_of(self, episode_id: str, time: float) -> EpisodeRecord:
        record = self.records[episode_id]
        record.seen = time
        return record

    def _lease_again(self, record: EpisodeRecord) -> None:
        """A sign of life of an episode that had lost its place takes a free one, if there is."""
        holds = record.merged or record.id in self.leases
        if not holds and self.free > 0 and not self.closed:
            self.leases[record.id] = record


def _open_episode(record: EpisodeRecord) -> Episode:
    if record.episode is None:
        raise AssertionError(f"nothing more can come of episode {record.id}")
    return record.episode

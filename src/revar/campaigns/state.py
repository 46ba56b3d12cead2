"""The state of a campaign: what follows from the events of its log that took effect.

`rules` says which events those are. The state reads no clock.
"""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby
from math import inf, isfinite

import msgspec

from revar.campaigns.definition import Definition, new_collection
from revar.campaigns.events import (
    AboutCampaign,
    Acted,
    Archived,
    Event,
    Extended,
    Finished,
    Merged,
    Released,
    Renewed,
    Reopened,
    Rewarded,
    Started,
)
from revar.campaigns.policies import rows_by_state, told
from revar.campaigns.precision import Precision
from revar.campaigns.records import EpisodeRecord
from revar.collection import Collection
from revar.errors import InputError
from revar.estimators.estimator import Estimate, JointEstimate
from revar.model.arrays import FloatArray
from revar.model.budget import Budget
from revar.model.trajectory import nan_for_none

PER_DECADE = 24  # points of the history for a tenfold number of episodes
WINDOW = 60  # seconds over which steps per second are counted


class CampaignState:
    """Budget, leases, episodes, and what was learned, up to a position of the log."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.has_table = definition.has_table
        self.has_amounts = bool(definition.amount_names)
        self.position = 0
        self.unreadable = 0  # events of the log that are damaged, and have no effect
        self.late = 0  # finished after their place had gone
        self.closed = False
        self.archived = False  # then it is closed, too
        self.merged: set[str] = set()  # ids of campaigns that were merged into this one
        self.extensions: set[str] = set()  # ids of what was added to the budget
        self.records: dict[str, EpisodeRecord] = {}  # by id, in the order of their numbers
        self.leases: dict[str, EpisodeRecord] = {}  # open episodes that hold a place
        self.policy = rows_by_state(definition.tables)  # and what acts have brought
        self.collection = new_collection(definition)  # states are known by their canonical bytes
        self.entered: dict[bytes, int] = {}  # states in which an action was taken, by number
        self.history = History()
        self.precision = Precision(definition.half_width, definition.confidence, self.budget)

    @property
    def budget(self) -> Budget:
        """What may be spent, with extensions and the budgets of campaigns that were merged."""
        budget = self.collection.budget
        assert budget is not None  # campaigns have one
        return budget

    @property
    def left(self) -> float:
        """What is left of the budget, in its unit."""
        return max(0.0, self.budget.amount - self.collection.spent)

    @property
    def finished(self) -> int:
        """Episodes that have used their place."""
        return self.collection.finished

    @property
    def steps(self) -> int:
        """Complete ones: all of them count."""
        return self.collection.steps

    @property
    def free(self) -> int:
        """Places in the budget that nobody has used or holds: episodes that surely fit."""
        return self.collection.affordable(len(self.leases))

    @property
    def partial(self) -> int:
        """Episodes that were left with complete steps, and hold no place."""
        return sum(
            record.steps > 0 and not record.finished and record.id not in self.leases
            for record in self.records.values()
        )

    @property
    def stopped(self) -> bool:
        """Whether no episode is to begin, whatever is left: it is closed, or precise enough."""
        return self.closed or self.precision.reached

    @property
    def spent(self) -> bool:
        """Whether nothing is left to be started, now or later."""
        return self.stopped or self.left <= 0.0

    @property
    def looks_next(self) -> bool:
        """Whether the next episode that is finished may have the estimate be looked at."""
        return self.finished + 1 >= self.history.next_point or self.precision.due < inf

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The value of one target policy; where a half-width is wanted, with all looks allowed."""
        return self.precision.widen(self.collection.estimate(confidence))

    def apply(self, event: Event, time: float) -> None:
        """Let an event take effect that the rules allow."""
        self.history.saw_event(time)
        if isinstance(event, Acted):
            self._act(event, self._hear_of(event.episode, time))
        elif isinstance(event, Rewarded):
            self._reward(event, self._hear_of(event.episode, time), time)
        elif isinstance(event, Started):
            self._start(event, time)
        elif isinstance(event, Finished):
            record = self._hear_of(event.episode, time)
            record.finished_early = True
            self.finish(record, time)
        elif isinstance(event, Released):
            self.leases.pop(event.episode, None)
        elif isinstance(event, Renewed):
            self._lease_again(self._hear_of(event.episode, time))
        else:
            self._apply_to_campaign(event)

    def _apply_to_campaign(self, event: AboutCampaign) -> None:
        if isinstance(event, Merged):
            self.merged.add(event.campaign)
            self._raise_budget(event.episodes or event.amount)
        elif isinstance(event, Extended):
            self.extensions.add(event.extension)
            self._raise_budget(event.amount)
        elif isinstance(event, Reopened):
            self.closed = self.archived = self.precision.reached = False
        else:
            self.closed = True
            self.archived = self.archived or isinstance(event, Archived)

    def _raise_budget(self, amount: float) -> None:
        self.collection.budget = self.precision.budget = self.budget.raised_by(amount)

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
        if event.probabilities is not None and state not in self.policy:
            self.policy[state] = self.definition.rows(event.probabilities)
        record.open_episode.repeat(
            state,
            told(self.policy[state]),
            event.action,
            nan_for_none(event.propensity),
            draws=event.draws,
            put_plan_off=event.put_plan_off,
        )
        self.entered[state] = self.collection.states.number(state)

    def _reward(self, event: Rewarded, record: EpisodeRecord, time: float) -> None:
        if not record.finished:
            self._lease_again(record)
        amounts = self.definition.amounts(event.cost, event.amounts)
        record.open_episode.observe(event.reward, event.following, amounts)
        self.history.saw_step(time)
        if record.over:
            self.finish(record, time)

    def finish(self, record: EpisodeRecord, time: float) -> None:
        """Count an episode that is over, once; forget its steps when none can be added."""
        episode = record.open_episode
        if episode.steps > 0 and not episode.finished:
            self._lease_again(record)
            self.late += not (record.merged or record.id in self.leases)
            episode.finish()
            self.history.saw_finish(time, self.finished, self.steps, self.collection)
            if self.collection.spent >= self.precision.due:
                self.precision.look(self.collection)
        self.leases.pop(record.id, None)
        if not record.waits:
            record.settle()

    def _hear_of(self, episode_id: str, time: float) -> EpisodeRecord:
        record = self.records[episode_id]
        record.seen = time
        return record

    def _lease_again(self, record: EpisodeRecord) -> None:
        """Give a free place to an episode that lost its own and is heard of again."""
        holds = record.merged or record.id in self.leases
        if not holds and self.free > 0 and not self.stopped:
            self.leases[record.id] = record


class HistoryPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """The estimate at some time. An error that is not known yet is None.

    Of several target policies it is that of the leader, and all of them follow.
    """

    time: float
    episodes: int
    steps: int
    value: float
    standard_error: float | None
    unvisited_probability: float
    values: list[float] | None = None  # [J]
    covariance: list[list[float | None]] | None = None  # of these, up to its diagonal


class History:
    """Estimates, log-spaced in finished episodes, and steps second by second."""

    def __init__(self) -> None:
        self.points: list[HistoryPoint] = []
        self.next_point = 1  # the number of episodes at which the next point is due
        self.first_event: float | None = None  # its time
        self.last_event: float | None = None
        self.seconds: deque[tuple[int, int]] = deque(maxlen=WINDOW + 1)  # (second, steps in it)

    def saw_event(self, time: float) -> None:
        """Something happened at that time."""
        if self.first_event is None:
            self.first_event = time
        self.last_event = max(time, self.last_event or time)

    def saw_step(self, time: float) -> None:
        """A step was completed at that time."""
        self._count_steps(int(time), 1)

    def saw_steps(self, times: Iterable[float]) -> None:
        """Steps were completed at these times, one after the other."""
        for second, steps in groupby(map(int, times)):
            self._count_steps(second, len(list(steps)))

    def _count_steps(self, second: int, steps: int) -> None:
        if self.seconds and self.seconds[-1][0] >= second:
            latest, count = self.seconds[-1]
            self.seconds[-1] = (latest, count + steps)
        else:
            self.seconds.append((second, steps))

    def saw_finish(self, time: float, episodes: int, steps: int, collection: Collection) -> None:
        """An episode was finished: note the estimate where it is time to."""
        if episodes < self.next_point:
            return
        self.next_point = max(episodes + 1, int(episodes * 10 ** (1 / PER_DECADE)))
        with suppress(InputError):  # while the data says nothing yet
            joint = collection.joint_estimate()
            found = joint if len(collection.states.names) > 1 else joint.value_of(0)
            self.points.append(history_point(time, episodes, steps, found))

    def steps_per_second(self, now: float) -> float:
        """Over the last minute, or since the first event if that is shorter."""
        if self.first_event is None:
            return 0.0
        since = now - WINDOW
        recent = sum(count for second, count in self.seconds if second > since)
        return recent / max(1.0, min(float(WINDOW), now - self.first_event))


def history_point(
    time: float, episodes: int, steps: int, found: Estimate | JointEstimate
) -> HistoryPoint:
    """What was found at that time: the value of one target policy, or those of several."""
    values = covariance = None
    if isinstance(found, Estimate):
        leader = found
    else:
        leader = found.value_of(int(found.values.argmax()))
        values, covariance = found.values.tolist(), lower_triangle(found.covariance)
    return HistoryPoint(
        time,
        episodes,
        steps,
        leader.value,
        _finite(leader.standard_error),
        leader.unvisited_probability,
        values,
        covariance,
    )


def lower_triangle(covariance: FloatArray) -> list[list[float | None]]:
    """The rows of a covariance up to the diagonal; what is not known yet is None."""
    return [[_finite(x) for x in row[: j + 1]] for j, row in enumerate(covariance.tolist())]


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None

"""Data out of a campaign: as a dataset, as JSON lines, as CSV."""

import csv
import io
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from revar.campaigns.definition import Definition
from revar.campaigns.events import Acted, Event, Finished, Rewarded, Unreadable, decode_state
from revar.campaigns.folding import events_in_effect
from revar.campaigns.log import Progress, read_events
from revar.campaigns.storage import Storage
from revar.campaigns.storage.interface import Entry
from revar.campaigns.stored import empty_state, refuse_damage
from revar.model.trajectory import ENDED, Dataset, Trajectory, nan_for_none

FORMATS = ("jsonl", "csv")


@dataclass(frozen=True)
class Step:
    """One complete step."""

    step: int
    state: bytes
    action: int
    propensity: float | None
    reward: float
    next_state: bytes | None
    time: float
    cost: float | None = None  # where the budget is of cost
    amounts: Mapping[str, float] | None = None  # of limited sums, by name


@dataclass
class ExportedEpisode:
    """An episode with its complete steps."""

    id: str
    number: int
    complete: bool = False  # it ended, or reached the horizon
    steps: list[Step] = field(default_factory=list)

    def add(self, acted: Acted, rewarded: Rewarded, time: float, horizon: int) -> None:
        """The next step, of both its events."""
        self.steps.append(
            Step(
                rewarded.step,
                bytes(acted.state),
                acted.action,
                acted.propensity,
                rewarded.reward,
                rewarded.following,
                time,
                rewarded.cost,
                rewarded.amounts,
            )
        )
        self.complete = rewarded.following is None or rewarded.step + 1 == horizon


def export_episodes(
    definition: Definition, events: Iterable[tuple[float, Event | Unreadable]]
) -> Iterator[ExportedEpisode]:
    """Episodes with complete steps, each as soon as nothing more can come of it.

    Those from which more may come follow at the end. Events without effect are left out. Only
    episodes that are open are kept in memory with their steps.
    """
    waiting: dict[str, Acted] = {}
    under_way: dict[str, ExportedEpisode] = {}
    for time, event, state in events_in_effect(definition, events):
        if isinstance(event, Acted):
            waiting[event.episode] = event
        elif isinstance(event, Rewarded):
            acted = waiting.pop(event.episode)
            number = state.records[event.episode].number
            episode = under_way.setdefault(event.episode, ExportedEpisode(event.episode, number))
            episode.add(acted, event, time, definition.horizon)
        if isinstance(event, Rewarded | Finished) and state.records[event.episode].episode is None:
            waiting.pop(event.episode, None)
            if event.episode in under_way:
                yield under_way.pop(event.episode)
    yield from sorted(under_way.values(), key=lambda episode: episode.number)


def dataset_of(
    definition: Definition, episodes: Iterable[ExportedEpisode], *, partial: bool
) -> Dataset:
    """Complete episodes, or with `partial` every complete step; labels say what the states are."""
    numbers: dict[bytes, int] = {}

    def number(state: bytes | None) -> int:
        return ENDED if state is None else numbers.setdefault(state, len(numbers))

    ordered = sorted(episodes, key=lambda episode: episode.number)
    chosen = [episode for episode in ordered if episode.complete or partial]
    trajectories = [
        Trajectory.of(
            [number(step.state) for step in episode.steps],
            [step.action for step in episode.steps],
            [step.reward for step in episode.steps],
            last_successor=number(episode.steps[-1].next_state),
            propensities=[nan_for_none(step.propensity) for step in episode.steps],
        )
        for episode in chosen
    ]
    steps = [step for episode in chosen for step in episode.steps]
    names = definition.amount_names
    amounts = np.array([definition.amounts(step.cost, step.amounts) for step in steps])
    columns = np.ascontiguousarray(amounts.reshape(len(steps), len(names)).T)
    dataset = Dataset.of(trajectories, tuple(state_label(state) for state in numbers))
    return replace(
        dataset,
        action_count=definition.actions,
        amounts=dict(zip(names, columns, strict=True)),
    )


def state_label(state: bytes) -> Hashable:
    """A state as Python sees it: arrays as tuples, objects as their JSON text."""
    value = decode_state(state)
    if isinstance(value, dict):
        return state.decode()
    return _freeze(value)


def export_text(
    definition: Definition, events: Iterable[tuple[float, Event | Unreadable]], form: str
) -> Iterator[str]:
    """The complete steps as text, piece by piece: one episode a line, or one step a row.

    Episodes come in the order in which they ended; see `export_episodes`.
    """
    episodes = export_episodes(definition, events)
    return _json_lines(episodes) if form == "jsonl" else _rows(definition, episodes)


class StoredCampaign:
    """A campaign as its storage has it: all that an export needs, of which nothing is replayed.

    `progress` is called while the log is read; see `Campaign.open`.
    """

    def __init__(self, storage: Storage, entry: Entry, progress: Progress | None = None) -> None:
        self.definition = empty_state(entry).definition
        self._storage, self._entry, self._progress = storage, entry, progress

    def export_text(self, form: str) -> Iterator[str]:
        """See `export_text`."""
        with refuse_damage(self._entry):
            yield from export_text(self.definition, self._events(), form)

    def dataset(self) -> Dataset:
        """The complete episodes."""
        with refuse_damage(self._entry):
            episodes = export_episodes(self.definition, self._events())
            return dataset_of(self.definition, episodes, partial=False)

    def _events(self) -> Iterator[tuple[float, Event | Unreadable]]:
        return read_events(self._storage, self._entry, progress=self._progress)


class _StepLine(msgspec.Struct, frozen=True):
    state: msgspec.Raw
    action: int
    propensity: float | None
    reward: float
    next_state: msgspec.Raw
    time: float
    cost: float | None = None
    amounts: dict[str, float] | None = None


class _EpisodeLine(msgspec.Struct, frozen=True):
    episode: str
    number: int
    complete: bool
    steps: list[_StepLine]


def read_json_lines(text: bytes) -> list[ExportedEpisode]:
    """The episodes that `export_text` wrote as JSON lines."""
    decode = msgspec.json.Decoder(_EpisodeLine).decode
    return [_read_episode(decode(line)) for line in io.BytesIO(text)]


def _read_episode(line: _EpisodeLine) -> ExportedEpisode:
    steps = [
        Step(
            number,
            bytes(step.state),
            step.action,
            step.propensity,
            step.reward,
            None if bytes(step.next_state) == b"null" else bytes(step.next_state),
            step.time,
            step.cost,
            step.amounts,
        )
        for number, step in enumerate(line.steps)
    ]
    return ExportedEpisode(line.episode, line.number, line.complete, steps)


def _json_lines(episodes: Iterable[ExportedEpisode]) -> Iterator[str]:
    for episode in episodes:
        record = {
            "episode": episode.id,
            "number": episode.number,
            "complete": episode.complete,
            "steps": [
                {
                    "state": msgspec.Raw(step.state),
                    "action": step.action,
                    "propensity": step.propensity,
                    "reward": step.reward,
                    "next_state": msgspec.Raw(step.next_state or b"null"),
                    "time": step.time,
                    **_told(step),
                }
                for step in episode.steps
            ],
        }
        yield msgspec.json.encode(record).decode() + "\n"


def _told(step: Step) -> dict[str, Any]:
    """What the reward of a step told besides, as its message had it."""
    told = {"cost": step.cost, "amounts": step.amounts}
    return {name: value for name, value in told.items() if value is not None}


COLUMNS = (
    "episode",
    "number",
    "complete",
    "step",
    "state",
    "action",
    "propensity",
    "reward",
    "next_state",
    "time",
)


def _rows(definition: Definition, episodes: Iterable[ExportedEpisode]) -> Iterator[str]:
    paid = definition.budget is not None
    names = definition.limited_sums
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")

    def line(values: tuple[Any, ...]) -> str:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(values)
        return buffer.getvalue()

    yield line((*COLUMNS, *(["cost"] * paid), *(f"amounts.{name}" for name in names)))
    for episode in episodes:
        for step in episode.steps:
            yield line(
                (
                    episode.id,
                    episode.number,
                    str(episode.complete).lower(),
                    step.step,
                    step.state.decode(),
                    step.action,
                    "" if step.propensity is None else step.propensity,
                    step.reward,
                    "" if step.next_state is None else step.next_state.decode(),
                    step.time,
                    *definition.amounts(step.cost, step.amounts),
                )
            )


def _freeze(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_freeze(item) for item in value)
    if isinstance(value, dict):
        return msgspec.json.encode(value, order="sorted").decode()
    hashable: Hashable = value
    return hashable

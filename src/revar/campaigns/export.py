"""Data out of a campaign: as a dataset, as JSON lines, as CSV."""

import csv
import io
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from revar.campaigns.definition import Definition
from revar.campaigns.events import Event, Rewarded
from revar.campaigns.ledger import Ledger
from revar.campaigns.rules import apply
from revar.campaigns.values import parsed
from revar.campaigns.verdicts import Effect
from revar.model.trajectory import ENDED, Dataset, Trajectory

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


@dataclass
class Told:
    """An episode as it was reported."""

    id: str
    number: int
    complete: bool = False  # it ended, or reached the horizon
    steps: list[Step] = field(default_factory=list)


def episodes_of(definition: Definition, events: Iterable[tuple[float, Event]]) -> list[Told]:
    """Every episode with complete steps, by number; events without effect are left out."""
    ledger = Ledger(definition)
    told: dict[str, Told] = {}
    for time, event in events:
        waiting = None
        if isinstance(event, Rewarded) and event.episode in ledger.episodes:
            waiting = ledger.episodes[event.episode].waiting
        if apply(ledger, event, time).effect is not Effect.TAKEN or not isinstance(event, Rewarded):
            continue
        if waiting is None:
            raise AssertionError(f"a reward of episode {event.episode} without an action")
        record = ledger.episodes[event.episode]
        episode = told.setdefault(record.id, Told(record.id, record.number))
        episode.steps.append(
            Step(
                event.step,
                waiting.state,
                waiting.action,
                waiting.propensity,
                event.reward,
                event.following,
                time,
            )
        )
        episode.complete = record.ended or record.steps == definition.horizon
    return sorted(told.values(), key=lambda episode: episode.number)


def dataset_of(
    definition: Definition, events: Iterable[tuple[float, Event]], *, partial: bool
) -> Dataset:
    """Complete episodes, or with `partial` every complete step; labels say what the states are."""
    numbers: dict[bytes, int] = {}

    def number(state: bytes | None) -> int:
        return ENDED if state is None else numbers.setdefault(state, len(numbers))

    trajectories = [
        Trajectory.of(
            [number(step.state) for step in episode.steps],
            [step.action for step in episode.steps],
            [step.reward for step in episode.steps],
            last_successor=number(episode.steps[-1].next_state),
            propensities=[
                float("nan") if step.propensity is None else step.propensity
                for step in episode.steps
            ],
        )
        for episode in episodes_of(definition, events)
        if episode.complete or partial
    ]
    dataset = Dataset.of(trajectories, tuple(label(state) for state in numbers))
    return replace(dataset, action_count=definition.actions)


def label(state: bytes) -> Hashable:
    """A state as Python sees it: arrays as tuples, objects as their JSON text."""
    value = parsed(state)
    if isinstance(value, dict):
        return state.decode()
    return _frozen(value)


def exported(
    definition: Definition, events: Iterable[tuple[float, Event]], form: str
) -> Iterator[str]:
    """The complete steps as text, piece by piece: one episode a line, or one step a row."""
    episodes = episodes_of(definition, events)
    return _json_lines(episodes) if form == "jsonl" else _rows(episodes)


def _json_lines(episodes: list[Told]) -> Iterator[str]:
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
                }
                for step in episode.steps
            ],
        }
        yield msgspec.json.encode(record).decode() + "\n"


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


def _rows(episodes: list[Told]) -> Iterator[str]:
    yield _csv_line(COLUMNS)
    for episode in episodes:
        for step in episode.steps:
            yield _csv_line(
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
                )
            )


def _csv_line(values: tuple[Any, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def _frozen(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return msgspec.json.encode(value, order="sorted").decode()
    hashable: Hashable = value
    return hashable

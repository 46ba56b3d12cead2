"""What the log of a campaign holds, as JSON: events, and states in their canonical form.

An event says what somebody asks for or reports. Whether it takes effect follows from the events
before it (see `rules`), so an event that stands in the log twice does no harm.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, Literal, TypeAlias

import msgspec

from revar.errors import InputError
from revar.model.budget import Budget

# Probabilities that come with an act: those of the target policy, or of several by their names.
Sent: TypeAlias = list[float] | dict[str, list[float]]

DEEPEST = 32  # levels of arrays and objects within a state
LARGEST = 16_384  # bytes of a state in its canonical form


class Started(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="started"):
    """An episode asks for a place in the budget. One that was merged needs none."""

    episode: str
    merged: bool = False


class Acted(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="acted"):
    """An action was chosen. `draws` is how far that took the episode's random stream.

    With `put_plan_off` it was chosen by the plan in force, though another was due: that one is made
    of what was known at the first such event, and put in force by the next act without this mark.
    """

    episode: str
    step: int
    state: msgspec.Raw
    action: int
    propensity: float | None = None
    draws: int = 0
    probabilities: Sent | None = None
    merged: bool = False  # it came from another campaign, and needs no place in the budget
    put_plan_off: bool = False


class Rewarded(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="rewarded"):
    """What the action of that step led to; with null for the next state the episode ended.

    `cost` is what the step took from a budget of cost, `amounts` what it added to limited sums.
    """

    episode: str
    step: int
    reward: float
    next_state: msgspec.Raw
    cost: float | None = None
    amounts: dict[str, float] | None = None

    @property
    def following(self) -> bytes | None:
        """The next state in its canonical form, None where there is none."""
        state = bytes(self.next_state)
        return None if state == b"null" else state


class Finished(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="finished"):
    """Nothing more will come of an episode, and it has used its place in the budget."""

    episode: str


class Released(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="released"):
    """An episode gives its place back: its lease ran out, or its caller gave up."""

    episode: str
    reason: Literal["expired", "abandoned"] = "expired"


# "joined" is the tag that logs have always had.
class Merged(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="joined"):
    """Another campaign about the same question was merged into this one, with its budget.

    That is in episodes, or an `amount` of another unit, which is this campaign's too.
    """

    campaign: str
    episodes: int = 0
    amount: int | float = 0

    @classmethod
    def of(cls, campaign: str, budget: Budget) -> "Merged":
        """The event that a campaign with that budget was merged."""
        if budget.by_episode:
            return cls(campaign, episodes=int(budget.amount))
        return cls(campaign, amount=budget.amount)


class Renewed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="renewed"):
    """A sign of life: an episode keeps its place, though nothing else is to be told of it."""

    episode: str


class Extended(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="extended"):
    """The budget grows by so much of its unit; the same extension counts once."""

    extension: str
    amount: int | float


class Reopened(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="reopened"):
    """Episodes may be started again, after it was closed, archived, or precise enough."""


class Archived(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="archived"):
    """It is closed, and kept for reading: lists leave it out."""


class Closed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="closed"):
    """No more episodes are to be started."""


AboutEpisode: TypeAlias = Started | Acted | Rewarded | Finished | Released | Renewed
AboutCampaign: TypeAlias = Merged | Extended | Closed | Reopened | Archived
Event: TypeAlias = AboutEpisode | AboutCampaign


class Unreadable(msgspec.Struct, frozen=True):
    """Stands for an entry of a log that is damaged. It has no effect, whoever reads it."""

    reason: str


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """The event as it stands in a log."""
    return _ENCODER.encode(event)


def decode_event(body: bytes) -> Event | Unreadable:
    """The event that stands in a log; one that cannot be read is said to be that."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return Unreadable(str(error))


def decode_events(bodies: Sequence[bytes]) -> Sequence[Event | Unreadable]:
    """The events that stand in a log, one after the other."""
    try:
        events = _DECODER.decode_lines(b"\n".join(bodies))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        events = []
    return events if len(events) == len(bodies) else [decode_event(body) for body in bodies]


def encode_state(value: Any, name: str = "state") -> bytes:
    """The value as JSON bytes: keys sorted, 1.0 written as 1, tuples as arrays, no spaces.

    Two states are the same state if and only if these bytes are equal.
    """
    if value is None:
        raise InputError(f"{name} is null, which stands for the end of the episode")
    plain = _plain(value, name, 0)
    try:
        text = msgspec.json.encode(plain, order="sorted")
    except UnicodeEncodeError:
        raise InputError(f"{name} holds text that is not valid unicode") from None
    except ValueError:  # Python writes no whole number of more than some thousand digits
        raise InputError(f"{name} holds a whole number of too many digits") from None
    if len(text) > LARGEST:
        raise InputError(
            f"{name} takes {len(text):,} bytes as JSON; at most {LARGEST:,} are allowed"
        )
    return text


def decode_state(text: bytes) -> Any:
    """The value that `encode_state` wrote."""
    return msgspec.json.decode(text)


def _plain(value: Any, name: str, depth: int) -> Any:
    """The value in dictionaries, lists, texts and numbers of one form."""
    if depth > DEEPEST:
        raise InputError(f"{name} is nested deeper than {DEEPEST} levels")
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value  # a text of NumPy's, too
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise InputError(f"{name} holds the number {value}; JSON has finite numbers only")
        return int(value) if value == int(value) else float(value)
    if isinstance(value, dict):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            raise InputError(f"{name} has the key {wrong!r}; keys of a JSON object are texts")
        return {str(key): _plain(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, name, depth + 1) for item in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist(), name, depth)
    raise InputError(f"{name} holds {type(value).__name__}, which JSON cannot represent")

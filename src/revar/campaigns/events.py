"""What can happen in a campaign. The log holds these, as JSON, and nothing else.

An event says what somebody asks for or reports. Whether it takes effect follows from the events
before it: see `ledger`. So the same event may stand in a log twice, and does no harm.
"""

from typing import Literal, TypeAlias

import msgspec


class Started(msgspec.Struct, frozen=True, omit_defaults=True, tag="started"):
    """An episode asks for a place in the budget. One that was merged needs none."""

    episode: str
    merged: bool = False


class Acted(msgspec.Struct, frozen=True, omit_defaults=True, tag="acted"):
    """An action was chosen. `draws` is how far that took the episode's random stream."""

    episode: str
    step: int
    state: msgspec.Raw
    action: int
    propensity: float | None = None
    draws: int = 0
    probabilities: list[float] | None = None
    merged: bool = False  # reported by another campaign: it needs no place in the budget


class Rewarded(msgspec.Struct, frozen=True, omit_defaults=True, tag="rewarded"):
    """What the action of that step led to; with null for the next state the episode ended."""

    episode: str
    step: int
    reward: float
    next_state: msgspec.Raw

    @property
    def following(self) -> bytes | None:
        """The next state in its canonical form, None where there is none."""
        state = bytes(self.next_state)
        return None if state == b"null" else state


class Finished(msgspec.Struct, frozen=True, omit_defaults=True, tag="finished"):
    """Nothing more will come of an episode, and it has used its place in the budget."""

    episode: str


class Released(msgspec.Struct, frozen=True, omit_defaults=True, tag="released"):
    """An episode gives its place back: its lease ran out, or its worker gave up."""

    episode: str
    reason: Literal["expired", "abandoned"] = "expired"


class Joined(msgspec.Struct, frozen=True, omit_defaults=True, tag="joined"):
    """Another campaign about the same question was merged into this one, with its budget."""

    campaign: str
    episodes: int


class Closed(msgspec.Struct, frozen=True, omit_defaults=True, tag="closed"):
    """No more episodes are to be started."""


Event: TypeAlias = Started | Acted | Rewarded | Finished | Released | Joined | Closed

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encoded(event: Event) -> bytes:
    """The event as it stands in a log."""
    return _ENCODER.encode(event)


def decoded(body: bytes) -> Event:
    """The event that stands in a log."""
    return _DECODER.decode(body)

"""The rules: which events take effect, judged by the events before them.

docs/campaigns.md states the same rules for people.
"""

from collections.abc import Callable
from typing import Any

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
from revar.campaigns.ledger import EpisodeRecord, Ledger
from revar.campaigns.verdicts import REPEATED, TAKEN, Effect, Verdict, refused
from revar.model.validation import SUM_TOLERANCE


def apply(ledger: Ledger, event: Event, time: float) -> Verdict:
    """Let the event take effect if the rules allow it."""
    verdict = judge(ledger, event, time)
    if verdict.effect is Effect.TAKEN:
        ledger.take(event, time)
    return verdict


def judge(ledger: Ledger, event: Event, time: float) -> Verdict:
    """What `apply` would say; nothing changes."""
    if isinstance(event, Started | Closed | Joined):
        return _ABOUT_CAMPAIGN[type(event)](ledger, event)
    record = ledger.episodes.get(event.episode)
    if record is None:
        return refused("unknown-episode", f"there is no episode {event.episode!r}")
    if isinstance(event, Released):
        return _judge_release(ledger, event, record, time)
    return _ABOUT_EPISODE[type(event)](ledger, event, record)


def _judge_start(ledger: Ledger, event: Started) -> Verdict:
    if event.episode in ledger.episodes:
        return REPEATED
    if event.merged or (ledger.free > 0 and not ledger.spent):
        return TAKEN
    if ledger.closed:
        return refused("budget-spent", "the campaign is closed: no more episodes are started")
    if ledger.spent:
        return refused("budget-spent", f"all {ledger.budget} episodes are finished")
    return refused(
        "budget-reserved",
        f"all of the {ledger.budget - ledger.finished} episodes left are with other workers",
    )


def _judge_close(ledger: Ledger, event: Closed) -> Verdict:  # noqa: ARG001 - as all judges are called
    return REPEATED if ledger.closed else TAKEN


def _judge_join(ledger: Ledger, event: Joined) -> Verdict:
    return REPEATED if event.campaign in ledger.joined else TAKEN


def _judge_action(ledger: Ledger, event: Acted, record: EpisodeRecord) -> Verdict:
    state = bytes(event.state)
    known = ledger.known_step(record, event.step)
    if known is not None:
        if known.state == state:
            return REPEATED
        return refused(
            "conflict",
            f"step {event.step} of episode {record.id!r} was taken in state "
            f"{shown(known.state)}, not in {shown(state)}",
        )
    return (
        _out_of_order(event, record)
        or _elsewhere(state, record)
        or _without_lease(ledger, event, record)
        or _against_policy(ledger, event, state)
        or TAKEN
    )


def _out_of_order(event: Acted, record: EpisodeRecord) -> Verdict | None:
    name = f"episode {record.id!r}"
    if record.over:
        return refused("episode-over", f"{name} is over after {record.steps} steps")
    if record.waiting is not None:
        return refused(
            "out-of-order",
            f"{name} waits for the reward of step {record.steps}, and is asked for step "
            f"{event.step}",
        )
    if event.step != record.steps:
        return refused("out-of-order", f"{name} is at step {record.steps}, not at {event.step}")
    return None


def _elsewhere(state: bytes, record: EpisodeRecord) -> Verdict | None:
    if record.state in (None, state):
        return None
    return refused(
        "conflict",
        f"episode {record.id!r} is in state {shown(record.state or b'')}, and is asked to act in "
        f"state {shown(state)}",
    )


def _without_lease(ledger: Ledger, event: Acted, record: EpisodeRecord) -> Verdict | None:
    may_take_one = ledger.free > 0 and not ledger.closed
    if event.merged or record.merged or record.id in ledger.leases or may_take_one:
        return None
    return refused(
        "lease-lost",
        f"the lease of episode {record.id!r} ran out and its place in the budget is gone; what it "
        f"has completed counts",
    )


def _against_policy(ledger: Ledger, event: Acted, state: bytes) -> Verdict | None:
    actions, sent = ledger.definition.actions, event.probabilities
    known = ledger.policy.get(state)
    refusal: Verdict | None = None
    if not 0 <= event.action < actions:
        refusal = refused("invalid", f"action {event.action} of {actions}")
    elif ledger.definition.policy is not None:
        if sent is not None:
            refusal = refused("invalid", "the target policy is a table: send no probabilities")
        elif known is None:
            refusal = refused("unknown-state", f"the target policy has no state {shown(state)}")
    elif sent is None:
        refusal = refused("invalid", "the target policy's probabilities in this state are missing")
    elif len(sent) != actions:
        refusal = refused("invalid", f"{len(sent)} probabilities, but {actions} actions")
    elif known is not None and max(map(_distance, sent, known)) > SUM_TOLERANCE:
        refusal = refused(
            "conflict",
            f"the target policy had probabilities {list(known)} in state {shown(state)} before, "
            f"and {sent} now; a policy under evaluation must not change",
        )
    return refusal


def _judge_reward(ledger: Ledger, event: Rewarded, record: EpisodeRecord) -> Verdict:  # noqa: ARG001 - as all judges are called
    if 0 <= event.step < record.steps:
        return REPEATED
    if record.waiting is None or event.step != record.steps:
        return refused(
            "out-of-order",
            f"episode {record.id!r} has no action of step {event.step} that waits for its reward",
        )
    return TAKEN


def _judge_finish(ledger: Ledger, event: Finished, record: EpisodeRecord) -> Verdict:  # noqa: ARG001 - as all judges are called
    return REPEATED if record.over else TAKEN


def _judge_release(ledger: Ledger, event: Released, record: EpisodeRecord, time: float) -> Verdict:
    if record.id not in ledger.leases:
        return REPEATED
    if event.reason == "expired" and time < record.seen + ledger.definition.lease:
        return refused("leased", f"the lease of episode {record.id!r} has been renewed")
    return TAKEN


_ABOUT_CAMPAIGN: dict[type, Callable[[Ledger, Any], Verdict]] = {
    Started: _judge_start,
    Closed: _judge_close,
    Joined: _judge_join,
}
_ABOUT_EPISODE: dict[type, Callable[[Ledger, Any, EpisodeRecord], Verdict]] = {
    Acted: _judge_action,
    Rewarded: _judge_reward,
    Finished: _judge_finish,
}


def shown(state: bytes) -> str:
    """A state in a message, not longer than a line."""
    text = state.decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def _distance(one: float, other: float) -> float:
    return abs(one - other)

"""The rules: which events take effect, judged by the events before them.

docs/campaigns.md states the same rules for people.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.events import (
    Acted,
    Closed,
    Event,
    Merged,
    Released,
    Rewarded,
    Sent,
    Started,
)
from revar.campaigns.limits import refuse_forbidden
from revar.campaigns.policies import misnamed
from revar.campaigns.state import CampaignState, EpisodeRecord
from revar.campaigns.text import quoted
from revar.errors import InputError, RefusedError
from revar.model.validation import SUM_TOLERANCE


class Effect(Enum):
    """What an event does."""

    TAKEN = "taken"
    REPEATED = "repeated"  # it had taken effect before
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """An effect; a refusal says why, by a code for programs and a sentence for people."""

    effect: Effect
    code: str = ""
    reason: str = ""


TAKEN = Verdict(Effect.TAKEN)
REPEATED = Verdict(Effect.REPEATED)


def refusal(code: str, reason: str) -> Verdict:
    """The verdict that the event changes nothing."""
    return Verdict(Effect.REFUSED, code, reason)


class CampaignError(RefusedError):
    """A campaign does not do what was asked; `code` says why."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class UnknownCampaignError(CampaignError):
    """There is no campaign of that name."""

    def __init__(self, name: str) -> None:
        super().__init__("unknown-campaign", f"there is no campaign {name!r}")


class BudgetSpentError(CampaignError):
    """The budget is spent, or the campaign was closed: there is nothing left to do."""


class BudgetReservedError(CampaignError):
    """Other workers hold all that is left; something may come free after `retry_after`."""

    def __init__(self, code: str, reason: str, retry_after: float) -> None:
        super().__init__(code, reason)
        self.retry_after = retry_after


def replay(state: CampaignState, position: int, time: float, event: Event) -> Verdict:
    """Judge the next event of the log, and apply it to the state if it takes effect."""
    if position != state.position + 1:
        raise AssertionError(f"event {position} follows on event {state.position}")
    state.position = position
    verdict = judge(state, event, time)
    if verdict.effect is Effect.TAKEN:
        state.apply(event, time)
    return verdict


def events_in_effect(
    definition: Definition, events: Iterable[tuple[float, Event]]
) -> Iterator[tuple[float, Event, CampaignState]]:
    """The events of a log that took effect: the time, the event, and the state after it.

    That does not depend on the strategy, so the state is one of a strategy that costs nothing.
    """
    strategy = StrategyRecord("on-policy")
    state = CampaignState(msgspec.structs.replace(definition, strategy=strategy))
    state.history.next_point = sys.maxsize  # nobody asks for it
    for position, (time, event) in enumerate(events, 1):
        if replay(state, position, time, event).effect is Effect.TAKEN:
            yield time, event, state


def judge(state: CampaignState, event: Event, time: float) -> Verdict:
    """What `replay` would say; nothing changes."""
    if isinstance(event, Started | Closed | Merged):
        return _ABOUT_CAMPAIGN[type(event)](state, event)
    record = state.records.get(event.episode)
    if record is None:
        return refusal("unknown-episode", f"there is no episode {event.episode!r}")
    if isinstance(event, Acted):
        return _judge_action(state, event, record)
    if isinstance(event, Rewarded):
        return _judge_reward(state, event, record)
    if isinstance(event, Released):
        return _judge_release(state, event, record, time)
    return REPEATED if record.over else TAKEN


def _judge_start(state: CampaignState, event: Started) -> Verdict:
    if event.episode in state.records:
        return REPEATED
    if event.merged or (state.free > 0 and not state.spent):
        return TAKEN
    if state.closed:
        return refusal("budget-spent", "the campaign is closed: no more episodes are started")
    budget, left = state.budget, state.left
    if budget.by_episode:
        spent = f"all {budget.amount} episodes are finished"
        reserved = f"all of the {round(left)} episodes left are with other workers"
    else:
        spent = f"the budget, {budget.text(budget.amount)}, is spent"
        reserved = f"what is left, {budget.text(left)}, is reserved for episodes of other workers"
    if state.spent:
        return refusal("budget-spent", spent)
    return refusal("budget-reserved", reserved)


def _judge_close(state: CampaignState, event: Closed) -> Verdict:  # noqa: ARG001 - as judges are called
    return REPEATED if state.closed else TAKEN


def _judge_merge(state: CampaignState, event: Merged) -> Verdict:
    return REPEATED if event.campaign in state.merged else TAKEN


_ABOUT_CAMPAIGN: dict[type, Callable[[CampaignState, Any], Verdict]] = {
    Started: _judge_start,
    Closed: _judge_close,
    Merged: _judge_merge,
}


def _judge_action(state: CampaignState, event: Acted, record: EpisodeRecord) -> Verdict:
    key = bytes(event.state)
    taken = record.decision(event.step)
    if taken is not None:
        before = state.collection.states[taken[0]]
        if before == key:
            return REPEATED
        return refusal(
            "conflict",
            f"step {event.step} of episode {record.id!r} was taken in state "
            f"{quoted(before)}, not in {quoted(key)}",
        )
    return (
        _out_of_order(event, record)
        or _elsewhere(state, key, record)
        or _without_lease(state, event, record)
        or _against_policy(state, event, key)
        or TAKEN
    )


def _out_of_order(event: Acted, record: EpisodeRecord) -> Verdict | None:
    name = f"episode {record.id!r}"
    if record.over:
        return refusal("episode-over", f"{name} is over after {record.steps} steps")
    if record.waits:
        return refusal(
            "out-of-order",
            f"{name} waits for the reward of step {record.steps}, and is asked for step "
            f"{event.step}",
        )
    if event.step != record.steps:
        return refusal("out-of-order", f"{name} is at step {record.steps}, not at {event.step}")
    return None


def _elsewhere(state: CampaignState, key: bytes, record: EpisodeRecord) -> Verdict | None:
    number = None if record.episode is None else record.episode.state
    if number is None or state.collection.states[number] == key:
        return None
    return refusal(
        "conflict",
        f"episode {record.id!r} is in state {quoted(state.collection.states[number])}, and is "
        f"asked to act in state {quoted(key)}",
    )


def _without_lease(state: CampaignState, event: Acted, record: EpisodeRecord) -> Verdict | None:
    may_take_one = state.free > 0 and not state.closed
    if event.merged or record.merged or record.id in state.leases or may_take_one:
        return None
    return refusal(
        "lease-lost",
        f"the lease of episode {record.id!r} ran out and its place in the budget is gone; what it "
        f"has completed counts",
    )


def _against_policy(state: CampaignState, event: Acted, key: bytes) -> Verdict | None:
    definition, sent = state.definition, event.probabilities
    if not 0 <= event.action < definition.actions:
        return refusal("invalid", f"action {event.action} of {definition.actions}")
    if not definition.has_table:
        return _against_earlier_rows(state, sent, key)
    if sent is not None:
        return refusal("invalid", "the target policy is a table: send no probabilities")
    if key not in state.policy:
        return refusal("unknown-state", f"the target policy has no state {quoted(key)}")
    return None


def _against_earlier_rows(state: CampaignState, sent: Sent | None, key: bytes) -> Verdict | None:
    """Whether probabilities that came with an act are not those of the policies, or changed."""
    names, actions = state.definition.names, state.definition.actions
    if sent is None:
        return refusal("invalid", "the target policy's probabilities in this state are missing")
    now = sent if isinstance(sent, dict) else {"": sent}
    if now.keys() != set(names):
        return refusal("invalid", misnamed(names, list(sent) if sent is now else None))
    wrong = next((len(row) for row in now.values() if len(row) != actions), None)
    if wrong is not None:
        return refusal("invalid", f"{wrong} probabilities, but {actions} actions")
    known = state.policy.get(key)
    if known is None:
        return _against_limits(state, sent, key)
    for name, before in zip(names, known, strict=True):
        if max(map(_distance, now[name], before)) > SUM_TOLERANCE:
            return refusal(
                "conflict",
                f"{f'target policy {name!r}' if name else 'the target policy'} had probabilities "
                f"{list(before)} in state {quoted(key)} before, and {now[name]} now; a policy "
                f"under evaluation must not change",
            )
    return None


def _against_limits(state: CampaignState, sent: Sent, key: bytes) -> Verdict | None:
    definition = state.definition
    if definition.limits is None:
        return None
    try:
        rows = definition.rows(sent)
        refuse_forbidden(state.collection.limits, key, definition.names, rows, definition.actions)
    except InputError as error:
        return refusal("forbidden-action", str(error))
    return None


def _judge_reward(state: CampaignState, event: Rewarded, record: EpisodeRecord) -> Verdict:
    if 0 <= event.step < record.steps:
        return REPEATED
    if not record.waits or event.step != record.steps:
        return refusal(
            "out-of-order",
            f"episode {record.id!r} has no action of step {event.step} that waits for its reward",
        )
    try:
        state.definition.amounts(event.cost, event.amounts)
    except InputError as error:
        return refusal("invalid", str(error))
    return TAKEN


def _judge_release(
    state: CampaignState, event: Released, record: EpisodeRecord, time: float
) -> Verdict:
    if record.id not in state.leases:
        return REPEATED
    if event.reason == "expired" and time < record.seen + state.definition.lease:
        return refusal("leased", f"the lease of episode {record.id!r} has been renewed")
    return TAKEN


def _distance(one: float, other: float) -> float:
    return abs(one - other)

"""The rules: which events take effect, judged by the events before them.

docs/campaigns.md states the same rules for people.
"""

from collections.abc import Callable
from math import inf
from typing import Any

from revar.campaigns.action_rules import judge_action, without_lease
from revar.campaigns.events import (
    Acted,
    Archived,
    Closed,
    Event,
    Extended,
    Finished,
    Merged,
    Released,
    Renewed,
    Reopened,
    Rewarded,
    Started,
    Unreadable,
)
from revar.campaigns.records import EpisodeRecord
from revar.campaigns.state import CampaignState
from revar.campaigns.verdicts import REPEATED, TAKEN, Effect, Verdict, refusal
from revar.errors import InputError, RefusedError

# Seconds. An episode that was heard of in a future further away was so before the clock was set
# back: how long it has been silent, only who releases it can tell.
SET_BACK = 60.0


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


def replay(state: CampaignState, position: int, time: float, event: Event | Unreadable) -> Verdict:
    """Judge the next event of the log, and apply it to the state if it takes effect."""
    if position != state.position + 1:
        raise AssertionError(f"event {position} follows on event {state.position}")
    state.position = position
    if isinstance(event, Unreadable):
        state.unreadable += 1
        return refusal("unreadable", f"event {position} cannot be read: {event.reason}")
    verdict = judge(state, event, time)
    if verdict.effect is Effect.TAKEN:
        state.apply(event, time)
    return verdict


def judge(state: CampaignState, event: Event, time: float) -> Verdict:
    """What `replay` would say; nothing changes."""
    kind = type(event)
    about_campaign = _WITHOUT_RECORD.get(kind)
    if about_campaign is not None:
        return about_campaign(state, event)
    episode_id = event.episode  # type: ignore[union-attr]  # what is left is about an episode
    record = state.records.get(episode_id)
    if record is None:
        return refusal("unknown-episode", f"there is no episode {episode_id!r}")
    return _WITH_RECORD[kind](state, event, record, time)


def _judge_start(state: CampaignState, event: Started) -> Verdict:
    if event.episode in state.records:
        return REPEATED
    if event.merged or (state.free > 0 and not state.stopped):
        return TAKEN
    if state.closed:
        return refusal("budget-spent", "the campaign is closed: no more episodes are started")
    if state.precision.reached:
        return refusal(
            "budget-spent",
            f"the interval is as narrow as asked, at most {state.definition.half_width:g} to each "
            f"side: no more episodes are started",
        )
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


def _judge_extension(state: CampaignState, event: Extended) -> Verdict:
    if event.extension in state.extensions:
        return REPEATED
    whole = state.budget.unit != "cost"
    if not 0 < event.amount < inf or (whole and not isinstance(event.amount, int)):
        return refusal("invalid", f"the budget cannot grow by {event.amount!r}")
    return TAKEN


def _judge_reopening(state: CampaignState, event: Reopened) -> Verdict:  # noqa: ARG001 - as judges are called
    return TAKEN if state.stopped else REPEATED


def _judge_archiving(state: CampaignState, event: Archived) -> Verdict:  # noqa: ARG001 - as judges are called
    return REPEATED if state.archived else TAKEN


_WITHOUT_RECORD: dict[type, Callable[[CampaignState, Any], Verdict]] = {
    Started: _judge_start,
    Closed: _judge_close,
    Merged: _judge_merge,
    Extended: _judge_extension,
    Reopened: _judge_reopening,
    Archived: _judge_archiving,
}


def _judge_act(state: CampaignState, event: Acted, record: EpisodeRecord, _: float) -> Verdict:
    return judge_action(state, event, record)


def _judge_reward(
    state: CampaignState, event: Rewarded, record: EpisodeRecord, _: float
) -> Verdict:
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
    renewed = record.seen - SET_BACK <= time < record.seen + state.definition.lease
    if event.reason == "expired" and renewed:
        return refusal("leased", f"the lease of episode {record.id!r} has been renewed")
    return TAKEN


def _judge_finish(
    state: CampaignState,  # noqa: ARG001 - as judges are called
    event: Finished,  # noqa: ARG001
    record: EpisodeRecord,
    _: float,
) -> Verdict:
    return REPEATED if record.over else TAKEN


def _judge_renewal(
    state: CampaignState,
    event: Renewed,  # noqa: ARG001 - as judges are called
    record: EpisodeRecord,
    _: float,
) -> Verdict:
    return REPEATED if record.over else without_lease(state, record) or TAKEN


_WITH_RECORD: dict[type, Callable[[CampaignState, Any, EpisodeRecord, float], Verdict]] = {
    Acted: _judge_act,
    Rewarded: _judge_reward,
    Finished: _judge_finish,
    Released: _judge_release,
    Renewed: _judge_renewal,
}

"""What a caller can ask of a campaign, the event that carries it out, and the reply.

Most of what is asked for is an event already: started, rewarded, finished, closed and others.
An `Act` becomes one when the strategy has chosen an action.
"""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import msgspec

from revar.campaigns.defining import check_budget
from revar.campaigns.definition import Definition, check_size
from revar.campaigns.events import (
    AboutCampaign,
    Acted,
    Event,
    Extended,
    Finished,
    Released,
    Renewed,
    Rewarded,
    Sent,
    Started,
    encode_state,
)
from revar.campaigns.leases import LeaseClock
from revar.campaigns.policies import check_sent, told
from revar.campaigns.records import EpisodeRecord
from revar.campaigns.rules import BudgetReservedError, BudgetSpentError, CampaignError, judge
from revar.campaigns.state import CampaignState
from revar.campaigns.text import quoted
from revar.campaigns.verdicts import TAKEN, Effect, Verdict, refusal
from revar.errors import InputError
from revar.model.trajectory import none_for_nan
from revar.model.validation import check_reward

CAMPAIGN_ID = re.compile(r"[0-9a-f]{32}")
EPISODE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Act:
    """Choose the action of a step; `probabilities` only where the policy is no table."""

    episode: str
    step: int
    state: bytes
    probabilities: Sent | None = None


Command: TypeAlias = Started | Act | Rewarded | Finished | Released | Renewed | AboutCampaign


class EpisodeReply(msgspec.Struct, frozen=True):
    """Where an episode stands. `steps` counts complete ones: it is the number of the next."""

    episode: str
    number: int
    steps: int
    over: bool
    repeated: bool

    @classmethod
    def of(cls, record: EpisodeRecord, repeated: bool) -> "EpisodeReply":
        """The reply to a command about that episode."""
        return cls(record.id, record.number, record.steps, record.over, repeated)


class ActionReply(msgspec.Struct, frozen=True):
    """The action to take; `propensity` is null where it was not drawn at random."""

    episode: str
    step: int
    action: int
    propensity: float | None
    repeated: bool


Reply: TypeAlias = EpisodeReply | ActionReply | CampaignError | None


def new_campaign_id() -> str:
    """An id that no other campaign has, in this store or any other."""
    return uuid.uuid4().hex


def check_campaign_id(campaign_id: Any) -> str:
    """An id that a caller made before it asked for a campaign."""
    if not isinstance(campaign_id, str) or CAMPAIGN_ID.fullmatch(campaign_id) is None:
        raise InputError(
            f"the id of a campaign is {campaign_id!r}; it must be 32 digits, 0 to 9 and a to f"
        )
    return campaign_id


def new_episode_id() -> str:
    """An id that no other episode has, in this store or any other."""
    return uuid.uuid4().hex


def check_episode_id(episode_id: Any, what: str = "an episode") -> str:
    """An id that a caller may choose; it is part of addresses."""
    if not isinstance(episode_id, str) or EPISODE_ID.fullmatch(episode_id) is None:
        raise InputError(
            f"the id of {what} is {episode_id!r}; it must be 1 to 64 letters, digits, dashes or "
            f"underscores"
        )
    return episode_id


def _whole(step: Any) -> int:
    """The number of a step as a plain one; whether it is due is for the rules to say."""
    if not isinstance(step, Integral):
        raise InputError(f"step is {step!r:.40}; it must be a whole number")
    return int(step)


def ask_action(
    definition: Definition, episode: str, step: int, state: Any, probabilities: Any
) -> Act:
    """The command to choose an action, checked."""
    sent = None
    if not definition.has_table:
        if probabilities is None:
            raise InputError("this campaign has no policy table: act needs the probabilities")
        sent = check_sent(definition.names, definition.actions, probabilities)
    elif probabilities is not None:
        raise InputError("this campaign has a policy table: act takes no probabilities")
    return Act(episode, _whole(step), encode_state(state), sent)


def tell_reward(
    definition: Definition,
    episode: str,
    step: int,
    reward: Any,
    next_state: Any,
    cost: Any = None,
    amounts: Any = None,
) -> Rewarded:
    """The report of an outcome, checked; without a next state the episode ended."""
    try:
        told_reward = float(reward)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the reward is {reward!r:.40}; it must be a number") from None
    number = check_reward(told_reward, "the reward is")
    following = b"null" if next_state is None else encode_state(next_state, "next_state")
    told, names = definition.amounts(cost, amounts), definition.limited_sums
    return Rewarded(
        episode,
        _whole(step),
        number,
        msgspec.Raw(following),
        cost=None if definition.budget is None else told[0],
        amounts=dict(zip(names, told[-len(names) :], strict=True)) if names else None,
    )


def extend_budget(
    definition: Definition, episodes: Any, steps: Any, budget: Any, extension_id: str | None
) -> Extended:
    """The command to add so much to the budget, checked."""
    unit = definition.allowance.unit
    more = check_budget(episodes, steps, budget)
    if more.unit != unit:
        raise InputError(
            f"the budget is in {unit}; it cannot be extended by {more.text(more.amount)}"
        )
    chosen = new_episode_id() if extension_id is None else extension_id
    return Extended(check_episode_id(chosen, "an extension"), more.amount)


def propose(
    state: CampaignState,
    command: Command,
    clock: LeaseClock,
    new_states: set[bytes],
    *,
    put_plan_off: bool = False,
) -> tuple[list[Event], Verdict]:
    """The events that would carry the command out, and the verdict on it as things stand.

    There are events only where the command would take effect. The state does not change, but
    `new_states` do: those that are named first in the commit which these events will be part of.
    With `put_plan_off` an act does not wait for a plan that is due.
    """
    event = _event(command) if isinstance(command, Act) else command
    if isinstance(event, Started) and event.merged:
        return [], refusal("invalid", "an episode that was merged cannot be started")
    # Nothing else depends on the time.
    verdict = judge(state, event, clock.now() if isinstance(event, Released) else 0.0)
    if verdict.code == "budget-reserved":
        run_out = [Released(record.id) for record in clock.overdue(state)]
        return ([*run_out, event], TAKEN) if run_out else ([], verdict)
    if verdict.effect is not Effect.TAKEN:
        return [], verdict
    try:
        if isinstance(command, Act):
            _check_room(state, new_states, command.state, "the state")
            event = _decide(state, command, put_plan_off)
        elif isinstance(event, Rewarded):
            _check_room(state, new_states, event.following, "next_state")
    except InputError as error:
        return [], refusal("invalid", str(error))
    return [event], verdict


def answer(state: CampaignState, command: Command, verdict: Verdict, clock: LeaseClock) -> Reply:
    """What the caller is told, after the events have been replayed."""
    if verdict.effect is Effect.REFUSED:
        return _error(state, verdict, clock)
    if isinstance(command, AboutCampaign):
        return None
    record = state.records[command.episode]
    repeated = verdict.effect is Effect.REPEATED
    if not isinstance(command, Act):
        return EpisodeReply.of(record, repeated)
    decision = record.decision(command.step)
    if decision is None:
        raise AssertionError(f"step {command.step} of episode {record.id} is not known")
    _, action, propensity = decision
    return ActionReply(record.id, command.step, action, none_for_nan(propensity), repeated)


def _event(
    command: Act,
    action: int = 0,
    propensity: float | None = None,
    draws: int = 0,
    put_plan_off: bool = False,
) -> Acted:
    return Acted(
        command.episode,
        command.step,
        msgspec.Raw(command.state),
        action,
        propensity,
        draws,
        command.probabilities,
        put_plan_off=put_plan_off,
    )


def _decide(state: CampaignState, command: Act, put_plan_off: bool) -> Acted:
    definition = state.definition
    episode = state.records[command.episode].episode
    if episode is None:
        raise AssertionError(f"episode {command.episode} is over")
    sent = command.probabilities
    rows = state.policy[command.state] if sent is None else definition.rows(sent)
    off = put_plan_off and episode.replaces_plan
    action, propensity, draws = episode.choose(command.state, told(rows), put_plan_off=off)
    return _event(command, action, none_for_nan(propensity), draws, off)


def check_room(state: CampaignState, events: Sequence[Event]) -> None:
    """Refuse events whose new states do not all fit into the campaign."""
    keys: set[bytes | None] = {bytes(each.state) for each in events if isinstance(each, Acted)}
    keys |= {each.following for each in events if isinstance(each, Rewarded)}
    states = state.collection.states
    new = sum(key is not None and key not in states for key in keys)
    if new:
        _check_size(state.definition, len(states) + new)


def _check_size(definition: Definition, states: int) -> None:
    check_size(definition.horizon, definition.actions, states, len(definition.names))


def _check_room(state: CampaignState, new_states: set[bytes], key: bytes | None, name: str) -> None:
    """Refuse a state that is new, where the campaign has no room for it beside other new ones."""
    states = state.collection.states
    if key is None or key in states or key in new_states:
        return
    try:
        _check_size(state.definition, len(states) + len(new_states) + 1)
    except InputError as error:
        raise InputError(f"{name} {quoted(key)} is new, and {error}") from None
    new_states.add(key)


def _error(state: CampaignState, verdict: Verdict, clock: LeaseClock) -> CampaignError:
    if verdict.code == "budget-spent":
        return BudgetSpentError(verdict.code, verdict.reason)
    if verdict.code == "budget-reserved":
        return BudgetReservedError(verdict.code, verdict.reason, clock.wait(state))
    return CampaignError(verdict.code, verdict.reason)

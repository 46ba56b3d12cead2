"""Events that were made elsewhere, before they are added to a campaign's log."""

import msgspec

from revar.campaigns.commands import (
    ask_action,
    check_campaign_id,
    check_episode_id,
    extend_budget,
    tell_reward,
)
from revar.campaigns.definition import Definition
from revar.campaigns.events import (
    Acted,
    Archived,
    Closed,
    Event,
    Extended,
    Merged,
    Reopened,
    Rewarded,
    decode_state,
)
from revar.errors import InputError
from revar.model.budget import UNITS

MOST_DRAWS = 2**31 - 1  # of one action


def check_event(definition: Definition, event: Event) -> Event:
    """The event as a campaign of that definition would have written it; no other is let in."""
    if isinstance(event, Closed | Reopened | Archived):
        return event
    if isinstance(event, Extended):
        return _extended(definition, event.extension, event.amount)
    if isinstance(event, Merged):
        check_campaign_id(event.campaign)
        _extended(definition, event.campaign, event.episodes or event.amount)
        return event
    check_episode_id(event.episode)
    if isinstance(event, Acted):
        return _acted(definition, event)
    if isinstance(event, Rewarded):
        told = event.reward, decode_state(bytes(event.next_state)), event.cost, event.amounts
        return tell_reward(definition, event.episode, event.step, *told)
    return event


def _extended(definition: Definition, extension: str, amount: float) -> Extended:
    unit = definition.allowance.unit
    episodes, steps, cost = (amount if unit == each else None for each in UNITS)
    return extend_budget(definition, episodes, steps, cost, extension)


def _acted(definition: Definition, event: Acted) -> Acted:
    if event.put_plan_off:
        raise InputError("put_plan_off is true; only who makes the plan may put it off")
    if not 0 <= event.draws <= MOST_DRAWS:
        raise InputError(f"draws is {event.draws}; it must be from 0 to {MOST_DRAWS:,}")
    if event.propensity is not None and not 0.0 < event.propensity <= 1.0:
        raise InputError(f"propensity is {event.propensity}; it must be above 0, and at most 1")
    state = decode_state(bytes(event.state))
    asked = ask_action(definition, event.episode, event.step, state, event.probabilities)
    return msgspec.structs.replace(
        event, state=msgspec.Raw(asked.state), probabilities=asked.probabilities
    )

"""From a command to the event that carries it out, and from the verdict to the reply."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import msgspec

from revar.campaigns.commands import (
    Abandon,
    Act,
    Close,
    Command,
    EpisodeReply,
    Finish,
    Reward,
    Start,
)
from revar.campaigns.definition import check_size
from revar.campaigns.events import Acted, Closed, Event, Finished, Released, Rewarded, Started
from revar.campaigns.fold import CampaignState
from revar.campaigns.ledger import Ledger
from revar.campaigns.rules import judge
from revar.campaigns.verdicts import (
    TAKEN,
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
    Effect,
    Verdict,
    refused,
)
from revar.errors import InputError

Reply: TypeAlias = EpisodeReply | CampaignError | None
Clock: TypeAlias = Callable[[], float]


def proposed(state: CampaignState, command: Command, now: Clock) -> tuple[list[Event], Verdict]:
    """The events that would carry the command out, and the verdict on it as things stand.

    There are events only where the verdict is that the command would take effect.
    """
    event = _event(command)
    verdict = judge(state.ledger, event, 0.0)  # only leases that ran out depend on the time
    if verdict.code == "budget-reserved":
        run_out = [Released(record.id) for record in state.ledger.overdue(now())]
        return ([*run_out, event], TAKEN) if run_out else ([], verdict)
    if verdict.effect is not Effect.TAKEN:
        return [], verdict
    if isinstance(command, Act) and isinstance(event, Acted):
        try:
            event = _decided(state, command, event)
        except InputError as error:
            return [], refused("invalid", str(error))
    return [event], verdict


def replied(state: CampaignState, command: Command, verdict: Verdict, now: Clock) -> Reply:
    """What the caller is told, after the events have been folded."""
    if verdict.effect is Effect.REFUSED:
        return _error(state.ledger, verdict, now)
    if isinstance(command, Close):
        return None
    record = state.ledger.episodes[command.episode]
    repeated = verdict.effect is Effect.REPEATED
    reply = EpisodeReply(record.id, record.number, record.steps, record.over, repeated)
    if isinstance(command, Act):
        chosen = state.ledger.known_step(record, command.step)
        if chosen is None:
            raise AssertionError(f"step {command.step} of episode {record.id} is not known")
        return replace(reply, action=chosen.action, propensity=chosen.propensity)
    return reply


def _event(command: Command) -> Event:
    match command:
        case Start():
            return Started(command.episode)
        case Act():
            probabilities = command.probabilities
            return Acted(
                command.episode,
                command.step,
                msgspec.Raw(command.state),
                action=0,
                probabilities=None if probabilities is None else list(probabilities),
            )
        case Reward():
            following = msgspec.Raw(command.next_state or b"null")
            return Rewarded(command.episode, command.step, command.reward, following)
        case Finish():
            return Finished(command.episode)
        case Abandon():
            return Released(command.episode, "abandoned")
        case Close():
            return Closed()


def _decided(state: CampaignState, command: Act, event: Acted) -> Acted:
    record = state.ledger.episodes[command.episode]
    definition, states = state.definition, state.learner.collection.states
    met = len(states) + (command.state not in states)
    check_size(definition.horizon, definition.actions, met)
    target = command.probabilities or state.ledger.policy[command.state]
    choice = state.learner.choose(record, command.state, target)
    return msgspec.structs.replace(
        event, action=choice.action, propensity=choice.propensity, draws=choice.draws
    )


def _error(ledger: Ledger, verdict: Verdict, now: Clock) -> CampaignError:
    if verdict.code == "budget-spent":
        return BudgetSpentError(verdict.code, verdict.reason)
    if verdict.code == "budget-reserved":
        ends = [record.seen + ledger.definition.lease for record in ledger.leases.values()]
        wait = min(ends) - now() if ends else 0.0
        return BudgetReservedError(verdict.code, verdict.reason, max(0.0, wait))
    return CampaignError(verdict.code, verdict.reason)

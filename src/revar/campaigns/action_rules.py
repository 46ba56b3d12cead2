"""The rules of acts: order, state, lease, and the target policies' probabilities."""

from revar.campaigns.events import Acted, Sent
from revar.campaigns.limits import refuse_forbidden
from revar.campaigns.policies import misnamed
from revar.campaigns.records import EpisodeRecord
from revar.campaigns.state import CampaignState
from revar.campaigns.text import quoted
from revar.campaigns.verdicts import REPEATED, TAKEN, Verdict, refusal
from revar.errors import InputError
from revar.model.validation import SUM_TOLERANCE


def judge_action(state: CampaignState, event: Acted, record: EpisodeRecord) -> Verdict:
    """Whether the action of a step takes effect."""
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
        or (None if event.merged else without_lease(state, record))
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


def without_lease(state: CampaignState, record: EpisodeRecord) -> Verdict | None:
    """The refusal of an episode that holds no place, and finds none."""
    if record.merged or record.id in state.leases or (state.free > 0 and not state.stopped):
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


def _distance(one: float, other: float) -> float:
    return abs(one - other)

"""What the service takes and gives, strictly typed; `client` writes and reads the same records.

Records of replies that Python callers get too are in `commands` and `status`.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from revar.campaigns.commands import CAMPAIGN_ID, EPISODE_ID, ActionReply, EpisodeReply
from revar.campaigns.definition import (
    CONFIDENCE as INTERVAL_CONFIDENCE,
)
from revar.campaigns.definition import (
    LARGEST_COST,
    LARGEST_SEED,
    LEASE,
    LONGEST_LEASE,
    MOST_ACTIONS,
    MOST_EPISODES,
    MOST_STEPS,
    MOST_STEPS_IN_ALL,
    NAME,
    Definition,
    StrategyRecord,
)
from revar.campaigns.events import Event
from revar.campaigns.state import HistoryPoint
from revar.campaigns.verdicts import Verdict
from revar.model.limits import CONFIDENCE
from revar.model.question import KINDS
from revar.model.validation import LARGEST_CONFIDENCE, LARGEST_REWARD

Name = Annotated[str, Meta(pattern=f"^{NAME.pattern}$", description="A campaign's name.")]
CampaignId = Annotated[str, Meta(pattern=f"^{CAMPAIGN_ID.pattern}$")]
EpisodeId = Annotated[str, Meta(pattern=f"^{EPISODE_ID.pattern}$")]
Probability = Annotated[float, Meta(ge=0, le=1)]
Probabilities = Annotated[list[Probability], Meta(min_length=1, max_length=MOST_ACTIONS)]
ActionNumber = Annotated[int, Meta(ge=0, lt=MOST_ACTIONS)]
# Not a tuple: msgspec 0.22 crashes on one of fixed length beside another type in a list.
StateAndAction = Annotated[list[Any], Meta(min_length=2, max_length=2)]
Number = Annotated[float, Meta(ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
StepNumber = Annotated[int, Meta(ge=0, lt=MOST_STEPS, description="From 0.")]

MOST_IN_BATCH = 1000  # requests
LARGEST_REQUEST = 2**20  # bytes, where whoever runs the service does not say otherwise
CAMPAIGN_HEADER = "Revar-Campaign"  # the id of the campaign that a request is meant for


class PolicyRowMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target policy in one state, which is any JSON value but null."""

    state: Any
    probabilities: Probabilities


PolicyTable = Annotated[list[PolicyRowMessage], Meta(min_length=1)]


class LimitsMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What collection may not do. `forbidden` has actions, or pairs [state, action].

    `min_return` is a number, or a share of the target policy's value such as "95%"; `max_sums` says
    by name how much an episode may sum to in expectation, of amounts that every reward tells.
    """

    forbidden: list[ActionNumber | StateAndAction] = []
    max_ratio: Annotated[float, Meta(ge=1)] | None = None
    min_return: float | str | None = None
    max_sums: dict[str, float] = {}
    confidence: Annotated[float, Meta(gt=0, le=LARGEST_CONFIDENCE)] = CONFIDENCE


class CreateCampaign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new campaign. Without `policy`, every act sends the target policy's probabilities.

    `policies` are several to compare: tables by name, or names alone; `question` is what is asked.
    The budget is one of `episodes`, `steps`, and `budget`, which is of what rewards say steps cost.
    With `half_width` no more is started once the interval of that `confidence` is as narrow. With
    an `id` of its own the caller may safely ask again when the reply was lost.
    """

    name: Name
    horizon: Annotated[int, Meta(ge=1, le=MOST_STEPS)]
    episodes: Annotated[int, Meta(ge=1, le=MOST_EPISODES)] | None = None
    steps: Annotated[int, Meta(ge=1, le=MOST_STEPS_IN_ALL)] | None = None
    budget: Annotated[float, Meta(gt=0, le=LARGEST_COST)] | None = None
    limits: LimitsMessage | None = None
    discount: Annotated[float, Meta(ge=0, le=1)] = 1.0
    actions: Annotated[int, Meta(ge=1, le=MOST_ACTIONS)] | None = None
    policy: PolicyTable | None = None
    policies: dict[str, PolicyTable] | list[str] | None = None
    question: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})] | None = None
    strategy: str | StrategyRecord = "flow"
    seed: Annotated[int, Meta(ge=0, le=LARGEST_SEED)] | None = None
    lease: Annotated[float, Meta(gt=0, le=LONGEST_LEASE)] = LEASE
    half_width: Annotated[float, Meta(gt=0)] | None = None
    confidence: Annotated[float, Meta(gt=0, le=LARGEST_CONFIDENCE)] = INTERVAL_CONFIDENCE
    id: CampaignId | None = None


class ExtendCampaign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So much more budget, in its unit: one of `episodes`, `steps` and `budget`.

    With an id of its own an extension counts once, however often it is sent.
    """

    episodes: Annotated[int, Meta(ge=1, le=MOST_EPISODES)] | None = None
    steps: Annotated[int, Meta(ge=1, le=MOST_STEPS_IN_ALL)] | None = None
    budget: Annotated[float, Meta(gt=0, le=LARGEST_COST)] | None = None
    extension: EpisodeId | None = None


class DeletedMessage(msgspec.Struct, frozen=True):
    """The name of a campaign that is gone."""

    deleted: str


class StartEpisode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With an id of its own the caller may safely ask again when the reply was lost."""

    episode: EpisodeId | None = None


class ActMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for the action of a step. `state` is any JSON value but null.

    Probabilities are those of the target policy, or of several by their names.
    """

    step: StepNumber
    state: Any
    probabilities: Probabilities | dict[str, Probabilities] | None = None


class RewardMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Report what the action of a step led to; `next_state` is null where the episode ended.

    `cost` is needed where the budget is of cost, `amounts` where sums are limited, by their names.
    """

    step: StepNumber
    reward: Number
    next_state: Any
    cost: Annotated[float, Meta(ge=0, le=LARGEST_REWARD)] | None = None
    amounts: dict[str, Number] | None = None


class StartMany(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ids of episodes to start, chosen by the caller."""

    episodes: Annotated[list[EpisodeId], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class ActOfEpisode(ActMessage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One of several acts."""

    episode: EpisodeId


class ActMany(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Acts of several episodes."""

    acts: Annotated[list[ActOfEpisode], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class RewardOfEpisode(RewardMessage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One of several rewards."""

    episode: EpisodeId


class RewardMany(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rewards of several episodes."""

    rewards: Annotated[list[RewardOfEpisode], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class EmptyMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No fields."""


class EventMessage(msgspec.Struct, frozen=True):
    """An event of a log: its place, from 1, when it was taken, and its bytes in base64."""

    position: int
    time: float
    body: bytes


class EventsMessage(msgspec.Struct, frozen=True):
    """Events that follow on each other, of how many there are, and the storage's time."""

    events: list[EventMessage]
    length: int
    now: float


class AddEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events that were made elsewhere, to be added as they are."""

    events: Annotated[list[Event], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class VerdictsMessage(msgspec.Struct, frozen=True):
    """What each of several events did."""

    verdicts: list[Verdict]


class HistoryMessage(msgspec.Struct, frozen=True):
    """The estimate at growing numbers of finished episodes."""

    points: list[HistoryPoint]


class CampaignMessage(msgspec.Struct, frozen=True):
    """What never changes about a campaign; the time is in seconds since 1970."""

    id: str
    name: str
    created: float
    definition: Definition


class CampaignsMessage(msgspec.Struct, frozen=True):
    """The names of all campaigns, in the order of creation."""

    campaigns: list[str]


class ErrorDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something was not done: a code for programs, a sentence for people.

    `retry_after` is in how many seconds it may be possible, of `budget-reserved`.
    """

    code: str
    message: str
    retry_after: float | None = None


class ErrorMessage(msgspec.Struct, frozen=True):
    """The body of every reply that is not a success."""

    error: ErrorDetail


class EpisodeOutcome(msgspec.Struct, frozen=True):
    """What came of one of several requests: a reply, or why there is none."""

    reply: EpisodeReply | None
    error: ErrorDetail | None


class EpisodeOutcomes(msgspec.Struct, frozen=True):
    """An outcome for each request, in their order."""

    outcomes: list[EpisodeOutcome]


class ActionOutcome(msgspec.Struct, frozen=True):
    """What came of one of several acts: a reply, or why there is none."""

    reply: ActionReply | None
    error: ErrorDetail | None


class ActionOutcomes(msgspec.Struct, frozen=True):
    """An outcome for each act, in their order."""

    outcomes: list[ActionOutcome]

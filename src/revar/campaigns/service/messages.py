"""What the service takes and gives, strictly typed; `client` writes and reads the same records.

Records of replies that Python callers get too are in `commands` and `status`.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from revar.campaigns.commands import CAMPAIGN_ID, EPISODE_ID
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
from revar.campaigns.state import HistoryPoint
from revar.model.limits import CONFIDENCE
from revar.model.question import KINDS
from revar.model.validation import LARGEST_REWARD

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
    confidence: Annotated[float, Meta(gt=0, lt=1)] = CONFIDENCE


class CreateCampaign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new campaign. Without `policy`, every act sends the target policy's probabilities.

    `policies` are several to compare: tables by name, or names alone; `question` is what is asked.
    The budget is one of `episodes`, `steps`, and `budget`, which is of what rewards say steps cost.
    With an `id` of its own the caller may safely ask again when the reply was lost.
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
    id: CampaignId | None = None


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


class EmptyMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No fields."""


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


class ErrorDetail(msgspec.Struct, frozen=True):
    """Why something was not done: a code for programs, a sentence for people."""

    code: str
    message: str


class ErrorMessage(msgspec.Struct, frozen=True):
    """The body of every reply that is not a success."""

    error: ErrorDetail

"""What the service takes and gives, strictly typed; replies about episodes are in `commands`."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from revar.campaigns.commands import EPISODE_ID
from revar.campaigns.definition import (
    LARGEST_SEED,
    LEASE,
    LONGEST_LEASE,
    MOST_ACTIONS,
    MOST_EPISODES,
    MOST_STEPS,
    NAME,
    StrategyRecord,
)
from revar.campaigns.progress import HistoryPoint
from revar.campaigns.status import Lease, Status
from revar.estimators.estimator import Estimate
from revar.model.validation import LARGEST_REWARD

Name = Annotated[str, Meta(pattern=f"^{NAME.pattern}$", description="A campaign's name.")]
EpisodeId = Annotated[str, Meta(pattern=f"^{EPISODE_ID.pattern}$")]
Probability = Annotated[float, Meta(ge=0, le=1)]
Probabilities = Annotated[list[Probability], Meta(min_length=1, max_length=MOST_ACTIONS)]
StepNumber = Annotated[int, Meta(ge=0, lt=MOST_STEPS, description="From 0.")]


class PolicyRowMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target policy in one state, which is any JSON value but null."""

    state: Any
    probabilities: Probabilities


class CreateCampaign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new campaign. Without `policy`, every act sends the target policy's probabilities."""

    name: Name
    horizon: Annotated[int, Meta(ge=1, le=MOST_STEPS)]
    episodes: Annotated[int, Meta(ge=1, le=MOST_EPISODES)]
    discount: Annotated[float, Meta(ge=0, le=1)] = 1.0
    actions: Annotated[int, Meta(ge=1, le=MOST_ACTIONS)] | None = None
    policy: Annotated[list[PolicyRowMessage], Meta(min_length=1)] | None = None
    strategy: str | StrategyRecord = "flow"
    seed: Annotated[int, Meta(ge=0, le=LARGEST_SEED)] | None = None
    lease: Annotated[float, Meta(gt=0, le=LONGEST_LEASE)] = LEASE


class StartEpisode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With an id of its own the caller may safely ask again when the reply was lost."""

    episode: EpisodeId | None = None


class ActMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for the action of a step. `state` is any JSON value but null."""

    step: StepNumber
    state: Any
    probabilities: Probabilities | None = None


class RewardMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Report what the action of a step led to; `next_state` is null where the episode ended."""

    step: StepNumber
    reward: Annotated[float, Meta(ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
    next_state: Any


class EmptyMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No fields."""


class EstimateMessage(msgspec.Struct, frozen=True):
    """The target policy's value; the error is null while the data cannot tell it."""

    value: float
    standard_error: float | None
    low: float | None
    high: float | None
    confidence: float
    episodes: int
    unvisited_probability: float

    @classmethod
    def of(cls, estimate: Estimate) -> "EstimateMessage":
        """The estimate, with null in the place of infinity."""
        known = estimate.standard_error < float("inf")
        low, high = estimate.interval
        return cls(
            estimate.value,
            estimate.standard_error if known else None,
            low if known else None,
            high if known else None,
            estimate.confidence,
            estimate.episodes,
            estimate.unvisited_probability,
        )


class StatusMessage(msgspec.Struct, frozen=True):
    """Where a campaign stands."""

    name: str
    id: str
    horizon: int
    discount: float
    actions: int
    strategy: StrategyRecord
    seed: int
    lease: float
    has_policy_table: bool
    budget: int  # episodes that may be collected
    episodes: int  # finished ones
    open: int
    free: int
    late: int
    partial: int
    steps: int
    states: int
    steps_per_second: float  # over the last minute
    last_event: float | None  # seconds since 1970
    closed: bool
    spent: bool
    leases: tuple[Lease, ...]
    estimate: EstimateMessage | None

    @classmethod
    def of(cls, status: Status) -> "StatusMessage":
        """The status of a campaign, with what defines it."""
        fields = {
            **msgspec.structs.asdict(status.definition),
            **vars(status),
            "has_policy_table": status.definition.policy is not None,
            "open": status.leased,
            "steps_per_second": status.pace,
            "last_event": status.last,
            "estimate": None if status.estimate is None else EstimateMessage.of(status.estimate),
        }
        return cls(*(fields[name] for name in cls.__struct_fields__))


class HistoryMessage(msgspec.Struct, frozen=True):
    """The estimate at growing numbers of finished episodes."""

    points: list[HistoryPoint]


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

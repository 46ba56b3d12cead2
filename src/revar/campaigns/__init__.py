"""Live collection: a campaign hands out decisions, takes back outcomes, and survives crashes."""

from revar.campaigns.campaign import Campaign
from revar.campaigns.episode import CampaignEpisode
from revar.campaigns.requests import ActRequest, RewardReport
from revar.campaigns.rules import (
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
    UnknownCampaignError,
)
from revar.campaigns.status import Status
from revar.campaigns.storage import (
    MemoryStorage,
    SQLiteStorage,
    Storage,
    StorageError,
    open_storage,
)

__all__ = [
    "ActRequest",
    "BudgetReservedError",
    "BudgetSpentError",
    "Campaign",
    "CampaignEpisode",
    "CampaignError",
    "MemoryStorage",
    "RewardReport",
    "SQLiteStorage",
    "Status",
    "Storage",
    "StorageError",
    "UnknownCampaignError",
    "open_storage",
]

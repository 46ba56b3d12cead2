"""Live collection: a campaign hands out decisions, takes back outcomes, and survives crashes."""

from revar.campaigns.campaign import Campaign
from revar.campaigns.episode import Episode
from revar.campaigns.status import Status
from revar.campaigns.storage import (
    MemoryStorage,
    SQLiteStorage,
    Storage,
    StorageError,
    open_storage,
)
from revar.campaigns.verdicts import (
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
    UnknownCampaignError,
)

__all__ = [
    "BudgetReservedError",
    "BudgetSpentError",
    "Campaign",
    "CampaignError",
    "Episode",
    "MemoryStorage",
    "SQLiteStorage",
    "Status",
    "Storage",
    "StorageError",
    "UnknownCampaignError",
    "open_storage",
]

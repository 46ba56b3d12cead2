"""Every route of the API once: the application serves them, the OpenAPI document describes them."""

from dataclasses import dataclass
from typing import Any

from revar.campaigns.service import api
from revar.campaigns.service.messages import (
    ActionMessage,
    ActMessage,
    CampaignsMessage,
    CreateCampaign,
    EpisodeMessage,
    EstimateMessage,
    HistoryMessage,
    Nothing,
    RewardMessage,
    StartEpisode,
    StatusMessage,
)

CAMPAIGN = "/api/campaigns/{name}"
EPISODE = CAMPAIGN + "/episodes/{episode}"


@dataclass(frozen=True)
class ApiRoute:
    """One operation: what it takes, what it gives, and what may go wrong."""

    method: str
    path: str
    endpoint: api.Endpoint
    summary: str
    takes: Any = None
    gives: dict[int, Any] | None = None  # by status; None for a download
    conflicts: bool = False  # may be refused as things stand


# Looked through in this order: those that are asked for most come first.
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute(
        "POST",
        EPISODE + "/act",
        api.act,
        "The action of a step; asked again, the same action",
        takes=ActMessage,
        gives={200: ActionMessage},
        conflicts=True,
    ),
    ApiRoute(
        "POST",
        EPISODE + "/reward",
        api.reward,
        "Report what the action of a step led to; told again, it counts once",
        takes=RewardMessage,
        gives={200: EpisodeMessage},
        conflicts=True,
    ),
    ApiRoute(
        "POST",
        CAMPAIGN + "/episodes",
        api.start_episode,
        "Start an episode: reserve a place in the budget",
        takes=StartEpisode,
        gives={200: EpisodeMessage, 201: EpisodeMessage},
        conflicts=True,
    ),
    ApiRoute(
        "GET",
        "/api/campaigns",
        api.list_campaigns,
        "The names of all campaigns",
        gives={200: CampaignsMessage},
    ),
    ApiRoute(
        "POST",
        "/api/campaigns",
        api.create_campaign,
        "Create a campaign",
        takes=CreateCampaign,
        gives={201: StatusMessage},
        conflicts=True,
    ),
    ApiRoute(
        "GET",
        CAMPAIGN,
        api.campaign_status,
        "Where a campaign stands",
        gives={200: StatusMessage},
    ),
    ApiRoute(
        "GET",
        CAMPAIGN + "/estimate",
        api.campaign_estimate,
        "The target policy's value with its interval",
        gives={200: EstimateMessage},
        conflicts=True,
    ),
    ApiRoute(
        "GET",
        CAMPAIGN + "/history",
        api.campaign_history,
        "The estimate at growing numbers of episodes",
        gives={200: HistoryMessage},
    ),
    ApiRoute(
        "GET",
        CAMPAIGN + "/data",
        api.campaign_data,
        "Every complete step, as JSON lines (an episode each) or CSV (a step each)",
    ),
    ApiRoute(
        "POST",
        CAMPAIGN + "/finish",
        api.close_campaign,
        "Start no more episodes; open ones may still report",
        takes=Nothing,
        gives={200: StatusMessage},
    ),
    ApiRoute(
        "GET",
        EPISODE,
        api.show_episode,
        "Where an episode stands",
        gives={200: EpisodeMessage},
    ),
    ApiRoute(
        "POST",
        EPISODE + "/finish",
        api.finish,
        "End an episode where it is; it has used its place in the budget",
        takes=Nothing,
        gives={200: EpisodeMessage},
    ),
    ApiRoute(
        "POST",
        EPISODE + "/abandon",
        api.abandon,
        "Give an episode's place in the budget back",
        takes=Nothing,
        gives={200: EpisodeMessage},
    ),
)

"""The JSON API: every route with what it takes and gives; each asks a campaign."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import (
    ActionReply,
    EpisodeReply,
    Reply,
    ask_action,
    new_episode_id,
    tell_reward,
)
from revar.campaigns.events import Finished, Released, Started
from revar.campaigns.export import FORMATS
from revar.campaigns.service.messages import (
    ActMessage,
    CampaignMessage,
    CampaignsMessage,
    CreateCampaign,
    EmptyMessage,
    HistoryMessage,
    PolicyRowMessage,
    RewardMessage,
    StartEpisode,
)
from revar.campaigns.service.replies import Download, reply
from revar.campaigns.service.routing import (
    CAMPAIGN,
    EPISODE,
    ROUTES,
    ApiRoute,
    campaigns_of,
    episode_of,
    find_thread,
    id_of,
    name_of,
    read,
    route,
    submit,
)
from revar.campaigns.status_messages import EstimateMessage, RankingMessage, StatusMessage
from revar.errors import InputError

__all__ = ["ROUTES", "ApiRoute"]  # the routes are complete once this module is loaded

Answer = TypeVar("Answer")


@route(
    "POST",
    EPISODE + "/act",
    "The action of a step; asked again, the same action",
    takes=ActMessage,
    gives={200: ActionReply},
    conflicts=True,
)
async def act(request: Request, body: ActMessage) -> Reply:
    """Ask for an action."""
    thread = await find_thread(request)
    definition = thread.campaign.definition
    return await thread.submit(
        ask_action(definition, episode_of(request), body.step, body.state, body.probabilities)
    )


@route(
    "POST",
    EPISODE + "/reward",
    "Report what the action of a step led to; told again, it counts once",
    takes=RewardMessage,
    gives={200: EpisodeReply},
    conflicts=True,
)
async def reward(request: Request, body: RewardMessage) -> Reply:
    """Tell what an action led to."""
    thread = await find_thread(request)
    told = body.reward, body.next_state, body.cost, body.amounts
    definition = thread.campaign.definition
    return await thread.submit(tell_reward(definition, episode_of(request), body.step, *told))


@route(
    "POST",
    CAMPAIGN + "/episodes",
    "Start an episode: reserve a place in the budget",
    takes=StartEpisode,
    gives={200: EpisodeReply, 201: EpisodeReply},
    conflicts=True,
)
async def start_episode(request: Request, body: StartEpisode) -> Response:
    """A new episode, or the one of that id."""
    started = await submit(request, Started(body.episode or new_episode_id()))
    known = isinstance(started, EpisodeReply) and started.repeated
    return reply(started, 200 if known else 201)


@route("GET", "/api/campaigns", "The names of all campaigns", gives={200: CampaignsMessage})
async def list_campaigns(request: Request) -> CampaignsMessage:
    """Names in the order of creation."""
    return CampaignsMessage(await campaigns_of(request).names())


@route(
    "POST",
    "/api/campaigns",
    "Create a campaign; with the same id again, the same campaign",
    takes=CreateCampaign,
    gives={201: StatusMessage},
    conflicts=True,
)
async def create_campaign(request: Request, body: CreateCampaign) -> StatusMessage:
    """A new campaign, by the arguments of `Campaign.create`."""
    question = msgspec.structs.asdict(body)
    question["campaign_id"] = question.pop("id")
    if body.policy is not None:
        question["policy"] = _pairs(body.policy)
    if isinstance(body.policies, dict):
        question["policies"] = {name: _pairs(table) for name, table in body.policies.items()}
    if body.limits is not None:
        question["limits"] = msgspec.structs.asdict(body.limits)
    campaign = await campaigns_of(request).create(**question)
    return StatusMessage.of(await campaigns_of(request).read(campaign.name, Campaign.status))


@route("GET", CAMPAIGN, "Where a campaign stands", gives={200: StatusMessage})
async def campaign_status(request: Request) -> StatusMessage:
    """Budget, leases, steps per second and estimate."""
    return StatusMessage.of(await read(request, Campaign.status))


@route(
    "GET",
    CAMPAIGN + "/definition",
    "What a campaign was created with",
    gives={200: CampaignMessage},
)
async def campaign_definition(request: Request) -> CampaignMessage:
    """What never changes about it."""

    def look(campaign: Campaign) -> CampaignMessage:
        about = campaign.id, campaign.name, campaign.created, campaign.definition
        return campaign.read(lambda *_: CampaignMessage(*about))  # if it is still there

    return await read(request, look)


@route(
    "GET",
    CAMPAIGN + "/estimate",
    "The target policy's value with its interval",
    gives={200: EstimateMessage},
    conflicts=True,
)
async def campaign_estimate(request: Request) -> EstimateMessage:
    """The estimate at ?confidence=0.95."""
    return EstimateMessage.of(await _ask_value(request, Campaign.estimate))


@route(
    "GET",
    CAMPAIGN + "/ranking",
    "The values of several target policies, their differences, and who leads",
    gives={200: RankingMessage},
    conflicts=True,
)
async def campaign_ranking(request: Request) -> RankingMessage:
    """The ranking at ?confidence=0.95."""
    return RankingMessage.of(await _ask_value(request, Campaign.ranking))


@route(
    "GET",
    CAMPAIGN + "/history",
    "The estimate at growing numbers of episodes",
    gives={200: HistoryMessage},
)
async def campaign_history(request: Request) -> HistoryMessage:
    """The points of the history, log-spaced."""
    return await read(
        request,
        lambda campaign: campaign.read(lambda state, _: HistoryMessage([*state.history.points])),
    )


@route(
    "GET",
    CAMPAIGN + "/data",
    "Every complete step, as JSON lines (an episode each) or CSV (a step each)",
)
async def campaign_data(request: Request) -> Response:
    """A download in ?format=jsonl."""
    form = request.query_params.get("format", "jsonl")
    if form not in FORMATS:
        raise InputError(f"format is {form!r}; it must be one of {', '.join(FORMATS)}")
    name = name_of(request)
    pieces = await campaigns_of(request).download(
        name, lambda campaign: campaign.export_text(form), id_of(request)
    )
    return Download(name, form, pieces)


@route("GET", EPISODE, "Where an episode stands", gives={200: EpisodeReply})
async def show_episode(request: Request) -> EpisodeReply:
    """What the reply to its last command said."""
    episode = episode_of(request)
    return await read(request, lambda campaign: campaign.find_episode(episode))


@route(
    "POST",
    EPISODE + "/finish",
    "End an episode where it is; it has used its place in the budget",
    takes=EmptyMessage,
    gives={200: EpisodeReply},
)
async def finish(request: Request, body: EmptyMessage) -> Reply:  # noqa: ARG001 - checked to be empty
    """Nothing more will come of it."""
    return await submit(request, Finished(episode_of(request)))


@route(
    "POST",
    EPISODE + "/abandon",
    "Give an episode's place in the budget back",
    takes=EmptyMessage,
    gives={200: EpisodeReply},
)
async def abandon(request: Request, body: EmptyMessage) -> Reply:  # noqa: ARG001 - checked to be empty
    """Its complete steps count."""
    return await submit(request, Released(episode_of(request), "abandoned"))


async def _ask_value(request: Request, ask: Callable[[Campaign, float], Answer]) -> Answer:
    """What a campaign says of values at the confidence that the address asks for."""
    given = request.query_params.get("confidence", "0.95")
    try:
        confidence = float(given)
    except ValueError:
        raise InputError(f"confidence is {given!r}; it must be a number") from None
    return await read(request, lambda campaign: ask(campaign, confidence))


def _pairs(table: list[PolicyRowMessage]) -> list[tuple[Any, list[float]]]:
    return [(row.state, row.probabilities) for row in table]


# Asked for less often than what stands above, and looked through after it.
from revar.campaigns.service import batches, events, lifecycle  # noqa: E402, F401 - they add routes

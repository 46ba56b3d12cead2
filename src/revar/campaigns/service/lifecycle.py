"""Routes about a whole campaign: its end, and what comes after; and signs of life of an episode."""

from starlette.requests import Request

from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import Command, EpisodeReply, Reply, extend_budget
from revar.campaigns.events import Archived, Closed, Renewed, Reopened
from revar.campaigns.service.messages import DeletedMessage, EmptyMessage, ExtendCampaign
from revar.campaigns.service.routing import (
    CAMPAIGN,
    EPISODE,
    campaigns_of,
    episode_of,
    find_thread,
    id_of,
    name_of,
    read,
    route,
    submit,
)
from revar.campaigns.status_messages import StatusMessage


@route(
    "POST",
    EPISODE + "/heartbeat",
    "A sign of life of an episode whose step takes long: its lease begins anew",
    takes=EmptyMessage,
    gives={200: EpisodeReply},
    conflicts=True,
)
async def heartbeat(request: Request, body: EmptyMessage) -> Reply:  # noqa: ARG001 - checked to be empty
    """It is still there."""
    return await submit(request, Renewed(episode_of(request)))


@route(
    "POST",
    CAMPAIGN + "/close",
    "Start no more episodes; open ones may still report",
    takes=EmptyMessage,
    gives={200: StatusMessage},
)
async def close_campaign(request: Request, body: EmptyMessage) -> StatusMessage:  # noqa: ARG001 - checked to be empty
    """Close it, and say where it stands."""
    return await _submit_and_show(request, Closed())


@route(
    "POST",
    CAMPAIGN + "/reopen",
    "Start episodes again, after it was closed, archived, or found precise enough",
    takes=EmptyMessage,
    gives={200: StatusMessage},
)
async def reopen_campaign(request: Request, body: EmptyMessage) -> StatusMessage:  # noqa: ARG001 - checked to be empty
    """Reopen it, and say where it stands."""
    return await _submit_and_show(request, Reopened())


@route(
    "POST",
    CAMPAIGN + "/archive",
    "Close it, and have lists leave it out",
    takes=EmptyMessage,
    gives={200: StatusMessage},
)
async def archive_campaign(request: Request, body: EmptyMessage) -> StatusMessage:  # noqa: ARG001 - checked to be empty
    """Archive it, and say where it stands."""
    return await _submit_and_show(request, Archived())


@route(
    "POST",
    CAMPAIGN + "/extend",
    "Add to the budget; one that was spent goes on",
    takes=ExtendCampaign,
    gives={200: StatusMessage},
    conflicts=True,
)
async def extend_campaign(request: Request, body: ExtendCampaign) -> StatusMessage:
    """Extend it, and say where it stands."""
    definition = (await find_thread(request)).campaign.definition
    amounts = body.episodes, body.steps, body.budget
    return await _submit_and_show(request, extend_budget(definition, *amounts, body.extension))


@route(
    "DELETE",
    CAMPAIGN,
    "Remove an archived campaign with its log, for good",
    gives={200: DeletedMessage},
    conflicts=True,
)
async def delete_campaign(request: Request) -> DeletedMessage:
    """It is gone."""
    name = name_of(request)
    if id_of(request) is not None:
        await find_thread(request)
    await campaigns_of(request).delete(name)
    return DeletedMessage(name)


async def _submit_and_show(request: Request, command: Command) -> StatusMessage:
    await submit(request, command)
    return StatusMessage.of(await read(request, Campaign.status))

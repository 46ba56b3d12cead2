"""What a route of the JSON API is: what it takes, what it gives, and how errors are answered.

The application serves `ROUTES`, and the OpenAPI document describes them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import Command, Reply, check_campaign_id, check_episode_id
from revar.campaigns.definition import check_name
from revar.campaigns.service.campaign_thread import CampaignThread
from revar.campaigns.service.messages import CAMPAIGN_HEADER
from revar.campaigns.service.replies import RequestError, error_reply, reply, reply_to_error
from revar.campaigns.service.threads import CampaignThreads

Answer = TypeVar("Answer")
Endpoint = Callable[[Request], Awaitable[Response]]
CAMPAIGN = "/api/campaigns/{name}"
EPISODE = CAMPAIGN + "/episodes/{episode}"


@dataclass(frozen=True)
class ApiRoute:
    """One operation: what it takes, what it gives, and whether it can be refused."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    takes: Any = None
    gives: dict[int, Any] | None = None  # by status, the usual one first; None for a download
    conflicts: bool = False  # may be refused as things stand


# Starlette looks through them in this order: those that are asked for most come first.
ROUTES: list[ApiRoute] = []


def route(
    method: str,
    path: str,
    summary: str,
    *,
    takes: Any = None,
    gives: dict[int, Any] | None = None,
    conflicts: bool = False,
) -> Callable[[Callable[..., Awaitable[Any]]], Endpoint]:
    """Serve a function: it gets the request and its body, and returns a record or a response."""
    status = next(iter(gives or {200: None}))

    def add(function: Callable[..., Awaitable[Any]]) -> Endpoint:
        @wraps(function)
        async def endpoint(request: Request) -> Response:
            try:
                body = () if takes is None else (await _read_body(request, takes),)
                result = await function(request, *body)
                return result if isinstance(result, Response) else reply(result, status)
            except ClientDisconnect:
                return error_reply(400, "disconnected", "the request broke off")  # nobody reads it
            except Exception as error:
                return reply_to_error(error)

        ROUTES.append(ApiRoute(method, path, endpoint, summary, takes, gives, conflicts))
        return endpoint

    return add


async def _read_body(request: Request, kind: Any) -> Any:
    """The body of the request as a record of that kind; an empty one has no fields."""
    body = await request.body() or b"{}"
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A page from elsewhere cannot send this type without asking first, and is never allowed to.
    if media != "application/json":
        raise RequestError(415, "media-type", "the body must be of type application/json")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise RequestError(422, "invalid", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, "not-json", f"the body is not JSON: {error}") from None


def campaigns_of(request: Request) -> CampaignThreads:
    """The campaigns of the service."""
    campaigns: CampaignThreads = request.app.state.campaigns
    return campaigns


async def find_thread(request: Request) -> CampaignThread:
    """The thread of the campaign that the address names, and that the caller means."""
    return await campaigns_of(request).find(name_of(request), id_of(request))


async def read(request: Request, reader: Callable[[Campaign], Answer]) -> Answer:
    """What `reader` makes of that campaign."""
    return await campaigns_of(request).read(name_of(request), reader, id_of(request))


async def submit(request: Request, command: Command) -> Reply:
    """Have the campaign that the address names carry out a command."""
    return await (await find_thread(request)).submit(command)


def name_of(request: Request) -> str:
    """The campaign that the address names."""
    return check_name(request.path_params["name"])


def id_of(request: Request) -> str | None:
    """The campaign that the caller means, by its id: the name may have become another's."""
    given = request.headers.get(CAMPAIGN_HEADER)
    return None if given is None else check_campaign_id(given)


def episode_of(request: Request) -> str:
    """The episode that the address names."""
    return check_episode_id(request.path_params["episode"])

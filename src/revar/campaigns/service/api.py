"""The JSON API: each route checks its request, and asks a campaign."""

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from itertools import islice
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from revar.campaigns import commands
from revar.campaigns.campaign import Campaign
from revar.campaigns.commands import Abandon, Command, EpisodeReply, Finish, Start
from revar.campaigns.definition import checked_name
from revar.campaigns.desk import Reply
from revar.campaigns.export import FORMATS, exported
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
from revar.campaigns.service.replies import from_error, problem, reply
from revar.campaigns.service.workers import Campaigns
from revar.campaigns.verdicts import CampaignError
from revar.errors import InputError
from revar.estimators.estimator import Estimate

LINES = 500  # of a download sent at once
Body = TypeVar("Body")
Endpoint = Callable[[Request], Awaitable[Response]]


class Refused(Exception):  # noqa: N818  # carries a reply, and is no error of the program
    """A request that cannot be read."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def endpoint(function: Endpoint) -> Endpoint:
    """Turn what a caller may do wrong into a reply."""

    @wraps(function)
    async def answered(request: Request) -> Response:
        try:
            return await function(request)
        except Refused as refusal:
            return refusal.response
        except ClientDisconnect:
            return problem(400, "disconnected", "the request broke off")  # nobody reads it
        except Exception as error:
            return from_error(error)

    return answered


@endpoint
async def list_campaigns(request: Request) -> Response:
    """GET /api/campaigns."""
    return reply(CampaignsMessage(await _campaigns(request).names()))


@endpoint
async def create_campaign(request: Request) -> Response:
    """POST /api/campaigns."""
    asked = await _body(request, CreateCampaign)
    question = msgspec.structs.asdict(asked)
    if asked.policy is not None:
        question["policy"] = [(row.state, row.probabilities) for row in asked.policy]
    campaign = await _campaigns(request).create(**question)
    status = await _campaigns(request).read(campaign.name, Campaign.status)
    return reply(StatusMessage.of(status), 201)


@endpoint
async def campaign_status(request: Request) -> Response:
    """GET /api/campaigns/{name}."""
    status = await _campaigns(request).read(_name(request), Campaign.status)
    return reply(StatusMessage.of(status))


@endpoint
async def campaign_estimate(request: Request) -> Response:
    """GET /api/campaigns/{name}/estimate?confidence=0.95."""
    given = request.query_params.get("confidence", "0.95")
    try:
        confidence = float(given)
    except ValueError:
        raise InputError(f"confidence is {given!r}; it must be a number") from None
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {given}; it must lie between 0 and 1")
    estimate = await _campaigns(request).read(_name(request), partial(_estimate, confidence))
    return reply(EstimateMessage.of(estimate))


@endpoint
async def campaign_history(request: Request) -> Response:
    """GET /api/campaigns/{name}/history."""
    looks = await _campaigns(request).read(
        _name(request),
        lambda campaign: campaign.look(lambda state, _: list(state.progress.looks)),
    )
    return reply(HistoryMessage(looks))


@endpoint
async def campaign_data(request: Request) -> Response:
    """GET /api/campaigns/{name}/data?format=jsonl: every complete step."""
    form = request.query_params.get("format", "jsonl")
    if form not in FORMATS:
        raise InputError(f"format is {form!r}; it must be one of {', '.join(FORMATS)}")
    name = _name(request)
    lines = await _campaigns(request).read(
        name, lambda campaign: exported(campaign.definition, campaign.events(), form)
    )
    pieces = iter(lambda: "".join(islice(lines, LINES)), "")
    media = "application/x-ndjson" if form == "jsonl" else "text/csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(pieces, media_type=media, headers=headers)


@endpoint
async def close_campaign(request: Request) -> Response:
    """POST /api/campaigns/{name}/finish."""
    await _body(request, Nothing)
    name = _name(request)
    campaigns = _campaigns(request)
    await (await campaigns.worker(name)).submit(commands.Close())
    return reply(StatusMessage.of(await campaigns.read(name, Campaign.status)))


@endpoint
async def start_episode(request: Request) -> Response:
    """POST /api/campaigns/{name}/episodes."""
    asked = await _body(request, StartEpisode)
    started = await _ask(request, Start(asked.episode or commands.new_episode_id()))
    return reply(EpisodeMessage.of(started), 200 if started.repeated else 201)


@endpoint
async def show_episode(request: Request) -> Response:
    """GET /api/campaigns/{name}/episodes/{episode}."""
    episode = await _campaigns(request).read(
        _name(request), lambda campaign: campaign.episode(_episode(request))
    )
    return reply(
        EpisodeMessage(episode.id, episode.number, episode.steps, episode.over, repeated=True)
    )


@endpoint
async def act(request: Request) -> Response:
    """POST /api/campaigns/{name}/episodes/{episode}/act."""
    asked = await _body(request, ActMessage)
    worker = await _campaigns(request).worker(_name(request))
    definition = worker.campaign.definition
    command = commands.act(
        definition, _episode(request), asked.step, asked.state, asked.probabilities
    )
    done = _about_episode(await worker.submit(command))
    if done.action is None:
        raise AssertionError(f"{command} was answered without an action")
    return reply(
        ActionMessage(done.episode, asked.step, done.action, done.propensity, done.repeated)
    )


@endpoint
async def reward(request: Request) -> Response:
    """POST /api/campaigns/{name}/episodes/{episode}/reward."""
    told = await _body(request, RewardMessage)
    command = commands.reward(_episode(request), told.step, told.reward, told.next_state)
    return reply(EpisodeMessage.of(await _ask(request, command)))


@endpoint
async def finish(request: Request) -> Response:
    """POST /api/campaigns/{name}/episodes/{episode}/finish."""
    await _body(request, Nothing)
    return reply(EpisodeMessage.of(await _ask(request, Finish(_episode(request)))))


@endpoint
async def abandon(request: Request) -> Response:
    """POST /api/campaigns/{name}/episodes/{episode}/abandon."""
    await _body(request, Nothing)
    return reply(EpisodeMessage.of(await _ask(request, Abandon(_episode(request)))))


def _estimate(confidence: float, campaign: Campaign) -> Estimate:
    if campaign.status().estimate is None:
        raise CampaignError("no-estimate", "no step is complete yet")
    return campaign.estimate(confidence)


async def _ask(request: Request, command: Command) -> EpisodeReply:
    worker = await _campaigns(request).worker(_name(request))
    return _about_episode(await worker.submit(command))


def _about_episode(answer: Reply) -> EpisodeReply:
    if isinstance(answer, CampaignError):
        raise answer
    if answer is None:
        raise AssertionError("a command about an episode was not answered")
    return answer


async def _body(request: Request, kind: type[Body]) -> Body:
    """The body of the request as a record of that kind; an empty one has no fields."""
    body = await request.body() or b"{}"
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A page from elsewhere cannot send this type without asking first, and is never allowed to.
    if media != "application/json":
        raise Refused(problem(415, "media-type", "the body must be of type application/json"))
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(problem(422, "invalid", str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(problem(400, "not-json", f"the body is not JSON: {error}")) from None


def _campaigns(request: Request) -> Campaigns:
    campaigns: Campaigns = request.app.state.campaigns
    return campaigns


def _name(request: Request) -> str:
    return checked_name(request.path_params["name"])


def _episode(request: Request) -> str:
    return commands.checked_episode_id(request.path_params["episode"])

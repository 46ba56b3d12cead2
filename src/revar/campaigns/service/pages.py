"""The dashboard's pages: made on the server, refreshed by a few lines of script."""

import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jinja2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from revar.campaigns.campaign import Campaign
from revar.campaigns.definition import LEASE, check_name
from revar.campaigns.limits import MOST_FORBIDDEN
from revar.campaigns.rules import CampaignError, UnknownCampaignError
from revar.campaigns.service.access import RIGHT, SESSION, caller_of, throttled_reply
from revar.campaigns.service.chart import REACH, Axis, EstimateChart, estimate_chart
from revar.campaigns.service.comparison import ComparisonView, closest, view_comparison
from revar.campaigns.service.insight import Evidence, Insight, evidence_of, insight_of
from revar.campaigns.service.threads import CampaignThreads
from revar.campaigns.service.tokens import SESSION_SECONDS, Right, ThrottledError
from revar.campaigns.state import CampaignState, HistoryPoint, history_point
from revar.campaigns.status import Status, status_of
from revar.campaigns.storage.interface import StorageError
from revar.campaigns.text import FILTERS
from revar.errors import InputError
from revar.model.budget import UNITS
from revar.model.question import KINDS
from revar.strategies.strategy import strategies

LISTED = 100  # campaigns on the first page, the latest first
PATIENCE = 1.0  # seconds that a page waits for campaigns to be opened
MOST_LEASES = 20  # shown
MOST_ACTIONS_SHOWN = 6
_logger = logging.getLogger("revar.service")


@dataclass(frozen=True)
class CampaignView:
    """Everything on the page of a campaign."""

    status: Status
    axis: Axis
    chart: EstimateChart | None
    comparison: ComparisonView | None  # of several target policies
    insight: Insight | None
    average_steps_per_second: float

    @property
    def reach(self) -> float:
        """Of the intervals that the page speaks of, in standard errors."""
        ranking = self.status.ranking
        return REACH if ranking is None else ranking.quantile_of_differences

    @property
    def closest(self) -> str:
        """Of several policies, the one that is hardest to tell from the leader."""
        return "" if self.status.ranking is None else closest(self.status.ranking)


def view_of(campaign: Campaign, axis: Axis = Axis.EPISODES) -> CampaignView:
    """The campaign at one moment; what takes long is made of a copy, while others go on."""

    def read(state: CampaignState, now: float) -> tuple[Status, list[HistoryPoint], Evidence]:
        status = status_of(campaign.name, campaign.id, state, now)
        return status, list(state.history.points), evidence_of(state)

    status, points, evidence = campaign.read(read)
    history, began = _history(status, points, axis), status.first_event or status.now
    comparison = None
    if status.ranking is not None:
        comparison = view_comparison(status.ranking, history, axis, began)
        chart = comparison.chart
    else:
        chart = estimate_chart(history, axis, began)
    average = _average_steps_per_second(status)
    return CampaignView(status, axis, chart, comparison, insight_of(status, evidence), average)


def _history(status: Status, points: list[HistoryPoint], axis: Axis) -> list[HistoryPoint]:
    """The points up to now. Over time, the last one shows that nothing happened since."""
    found = status.estimate if status.ranking is None else status.ranking.joint
    if not points or found is None:
        return points
    if points[-1].episodes == status.episodes and axis is not Axis.TIME:
        return points
    end = status.last_event if status.spent else status.now
    return [*points, history_point(end or status.now, status.episodes, status.steps, found)]


def _average_steps_per_second(status: Status) -> float:
    first, last = status.first_event, status.last_event
    if first is None or last is None or last <= first:
        return 0.0
    return status.steps / (last - first)


def routes() -> list[Route]:
    """Every page."""
    return [
        Route("/", overview),
        Route("/new", new),
        Route("/campaigns/{name}", campaign),
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


async def overview(request: Request) -> Response:
    """One line for each campaign; those that are not open yet follow when they are."""
    campaigns = request.app.state.campaigns
    try:
        names = await campaigns.names()
    except StorageError as error:
        return _page(request, "error.html", 503, title="No storage", message=str(error))
    latest = reversed(names[-LISTED:])
    found = await campaigns.read_many(latest, Campaign.status, PATIENCE)
    rows = [_row(campaigns, name, status) for name, status in found.items()]
    archived = [row for row in rows if row.status is not None and row.status.archived]
    show_archived = "archived" in request.query_params
    return _page(
        request,
        "overview.html",
        rows=rows if show_archived else [row for row in rows if row not in archived],
        total=len(names),
        listed=len(rows),
        archived=len(archived),
        show_archived=show_archived,
    )


@dataclass(frozen=True)
class OverviewRow:
    """A campaign in the list: its status, or why there is none, or neither while it is opened."""

    name: str
    status: Status | None
    problem: str = ""
    share_read: float | None = None  # of its log, while it is opened


def _row(campaigns: CampaignThreads, name: str, found: Status | Exception | None) -> OverviewRow:
    if found is None:
        return OverviewRow(name, None, share_read=campaigns.share_read(name))
    if not isinstance(found, Exception):
        return OverviewRow(name, found)
    if isinstance(found, StorageError | CampaignError):
        return OverviewRow(name, None, str(found))
    # A mistake of ours, which must not hide the others.
    _logger.error("campaign %s could not be shown", name, exc_info=found)
    return OverviewRow(name, None, "the service failed; its log says why")


async def campaign(request: Request) -> Response:
    """One campaign."""
    try:
        name = check_name(request.path_params["name"])
        campaigns: CampaignThreads = request.app.state.campaigns
        axis = _axis(request)
        found = await campaigns.read_many([name], lambda c: view_of(c, axis), PATIENCE)
        view = found[name]
        if view is None:
            share = campaigns.share_read(name)
            return _page(request, "opening.html", 202, name=name, share=share)
        if isinstance(view, Exception):
            raise view
    except (InputError, UnknownCampaignError):
        given = request.path_params["name"]
        return _page(
            request, "error.html", 404, title="Not found", message=f"No campaign “{given}”."
        )
    except StorageError as error:
        return _page(request, "error.html", 503, title="No storage", message=str(error))
    except CampaignError as error:
        return _page(request, "error.html", 500, title="Cannot be read", message=str(error))
    return _page(
        request,
        "campaign.html",
        view=view,
        status=view.status,
        most_leases=MOST_LEASES,
        most_actions=MOST_ACTIONS_SHOWN,
        most_forbidden=MOST_FORBIDDEN,
        address=str(request.base_url).rstrip("/"),
    )


def _axis(request: Request) -> Axis:
    """What the chart counts: episodes, unless the address asks for time."""
    asked = request.query_params.get("by")
    return next((axis for axis in Axis if axis.value == asked), Axis.EPISODES)


async def new(request: Request) -> Response:
    """The form that creates a campaign; its script sends it to the API."""
    ids = [name for name in strategies.ids() if not strategies.find(name)().needs_model]
    return _page(request, "new.html", strategies=ids, lease=LEASE, questions=KINDS, units=UNITS)


async def login(request: Request) -> Response:
    """A token becomes a session of this browser."""
    access = request.app.state.access
    if not access.needed:
        return RedirectResponse("/", status_code=303)
    if request.method == "GET":
        return _page(request, "login.html", outside=True, wrong=False)
    # The token in the body of a form, never in an address.
    try:
        form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=5)
    except (ClientDisconnect, ValueError):
        form = {}  # it broke off, or has more fields than the page
    token = form.get("token", [""])[0].strip()
    try:
        right = access.check(token, caller_of(request.scope))
    except ThrottledError as error:
        request.app.state.metrics.throttled.inc()
        return throttled_reply(error)
    if right is Right.NONE:
        return _page(request, "login.html", 401, outside=True, wrong=True)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        SESSION,
        access.new_session(token),
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


async def logout(request: Request) -> Response:
    """End the session of this browser."""
    request.app.state.access.end_session(request.cookies.get(SESSION, ""))
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(SESSION)
    return response


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


def _page(request: Request, template: str, code: int = 200, **values: Any) -> Response:
    known = {
        "guarded": request.app.state.access.needed,
        "may_write": request.scope[RIGHT] is Right.WRITE,
        "outside": False,
        **values,
    }
    return HTMLResponse(_templates().get_template(template).render(known), code)

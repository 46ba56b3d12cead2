"""What the page of a campaign shows."""

from dataclasses import dataclass

from revar.campaigns.campaign import Campaign
from revar.campaigns.fold import CampaignState
from revar.campaigns.insight import Insight, insight_of
from revar.campaigns.progress import Look, looked_at
from revar.campaigns.service.charts import Across, Chart, estimate_chart
from revar.campaigns.status import Status, status_of

MOST_LEASES = 20  # shown
MOST_ACTIONS_SHOWN = 6


@dataclass(frozen=True)
class CampaignView:
    """Everything on the page of a campaign."""

    status: Status
    across: Across
    chart: Chart | None
    insight: Insight | None
    average_pace: float


def view_of(campaign: Campaign, across: Across = Across.EPISODES) -> CampaignView:
    """One consistent look at the campaign."""

    def read(state: CampaignState, now: float) -> CampaignView:
        status = status_of(campaign.name, campaign.id, state, now)
        chart = estimate_chart(_looks(state, now, across), across, status.first or now)
        return CampaignView(status, across, chart, insight_of(state), _average_pace(status))

    return campaign.look(read)


def _looks(state: CampaignState, now: float, across: Across) -> list[Look]:
    """Those kept, and one at the present; over time it shows that nothing happened since."""
    looks = list(state.progress.looks)
    ledger = state.ledger
    if looks and (looks[-1].episodes < ledger.finished or across is Across.TIME):
        end = state.progress.last if ledger.spent else now
        collection = state.learner.collection
        current = looked_at(end or now, ledger.finished, ledger.steps, collection)
        if current is not None:
            looks.append(current)
    return looks


def _average_pace(status: Status) -> float:
    if status.first is None or status.last is None or status.last <= status.first:
        return 0.0
    return status.steps / (status.last - status.first)

"""An episode of a campaign behind a service, in async calls."""

from collections.abc import Mapping
from typing import Any, Protocol, overload

from revar.campaigns.commands import Act, ActionReply, EpisodeReply
from revar.campaigns.definition import Definition
from revar.campaigns.episode import EpisodeProgress
from revar.campaigns.events import Finished, Released, Renewed, Rewarded


class CommandedAsyncCampaign(Protocol):
    """See `CommandedCampaign`."""

    @property
    def definition(self) -> Definition:
        """What it asks."""

    @overload
    async def execute_one(self, command: Act) -> ActionReply: ...

    @overload
    async def execute_one(
        self, command: Rewarded | Finished | Released | Renewed
    ) -> EpisodeReply: ...


class AsyncEpisode(EpisodeProgress):
    """See `CampaignEpisode`; every method is to be awaited."""

    def __init__(self, campaign: CommandedAsyncCampaign, reply: EpisodeReply) -> None:
        super().__init__(campaign.definition, reply)
        self._campaign = campaign

    async def act(self, state: Any, probabilities: Any = None) -> int:
        """See `CampaignEpisode.act`."""
        return self._take(await self._campaign.execute_one(self._ask(state, probabilities)))

    async def reward(
        self,
        reward: float,
        next_state: Any,
        *,
        cost: float | None = None,
        amounts: Mapping[str, float] | None = None,
    ) -> None:
        """See `CampaignEpisode.reward`."""
        told = self._tell(reward, next_state, cost, amounts)
        self._follow(await self._campaign.execute_one(told))

    async def finish(self) -> None:
        """See `CampaignEpisode.finish`."""
        self._follow(await self._campaign.execute_one(self._finished()))

    async def abandon(self) -> None:
        """See `CampaignEpisode.abandon`."""
        self._follow(await self._campaign.execute_one(self._abandoned()))

    async def heartbeat(self) -> None:
        """See `CampaignEpisode.heartbeat`."""
        self._follow(await self._campaign.execute_one(self._renewed()))

"""An episode of a campaign as its caller sees it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from revar.campaigns.commands import EpisodeReply, ask_action, tell_reward
from revar.campaigns.events import Finished

if TYPE_CHECKING:
    from revar.campaigns.campaign import Campaign


class CampaignEpisode:
    """An episode in the hands of a caller, who asks for actions and reports what they led to.

    A call that failed on its way, without an answer, may simply be made again: nothing counts
    twice, and the same step gets the same action.
    """

    def __init__(self, campaign: "Campaign", reply: EpisodeReply) -> None:
        self._campaign = campaign
        self.id = reply.episode
        self.number = reply.number
        self.steps = reply.steps  # complete ones
        self.over = reply.over
        self.propensity: float | None = None  # of the last action, where it was drawn

    def act(self, state: Any, probabilities: Any = None) -> int:
        """The action to take in `state`, any value that JSON can represent.

        `probabilities` are the target policy's in this state, where the campaign has no table; of
        several policies, by their names.
        """
        definition = self._campaign.definition
        command = ask_action(definition, self.id, self.steps, state, probabilities)
        reply = self._campaign.execute_one(command)
        self.propensity = reply.propensity
        return reply.action

    def reward(
        self,
        reward: float,
        next_state: Any,
        *,
        cost: float | None = None,
        amounts: Mapping[str, float] | None = None,
    ) -> None:
        """The last action gave `reward` and led to `next_state`, None where the episode ended.

        Where the budget is of cost, `cost` is what the step took from it; where sums are limited,
        `amounts` are what it added to each, by name.
        """
        definition = self._campaign.definition
        told = tell_reward(definition, self.id, self.steps, reward, next_state, cost, amounts)
        self._follow(self._campaign.execute_one(told))

    def finish(self) -> None:
        """Nothing more will come: it is over, and has used its place in the budget.

        Not needed after the episode's end or its last step; it does no harm there.
        """
        self._follow(self._campaign.execute_one(Finished(self.id)))

    def abandon(self) -> None:
        """Give the place in the budget back at once; complete steps count."""
        self._follow(self._campaign.release(self.id))

    def heartbeat(self) -> None:
        """A sign of life while a step takes long: the lease begins anew."""
        self._follow(self._campaign.heartbeat(self.id))

    def _follow(self, reply: EpisodeReply) -> None:
        self.steps, self.over = reply.steps, reply.over

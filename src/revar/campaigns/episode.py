"""An episode of a campaign as its caller sees it."""

from collections.abc import Mapping
from typing import Any, Protocol, overload

from revar.campaigns.commands import Act, ActionReply, EpisodeReply, ask_action, tell_reward
from revar.campaigns.definition import Definition
from revar.campaigns.events import Finished, Released, Renewed, Rewarded


class DescribedCampaign(Protocol):
    """A campaign, here or behind a service: what never changes about it."""

    @property
    def id(self) -> str:
        """That no other campaign has."""

    @property
    def definition(self) -> Definition:
        """What it asks."""


class CommandedCampaign(DescribedCampaign, Protocol):
    """One that carries out commands."""

    @overload
    def execute_one(self, command: Act) -> ActionReply: ...

    @overload
    def execute_one(self, command: Rewarded | Finished | Released | Renewed) -> EpisodeReply: ...


class EpisodeProgress:
    """How far an episode is, and the commands that its caller gives from there.

    The number of the step is part of a command, so that the same command again changes nothing.
    """

    def __init__(self, definition: Definition, reply: EpisodeReply) -> None:
        self._definition = definition
        self.id = reply.episode
        self.number = reply.number
        self.steps = reply.steps  # complete ones
        self.over = reply.over
        self.propensity: float | None = None  # of the last action, where it was drawn

    def __repr__(self) -> str:
        return f"{type(self).__name__}(number={self.number}, steps={self.steps}, over={self.over})"

    def _ask(self, state: Any, probabilities: Any) -> Act:
        return ask_action(self._definition, self.id, self.steps, state, probabilities)

    def _tell(self, reward: float, next_state: Any, cost: Any, amounts: Any) -> Rewarded:
        told = reward, next_state, cost, amounts
        return tell_reward(self._definition, self.id, self.steps, *told)

    def _finished(self) -> Finished:
        return Finished(self.id)

    def _abandoned(self) -> Released:
        return Released(self.id, "abandoned")

    def _renewed(self) -> Renewed:
        return Renewed(self.id)

    def _take(self, reply: ActionReply) -> int:
        self.propensity = reply.propensity
        return reply.action

    def _follow(self, reply: EpisodeReply) -> None:
        self.steps, self.over = reply.steps, reply.over


class CampaignEpisode(EpisodeProgress):
    """An episode in the hands of a caller, who asks for actions and reports what they led to.

    A call that failed on its way, without an answer, may simply be made again: nothing counts
    twice, and the same step gets the same action.
    """

    def __init__(self, campaign: CommandedCampaign, reply: EpisodeReply) -> None:
        super().__init__(campaign.definition, reply)
        self._campaign = campaign

    def act(self, state: Any, probabilities: Any = None) -> int:
        """The action to take in a state.

        Parameters
        ----------
        state
            Any value that JSON can represent.
        probabilities
            The target policy's in this state, where the campaign has no table; of several
            policies, by their names.
        """
        return self._take(self._campaign.execute_one(self._ask(state, probabilities)))

    def reward(
        self,
        reward: float,
        next_state: Any,
        *,
        cost: float | None = None,
        amounts: Mapping[str, float] | None = None,
    ) -> None:
        """What the last action led to.

        Parameters
        ----------
        reward
            What it gave.
        next_state
            Where it led; None where the episode ended.
        cost
            What the step took from a budget of cost.
        amounts
            What it added to each limited sum, by name.
        """
        told = self._tell(reward, next_state, cost, amounts)
        self._follow(self._campaign.execute_one(told))

    def finish(self) -> None:
        """Nothing more will come: it is over, and has used its place in the budget.

        Not needed after the episode's end or its last step; it does no harm there.
        """
        self._follow(self._campaign.execute_one(self._finished()))

    def abandon(self) -> None:
        """Give the place in the budget back at once; complete steps count."""
        self._follow(self._campaign.execute_one(self._abandoned()))

    def heartbeat(self) -> None:
        """A sign of life while a step takes long: the lease begins anew."""
        self._follow(self._campaign.execute_one(self._renewed()))

"""Episode: one episode of a campaign in the hands of a worker."""

from typing import Any, Protocol

from revar.campaigns import commands
from revar.campaigns.commands import Abandon, Command, EpisodeReply, Finish
from revar.campaigns.definition import Definition


class Asked(Protocol):
    """Whoever carries out commands about episodes."""

    def ask(self, command: Command) -> EpisodeReply:
        """Carry out a command."""


class Episode:
    """Asks for actions and reports what they led to.

    A call that failed on its way, without an answer, may simply be made again: nothing counts
    twice, and the same step gets the same action.
    """

    def __init__(self, campaign: Asked, definition: Definition, reply: EpisodeReply) -> None:
        self._campaign = campaign
        self._definition = definition
        self.id = reply.episode
        self.number = reply.number
        self.steps = reply.steps  # complete ones
        self.over = reply.over
        self.propensity: float | None = None  # of the last action, where it was drawn

    def act(self, state: Any, probabilities: Any = None) -> int:
        """The action to take in `state`, any value that JSON can represent.

        `probabilities` are the target policy's in this state, where the campaign has no table.
        """
        command = commands.act(self._definition, self.id, self.steps, state, probabilities)
        reply = self._campaign.ask(command)
        if reply.action is None:
            raise AssertionError(f"{command} was answered without an action")
        self.propensity = reply.propensity
        return reply.action

    def reward(self, reward: float, next_state: Any) -> None:
        """The last action gave `reward` and led to `next_state`, None where the episode ended."""
        self._follow(self._campaign.ask(commands.reward(self.id, self.steps, reward, next_state)))

    def finish(self) -> None:
        """Nothing more will come: it is over, and has used its place in the budget.

        Not needed after the episode's end or its last step; it does no harm there.
        """
        self._follow(self._campaign.ask(Finish(self.id)))

    def abandon(self) -> None:
        """Give the place in the budget back at once; complete steps count."""
        self._follow(self._campaign.ask(Abandon(self.id)))

    def _follow(self, reply: EpisodeReply) -> None:
        self.steps, self.over = reply.steps, reply.over

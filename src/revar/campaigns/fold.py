"""The state of a campaign: its log, folded event by event."""

from revar.campaigns.definition import Definition
from revar.campaigns.events import Event, Rewarded
from revar.campaigns.learning import Learner
from revar.campaigns.ledger import Ledger
from revar.campaigns.progress import Progress
from revar.campaigns.rules import apply
from revar.campaigns.verdicts import Effect, Verdict


class CampaignState:
    """Rules, learning and progress up to a position of the log."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.ledger = Ledger(definition)
        self.learner = Learner(definition)
        self.progress = Progress()
        self.position = 0

    def apply(self, position: int, time: float, event: Event) -> Verdict:
        """Fold the next event."""
        if position != self.position + 1:
            raise AssertionError(f"event {position} follows on event {self.position}")
        finished = self.ledger.finished
        verdict = apply(self.ledger, event, time)
        self.position = position
        if verdict.effect is Effect.TAKEN:
            self.learner.learn(event, self.ledger)
            self.progress.saw_event(time)
            if isinstance(event, Rewarded):
                self.progress.saw_step(time)
            if self.ledger.finished > finished:
                self.progress.saw_finish(
                    time, self.ledger.finished, self.ledger.steps, self.learner.collection
                )
        return verdict

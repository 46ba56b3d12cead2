"""What a campaign has learned: the collection, fed by the events that took effect."""

from dataclasses import dataclass
from math import isnan, nan

from revar.campaigns.definition import Definition, collection_of
from revar.campaigns.events import Acted, Event, Finished, Rewarded, Started
from revar.campaigns.ledger import EpisodeRecord, Ledger
from revar.collection import Episode


@dataclass(frozen=True)
class Choice:
    """An action that could be taken, and how far choosing it took the random stream."""

    action: int
    propensity: float | None
    draws: int


class Learner:
    """The one place where campaigns meet `revar.collection`.

    States are known to it by their canonical bytes. Choosing changes nothing that counts: the
    choice is learned when its event comes back from the log.
    """

    def __init__(self, definition: Definition) -> None:
        self.collection = collection_of(definition)
        self.episodes: dict[int, Episode] = {}  # by number, those that may still learn something

    def choose(
        self, record: EpisodeRecord, state: bytes, probabilities: tuple[float, ...]
    ) -> Choice:
        """The strategy's choice in that state."""
        episode = self.episodes[record.number]
        action, propensity, draws = episode.choose(state, probabilities)
        return Choice(action, None if isnan(propensity) else propensity, draws)

    def learn(self, event: Event, ledger: Ledger) -> None:
        """Follow an event that took effect; the ledger has taken it already."""
        if isinstance(event, Started):
            number = ledger.episodes[event.episode].number
            self.episodes[number] = self.collection.start(number)
        elif isinstance(event, Acted):
            record = ledger.episodes[event.episode]
            state = bytes(event.state)
            target = ledger.policy[state]
            self.episodes[record.number].repeat(
                state,
                target,
                event.action,
                nan if event.propensity is None else event.propensity,
                draws=event.draws,
            )
        elif isinstance(event, Rewarded):
            record = ledger.episodes[event.episode]
            self.episodes[record.number].observe(event.reward, event.following)
            self._finish(record)
        elif isinstance(event, Finished):
            self._finish(ledger.episodes[event.episode])
        else:
            self.collection.budget = ledger.budget  # two campaigns may have been joined

    def _finish(self, record: EpisodeRecord) -> None:
        """Count an episode that is over once, and forget it when nothing more can come of it."""
        episode = self.episodes[record.number]
        if record.finished and not episode.finished:
            episode.finish()
        if record.over and record.waiting is None:
            del self.episodes[record.number]

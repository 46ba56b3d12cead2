"""Campaign: live collection that hands out decisions and takes back outcomes, durably."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from revar.campaigns.commands import (
    EpisodeReply,
    check_campaign_id,
    check_episode_id,
    new_campaign_id,
    new_episode_id,
)
from revar.campaigns.definition import LEASE, StrategyRecord, check_name, define
from revar.campaigns.episode import CampaignEpisode
from revar.campaigns.events import Closed, Started
from revar.campaigns.export import dataset_of, export_episodes
from revar.campaigns.log import CampaignLog
from revar.campaigns.rules import (
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
    UnknownCampaignError,
)
from revar.campaigns.state import CampaignState
from revar.campaigns.status import Status, ranking_of, status_of
from revar.campaigns.storage import Storage, open_storage
from revar.campaigns.storage.interface import NameTakenError
from revar.collection import Collection
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.limits import Limits
from revar.model.trajectory import Dataset
from revar.strategies.strategy import Strategy


class Campaign(CampaignLog):
    """One campaign of a storage, seen from one process. May be used from any thread."""

    @classmethod
    def create(
        cls,
        storage: Storage | str,
        name: str,
        *,
        policy: Any = None,
        policies: Any = None,
        question: str | None = None,
        actions: int | None = None,
        horizon: int,
        discount: float = 1.0,
        episodes: int | None = None,
        steps: int | None = None,
        budget: float | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        strategy: str | Strategy | StrategyRecord = "flow",
        seed: int | None = None,
        lease: float = LEASE,
        campaign_id: str | None = None,
    ) -> "Campaign":
        """A new campaign.

        The budget is one of `episodes`, `steps`, and `budget`: then every `reward` tells what its
        step cost. `limits` is what collection may not do: a `revar.Limits`, or a mapping of its
        arguments, with `max_sums` by name; every `reward` tells the amounts of these.

        `policy` is a table: {state: probabilities}, pairs of states and probabilities, or an
        array [S, A] over states 0, 1, ...; without one, every `act` brings the target policy's
        probabilities, and `actions` says how many there are. `policies` are several to compare:
        {name: table}, or names alone; the `question` is "best" (the default), "values", or
        "difference" of two. An episode that is silent for `lease` seconds gives its place in the
        budget to another one. The same name and `campaign_id` again give the same campaign, as it
        was first created.
        """
        definition = define(
            policy=policy,
            policies=policies,
            question=question,
            actions=actions,
            horizon=horizon,
            discount=discount,
            episodes=episodes,
            steps=steps,
            budget=budget,
            limits=limits,
            strategy=strategy,
            seed=seed,
            lease=lease,
        )
        store = open_storage(storage)
        body = msgspec.json.encode(definition)
        chosen = new_campaign_id() if campaign_id is None else check_campaign_id(campaign_id)
        try:
            return cls(store, store.create(chosen, check_name(name), body))
        except NameTakenError:
            found = store.find(name)
            if found is None or found.id != chosen:
                raise
            return cls(store, found)

    @classmethod
    def open(cls, storage: Storage | str, name: str) -> "Campaign":
        """The campaign of that name, as it stands."""
        store = open_storage(storage, create=False)
        entry = store.find(check_name(name))
        if entry is None:
            raise UnknownCampaignError(name)
        return cls(store, entry)

    @classmethod
    def copy_of(cls, source: "Campaign", storage: Storage | str, name: str) -> "Campaign":
        """An empty copy in another storage, with the same question and id, to merge into."""
        store = open_storage(storage)
        body = msgspec.json.encode(source.definition)
        return cls(store, store.create(source.id, check_name(name), body))

    # -- collecting ------------------------------------------------------------------------

    def start_episode(self, episode_id: str | None = None) -> CampaignEpisode:
        """Reserve a place in the budget.

        Raises `BudgetSpentError` where nothing is left to do, and `BudgetReservedError` where
        other workers hold all that is left. The same id again gives the same episode.
        """
        chosen = new_episode_id() if episode_id is None else check_episode_id(episode_id)
        return CampaignEpisode(self, self.execute_one(Started(chosen)))

    def episode(self, episode_id: str) -> CampaignEpisode:
        """An episode that was started before, here or elsewhere."""
        return CampaignEpisode(self, self.find_episode(episode_id))

    def episodes(self, poll: float = 1.0) -> Iterator[CampaignEpisode]:
        """Episodes until the budget is spent; waits while other workers hold all that is left."""
        while True:
            try:
                yield self.start_episode()
            except BudgetSpentError:
                return
            except BudgetReservedError as error:
                time.sleep(min(poll, error.retry_after + 0.001))

    def close(self) -> None:
        """Start no more episodes; open ones may still act and report."""
        self.execute_one(Closed())

    # -- reading ---------------------------------------------------------------------------

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The target policy's value from every complete step so far."""
        if self.definition.policies is not None:
            raise CampaignError("several-policies", "there are several target policies: rank them")
        return self.read(lambda state, _: _with_steps(state).estimate(confidence))

    def ranking(self, confidence: float = 0.95) -> Ranking:
        """The values of several target policies, the leader, and its differences to the others."""
        if self.definition.policies is None:
            raise CampaignError("one-policy", "there is one target policy: estimate its value")
        return self.read(lambda state, _: ranking_of(_with_steps(state), confidence))

    def status(self) -> Status:
        """Budget, leases, steps per second and estimate."""
        return self.read(lambda state, now: status_of(self.name, self.id, state, now))

    def find_episode(self, episode_id: str) -> EpisodeReply:
        """Where an episode stands."""
        with self._lock:
            self.refresh()
            record = self._state.records.get(episode_id)
            if record is None:
                raise CampaignError("unknown-episode", f"there is no episode {episode_id!r}")
            return EpisodeReply.of(record, repeated=True)

    def dataset(self, *, partial: bool = False) -> Dataset:
        """The complete episodes; with `partial` also the complete steps of the others."""
        episodes = export_episodes(self.definition, self.events())
        return dataset_of(self.definition, episodes, partial=partial)


def _with_steps(state: CampaignState) -> Collection:
    """The collection, once it can say something of values."""
    if state.steps == 0:
        raise CampaignError("no-estimate", "no step is complete yet")
    return state.collection

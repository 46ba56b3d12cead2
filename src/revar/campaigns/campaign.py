"""Campaign: live collection that hands out decisions and takes back outcomes, durably."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from revar.campaigns.commands import (
    ActionReply,
    Command,
    EpisodeReply,
    ask_action,
    check_campaign_id,
    check_episode_id,
    extend_budget,
    new_campaign_id,
    new_episode_id,
    tell_reward,
)
from revar.campaigns.defining import define
from revar.campaigns.definition import CONFIDENCE, LEASE, StrategyRecord, check_name
from revar.campaigns.episode import CampaignEpisode, DescribedCampaign
from revar.campaigns.events import (
    Archived,
    Closed,
    Released,
    Renewed,
    Reopened,
    Started,
)
from revar.campaigns.export import dataset_of, export_episodes
from revar.campaigns.log import CampaignLog, Progress
from revar.campaigns.requests import (
    ActRequest,
    RequestError,
    RequestKind,
    RewardReport,
    answer_requests,
    make_commands,
)
from revar.campaigns.rules import (
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
)
from revar.campaigns.state import CampaignState
from revar.campaigns.status import Status, ranking_of, status_of
from revar.campaigns.storage import Storage, open_storage
from revar.campaigns.storage.interface import NameTakenError
from revar.campaigns.stored import find_entry
from revar.errors import InputError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.limits import Limits
from revar.model.trajectory import Dataset
from revar.model.validation import check_confidence, check_count
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
        half_width: float | None = None,
        confidence: float = CONFIDENCE,
        campaign_id: str | None = None,
    ) -> "Campaign":
        """A new campaign.

        Parameters
        ----------
        storage
            A storage, or its address: see `open_storage`.
        name
            Under which it is found.
        policy
            A table: {state: probabilities}, pairs of states and probabilities, or an array [S, A]
            over states 0, 1, ...; without one every `act` brings the target policy's probabilities.
        policies
            Several to compare: {name: table}, or names alone.
        question
            Of several policies: "best" (the default), "values", or "difference" of two.
        actions
            How many there are, where no table says so.
        horizon
            Steps after which an episode is over.
        discount
            Of later rewards.
        episodes, steps
            What may be spent; one of these and `budget`.
        budget
            What may be spent of a cost, which every `reward` then tells.
        limits
            What collection may not do: a `revar.Limits`, or a mapping of its arguments, with
            `max_sums` by name; every `reward` tells the amounts of these.
        strategy
            An id, or a registered strategy with its parameters.
        seed
            Of all choices; drawn if it is not given.
        lease
            Seconds of silence after which an episode gives its place in the budget to another one.
        half_width
            Start no more episodes once the interval is as narrow; it allows for every look at it.
        confidence
            Of that interval.
        campaign_id
            The same name and id again give the same campaign, as it was first created.
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
            half_width=half_width,
            confidence=confidence,
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
    def open(
        cls, storage: Storage | str, name: str, progress: Progress | None = None
    ) -> "Campaign":
        """The campaign of that name, as it stands.

        Parameters
        ----------
        storage
            A storage, or its address, which must exist.
        name
            Of the campaign.
        progress
            Called with how many events of the log have been read, and how many there are, where
            there is no snapshot.
        """
        store = open_storage(storage, create=False)
        return cls(store, find_entry(store, name), progress)

    @classmethod
    def copy_of(cls, source: DescribedCampaign, storage: Storage | str, name: str) -> "Campaign":
        """An empty copy in another storage, with the same question and id, to merge into.

        Parameters
        ----------
        source
            The campaign whose question and id it gets.
        storage
            A storage, or its address: see `open_storage`.
        name
            Under which it is found there.
        """
        store = open_storage(storage)
        body = msgspec.json.encode(source.definition)
        return cls(store, store.create(source.id, check_name(name), body))

    @classmethod
    def delete(cls, storage: Storage | str, name: str) -> None:
        """Remove an archived campaign with its log, for good.

        Parameters
        ----------
        storage
            A storage, or its address, which must exist.
        name
            Of the campaign.
        """
        store = open_storage(storage, create=False)
        if not cls.open(store, name).read(lambda state, _: state.archived):
            raise CampaignError(
                "not-archived", f"campaign {name!r} is not archived: archive it first"
            )
        store.delete(name)

    # -- collecting ------------------------------------------------------------------------

    def start_episode(self, episode_id: str | None = None) -> CampaignEpisode:
        """Reserve a place in the budget.

        Raises `BudgetSpentError` where nothing is left to do, and `BudgetReservedError` where
        other workers hold all that is left. The same id again gives the same episode.

        Parameters
        ----------
        episode_id
            By which it is found again; made up if it is not given.
        """
        chosen = new_episode_id() if episode_id is None else check_episode_id(episode_id)
        return CampaignEpisode(self, self.execute_one(Started(chosen)))

    def episode(self, episode_id: str) -> CampaignEpisode:
        """An episode that was started before, here or elsewhere.

        Parameters
        ----------
        episode_id
            Of the episode.
        """
        return CampaignEpisode(self, self.find_episode(episode_id))

    def episodes(self, poll: float = 1.0) -> Iterator[CampaignEpisode]:
        """Episodes until the budget is spent; waits while other workers hold all that is left.

        Parameters
        ----------
        poll
            Seconds between two looks whether others have given a place back.
        """
        while True:
            try:
                yield self.start_episode()
            except BudgetSpentError:
                return
            except BudgetReservedError as error:
                time.sleep(min(poll, error.retry_after + 0.001))

    def start_episodes(self, count: int) -> list[CampaignEpisode]:
        """Reserve up to `count` places in one commit: as many as are free, at least one.

        Raises what `start_episode` raises where there is none.

        Parameters
        ----------
        count
            How many at most.
        """
        free = self.read(lambda state, _: state.free)
        ids = [new_episode_id() for _ in range(min(check_count(count, "count"), max(free, 1)))]
        replies = self.execute([Started(each) for each in ids])
        started = [reply for reply in replies if isinstance(reply, EpisodeReply)]
        if not started:
            raise next(reply for reply in replies if isinstance(reply, CampaignError))
        return [CampaignEpisode(self, reply) for reply in started]

    def act_many(self, requests: Iterable[ActRequest]) -> list[ActionReply | RequestError]:
        """The actions of steps of several episodes, in one commit.

        An answer for each request, in order; one that is refused is answered by its error, and
        does not touch the others.

        Parameters
        ----------
        requests
            The id of an episode, the step, the state and, where no table has them,
            probabilities each: an `ActRequest` or a tuple.
        """
        return self._carry_out(ActRequest, partial(ask_action, self.definition), requests)

    def reward_many(self, reports: Iterable[RewardReport]) -> list[EpisodeReply | RequestError]:
        """What the actions of several episodes led to, in one commit; answers as of `act_many`.

        Parameters
        ----------
        reports
            The id of an episode, the step, its reward and the next state each: a
            `RewardReport` or a tuple.
        """
        return self._carry_out(RewardReport, partial(tell_reward, self.definition), reports)

    def heartbeat(self, episode_id: str) -> EpisodeReply:
        """A sign of life of an episode whose step takes long: its lease begins anew.

        Parameters
        ----------
        episode_id
            Of the episode.
        """
        return self.execute_one(Renewed(episode_id))

    def release(self, episode_id: str) -> EpisodeReply:
        """Give an episode's place in the budget to others at once; its complete steps count.

        Parameters
        ----------
        episode_id
            Of the episode.
        """
        return self.execute_one(Released(episode_id, "abandoned"))

    def _carry_out(
        self, kind: RequestKind, command: Callable[..., Command], asked: Iterable[Any]
    ) -> list[Any]:
        """The answers to requests in one commit, errors among them."""
        made = make_commands(kind, command, asked)
        replies = self.execute([each for each in made if not isinstance(each, InputError)])
        return answer_requests(made, replies)

    # -- its end, and after ----------------------------------------------------------------

    def close(self) -> None:
        """Start no more episodes; open ones may still act and report."""
        self.execute_one(Closed())

    def extend(
        self,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        budget: float | None = None,
        extension_id: str | None = None,
    ) -> None:
        """Add so much to the budget, in its unit; one that was spent goes on.

        The same `extension_id` again adds nothing.

        Parameters
        ----------
        episodes, steps, budget
            How much more; the one that the campaign was created with.
        extension_id
            Makes it safe to ask again where no answer came.
        """
        self.execute_one(extend_budget(self.definition, episodes, steps, budget, extension_id))

    def reopen(self) -> None:
        """Start episodes again, after it was closed, archived, or found precise enough."""
        self.execute_one(Reopened())

    def archive(self) -> None:
        """Close it, and have lists leave it out; it can still be read, and reopened."""
        self.execute_one(Archived())

    # -- reading ---------------------------------------------------------------------------

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The target policy's value from every complete step so far.

        Parameters
        ----------
        confidence
            Of the interval.
        """
        if self.definition.policies is not None:
            raise CampaignError("several-policies", "there are several target policies: rank them")
        level = check_confidence(confidence)
        return self.read(lambda state, _: _with_steps(state).estimate(level))

    def ranking(self, confidence: float = 0.95) -> Ranking:
        """The values of several target policies, the leader, and its differences to the others.

        Parameters
        ----------
        confidence
            Of the intervals, and of the choice of the best.
        """
        if self.definition.policies is None:
            raise CampaignError("one-policy", "there is one target policy: estimate its value")
        level = check_confidence(confidence)
        return self.read(lambda state, _: ranking_of(_with_steps(state).collection, level))

    def status(self) -> Status:
        """Budget, leases, steps per second and estimate."""
        return self.read(lambda state, now: status_of(self.name, self.id, state, now))

    def find_episode(self, episode_id: str) -> EpisodeReply:
        """Where an episode stands.

        Parameters
        ----------
        episode_id
            Of the episode.
        """

        def find(state: CampaignState, _: float) -> EpisodeReply:
            record = state.records.get(episode_id)
            if record is None:
                raise CampaignError("unknown-episode", f"there is no episode {episode_id!r}")
            return EpisodeReply.of(record, repeated=True)

        return self.read(find)

    def dataset(self, *, partial: bool = False) -> Dataset:
        """The complete episodes; with `partial` also the complete steps of the others.

        Parameters
        ----------
        partial
            Whether episodes that are not over count, too.
        """
        episodes = export_episodes(self.definition, self.events())
        return dataset_of(self.definition, episodes, partial=partial)


def _with_steps(state: CampaignState) -> CampaignState:
    """The state, once it can say something of values."""
    if state.steps == 0:
        raise CampaignError("no-estimate", "no step is complete yet")
    return state

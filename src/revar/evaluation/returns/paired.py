"""Several policies that play in turn, from the same resets: episodes come in pairs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from revar.critics.pairs import correct_pairs, joint_covariance
from revar.estimators.estimator import Estimate, JointEstimate
from revar.evaluation.comparison import ComparisonResult
from revar.evaluation.goals import ComparisonGoal
from revar.evaluation.returns.fitting import ReturnEstimator
from revar.evaluation.returns.play import make_player
from revar.evaluation.returns.result import PairedFindings, ReturnFindings
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.evaluation.target_policies import name_policy
from revar.interrupts import Interrupt
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes
from revar.model.law import Law
from revar.policies.sampled import known_law


def make_players(
    env: Any,
    policies: dict[str, Any],
    *,
    horizon: int,
    seed: int,
    features: Any,
    cost: Any,
    interrupt: Interrupt | None = None,
) -> Any:
    """A player of one policy, or of several in turn."""
    players = []
    for name, policy in policies.items():
        with name_policy(name):
            players.append(
                make_player(
                    env,
                    policy,
                    horizon=horizon,
                    seed=seed,
                    features=features,
                    cost=cost,
                    interrupt=interrupt,
                )
            )
    return players[0] if len(players) == 1 else PairedEpisodes(tuple(policies), players)


class PairedEpisodes:
    """Episode n of the run is episode n // J of policy n % J, and is seeded by n // J.

    So the policies start from the same first observations. Where their laws differ, the noise of
    a step has columns for all of them, and those of the others are zero.
    """

    def __init__(self, names: tuple[str, ...], players: Sequence[Any]) -> None:
        self.names = names
        self.players = players
        self.settings = [player.setting for player in players]
        self.setting = self.settings[0]
        self.width = len(players) * int(players[0].width)

    @cached_property
    def laws(self) -> "LawsInTurn":
        """How the policies draw; those that have not told yet are asked at an observation."""
        laws = [known_law(setting.policy) for setting in self.settings]
        if None in laws:
            seen = self.first_observation()
            for name, setting, law in zip(self.names, self.settings, laws, strict=True):
                if law is None:
                    with name_policy(name):
                        setting.policy.draw([seen], [np.random.default_rng(0)])
        return LawsInTurn(tuple(setting.policy.law for setting in self.settings))

    def play(self, first: int, count: int) -> Episodes:
        """The episodes, one of each policy at a time, or as many as there are side by side."""
        done: list[Episodes] = []
        for begin in range(first, first + count, self.width):
            end = min(begin + self.width, first + count)
            try:
                done.append(self._play(begin, end))
            except (EpisodeError, Stopped) as error:
                if error.complete is not None:
                    done.append(error.complete)
                error.complete = Episodes.join(done) if done else None
                raise
        return Episodes.join(done)

    def _play(self, begin: int, end: int) -> Episodes:
        count, parts = len(self.players), []
        for place, player in enumerate(self.players):
            own, until = -(-(begin - place) // count), -(-(end - place) // count)
            if own >= until:
                continue
            try:
                parts.append(self.laws.widen(player.play(own, until - own), place))
            except (EpisodeError, Stopped) as error:
                if error.complete is not None:
                    parts.append(self.laws.widen(error.complete, place))
                trouble: EpisodeError | Stopped = error
                if isinstance(error, EpisodeError):
                    number = error.episode * count + place
                    trouble = EpisodeError(f"policy {self.names[place]!r}: {error}", number)
                trouble.complete = _without_gaps(parts, begin)
                raise trouble from error
        return _in_order(Episodes.join(parts))

    def resets(self, first: int, count: int) -> FloatArray:
        """First observations are the same for all of them."""
        found: FloatArray = self.players[0].resets(first, count)
        return found

    def first_observation(self, number: int = 0) -> Any:
        """That of episode `number` of each policy."""
        return self.players[0].first_observation(number)


def _in_order(episodes: Episodes) -> Episodes:
    assert episodes.numbers is not None
    return episodes.take(np.argsort(episodes.numbers))


def _without_gaps(parts: list[Episodes], begin: int) -> Episodes | None:
    """The episodes from number `begin` on, up to the first that is missing."""
    if not parts:
        return None
    ordered = _in_order(Episodes.join(parts))
    assert ordered.numbers is not None
    whole = int(np.sum(np.cumprod(ordered.numbers == begin + np.arange(len(ordered)))))
    return ordered.part(0, whole) if whole else None


@dataclass(frozen=True)
class LawsInTurn:
    """The laws of policies that play in turn."""

    laws: tuple[Law, ...]

    @property
    def _alike(self) -> bool:
        return all(law == self.laws[0] for law in self.laws)

    @property
    def joint(self) -> Law:
        """The law of all their episodes together."""
        if self._alike:
            return self.laws[0]
        return Law(tuple(part for law in self.laws for part in law.parts))

    def _columns(self, place: int) -> slice:
        before = 0 if self._alike else sum(law.noise_width for law in self.laws[:place])
        return slice(before, before + self.laws[place].noise_width)

    def widen(self, episodes: Episodes, place: int) -> Episodes:
        """Episodes of one policy, as those of all: numbered in turn."""
        assert episodes.numbers is not None
        noise = np.zeros((episodes.steps, self.joint.noise_width))
        noise[:, self._columns(place)] = episodes.noise
        numbers = episodes.numbers * len(self.laws) + place
        return replace(episodes, noise=noise, law=self.joint, numbers=numbers)

    def own(self, episodes: Episodes, place: int) -> Episodes:
        """Of the episodes of all, those of one policy."""
        assert episodes.numbers is not None
        mine = episodes.take(np.flatnonzero(episodes.numbers % len(self.laws) == place))
        assert mine.numbers is not None
        return replace(
            mine,
            noise=mine.noise[:, self._columns(place)],
            law=self.laws[place],
            numbers=mine.numbers // len(self.laws),
        )


@dataclass
class PairedEstimator:
    """The values of all policies from the episodes so far, with the errors they have in common."""

    names: tuple[str, ...]
    laws: LawsInTurn
    each: list[ReturnEstimator]

    @property
    def method(self) -> str:
        """How values are estimated."""
        return self.each[0].method

    @method.setter
    def method(self, method: str) -> None:
        for estimator in self.each:
            estimator.method = method

    @property
    def environment_note(self) -> str:
        """What has changed since a file that the run goes on from."""
        return self.each[0].environment_note

    @environment_note.setter
    def environment_note(self, note: str) -> None:
        for estimator in self.each:
            estimator.environment_note = note

    @property
    def horizon(self) -> int:
        """Of all episodes."""
        return self.each[0].horizon

    @property
    def seed(self) -> int:
        """Of the run."""
        return self.each[0].seed

    @property
    def resets(self) -> Any:
        """First observations that are not played: the same for all policies."""
        return self.each[0].resets

    @property
    def policies(self) -> int:
        """Whose episodes there are: each needs one for an estimate."""
        return len(self.names)

    @property
    def prior_episodes(self) -> int:
        """There are none."""
        return 0

    def find(self, episodes: Episodes, playing: float) -> tuple[JointEstimate, PairedFindings]:
        """The estimate from these episodes, which took so many seconds to play."""
        findings: dict[str, ReturnFindings] = {}
        estimates: list[Estimate] = []
        owns = [self.laws.own(episodes, place) for place in range(len(self.names))]
        for name, estimator, own in zip(self.names, self.each, owns, strict=True):
            with name_policy(name):
                estimate, findings[name] = estimator.find(own, playing)
            estimates.append(estimate)
        pairs = correct_pairs([each.corrected for each in findings.values()])
        joint = JointEstimate(
            np.array([each.value for each in pairs]),
            joint_covariance(pairs),
            len(episodes),
            np.zeros(len(estimates)),
            self.each[0].confidence,
            min(estimate.episodes for estimate in estimates),
        )
        steps = [own.lengths.mean() for own in owns]
        costs = [
            own.amounts["cost"].sum() / len(own) if "cost" in own.amounts else 1.0 for own in owns
        ]
        return joint, PairedFindings(findings, np.array(steps), np.array(costs))

    def is_enough(self, goal: ComparisonGoal, estimate: JointEstimate) -> bool:
        """Whether the goal is reached."""
        return goal.is_reached(estimate)

    def result(self, goal: ComparisonGoal, points: list[Any], **collected: Any) -> ComparisonResult:
        """What the last of the estimates gives."""
        return goal.result(points, **collected)

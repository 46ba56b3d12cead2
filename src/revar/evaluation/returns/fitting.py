"""From whole episodes to an estimate: what critics see, and earlier episodes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from revar.collection.checkpoints import student_quantile
from revar.critics.estimate import CorrectedReturns, default_families, estimate_returns
from revar.critics.interface import LEAST_TO_LEARN, CriticFamily, Experience, ValueFunction
from revar.environments.descriptions import read_space
from revar.environments.opening import first_line
from revar.environments.spaces import find_outside, inputs_of, layout_of
from revar.errors import InputError, MissingExtraError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import shows_nothing
from revar.evaluation.goals import ValueGoal
from revar.evaluation.result import Checkpoint, EvaluationResult
from revar.evaluation.returns.critics import CriticChoice, check_inputs
from revar.evaluation.returns.resets import Resets
from revar.evaluation.returns.result import ReturnFindings
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes


def make_experience(
    episodes: Episodes, horizon: int, discount: float, resets: FloatArray | None = None
) -> Experience:
    """Episodes as critics see them."""
    inputs = inputs_of(episodes)
    actions = np.asarray(episodes.actions, dtype=np.float64)
    return Experience(
        start=episodes.start,
        inputs=inputs,
        elapsed=episodes.step_in_episode / horizon,
        rewards=episodes.rewards,
        scores=episodes.law.scores(actions, episodes.noise),
        actions=actions,
        noise=episodes.noise,
        law=episodes.law,
        discount=discount,
        resets=np.zeros((0, inputs.shape[1])) if resets is None else resets,
    )


@dataclass
class ReturnEstimator:
    """The value from the episodes so far, as often as it is asked for."""

    method: str  # "critic" or "mean"
    horizon: int
    discount: float
    seed: int
    confidence: float
    z: float  # normal quantile of the interval, which allows for every look
    choice: CriticChoice
    resets: Resets
    prior: Episodes | None = None  # joined with the episodes: they are the policy's own
    prior_seed: int | None = None
    practice: Episodes | None = None  # earlier episodes that only train critics
    check: Callable[[Episodes], None] | None = None  # whether critics can learn from episodes
    environment_note: str = ""  # what has changed since a file that the run goes on from
    seconds: float = 0.0  # spent on fitting
    _practised: list[ValueFunction] | None = field(default=None, repr=False)

    @property
    def prior_use(self) -> str:
        """What earlier episodes are used for."""
        if self.prior is not None:
            return "the estimate and critics: they are this policy's, in this environment"
        if self.practice is None:
            return ""
        if len(self.practice) < LEAST_TO_LEARN:
            return f"nothing: critics learn from {LEAST_TO_LEARN} or more, not {len(self.practice)}"
        return "training critics alone"

    def find(self, episodes: Episodes, playing: float) -> tuple[Estimate, ReturnFindings]:
        """The estimate from these episodes, which took so many seconds to play."""
        every = episodes if self.prior is None else Episodes.join([self.prior, episodes])
        begun = time.perf_counter()
        families: Sequence[CriticFamily] = ()
        given: list[ValueFunction] = []
        if self.method == "mean":
            experience = _returns_alone(every, self.discount)
        else:
            self.refuse_known(episodes, 2)
            if self.check is not None:
                self.check(episodes)
            experience = make_experience(every, self.horizon, self.discount)
            width = experience.inputs.shape[1]
            for critic in self.choice.given:
                check_inputs(critic, width)
            # The seconds of resets are no part of the seconds of fitting.
            own = experience.inputs[experience.inputs.shape[0] - episodes.steps :]
            resets = self.resets.of(episodes, playing, own)
            begun = time.perf_counter()
            experience = replace(experience, resets=resets)
            families = default_families(self.choice.families, len(every))
            with _blame_critics():
                given = [*self.choice.given, *self._practise(families)]
        with _blame_critics():
            corrected = estimate_returns(experience, families, given, self.seed)
        self.seconds += time.perf_counter() - begun
        findings = ReturnFindings(
            method=self.method,
            corrected=corrected,
            experience=experience,
            families=families,
            given=given,
            seed=self.seed,
            prior_seed=self.prior_seed,
            fitting_seconds=self.seconds,
            prior_use=self.prior_use,
            resets_note=self.resets.note,
            observations_note=_outside(every),
            environment_note=self.environment_note,
        )
        return self.estimate(corrected), findings

    def refuse_known(self, episodes: Episodes, different: int) -> None:
        """Refuse episodes that critics learned from: see `refuse_same_draws`."""
        if self.practice is not None:
            refuse_same_draws(self.practice, episodes, different)

    def estimate(self, corrected: CorrectedReturns) -> Estimate:
        """The value with its interval, by Student's distribution."""
        count = corrected.returns.size
        error = corrected.standard_error if count > 1 else inf
        quantile = student_quantile(self.z, count)
        return Estimate(corrected.value, error, count, 0.0, self.confidence, quantile)

    @property
    def policies(self) -> int:
        """Whose episodes there are."""
        return 1

    @property
    def prior_episodes(self) -> int:
        """How many earlier ones there are."""
        earlier = self.prior or self.practice
        return 0 if earlier is None else len(earlier)

    def is_enough(self, goal: ValueGoal, estimate: Estimate) -> bool:
        """Whether the interval is narrow."""
        if goal.half_width is None or shows_nothing(estimate):
            return False
        return estimate.interval[1] - estimate.value <= goal.half_width

    def result(
        self, goal: ValueGoal, points: list[Checkpoint], **collected: Any
    ) -> EvaluationResult:
        """What the last of the estimates gives."""
        estimate = points[-1].estimate
        assert estimate.quantile is not None
        return EvaluationResult(
            estimate=estimate,
            quantile=estimate.quantile,
            checkpoints=tuple(points),
            half_width_wanted=goal.half_width,
            budget=goal.budget,
            **collected,
        )

    def _practise(self, families: Sequence[CriticFamily]) -> list[ValueFunction]:
        """Critics learned from earlier episodes: they have seen none of these."""
        if self.practice is None or len(self.practice) < LEAST_TO_LEARN:
            return []
        if self._practised is None:
            experience = make_experience(self.practice, self.horizon, self.discount)
            self._practised = [family.fit(experience, self.seed) for family in families]
        return self._practised


def _outside(episodes: Episodes) -> str:
    """Environments overstep the bounds of their observations at times; that is told."""
    if episodes.observation_space is None:
        return ""
    return find_outside(layout_of(read_space(episodes.observation_space)), episodes.observations)


def refuse_same_draws(earlier: Episodes, episodes: Episodes, different: int) -> None:
    """Refuse earlier episodes of the same seed: critics that learned from them know these.

    They begin like the episodes of the same numbers, while episodes begin in so many ways at least.
    """
    if earlier.numbers is None or episodes.numbers is None:
        return
    _, before, now = np.intersect1d(earlier.numbers, episodes.numbers, return_indices=True)
    for names in (("observations",), ("observations", "actions", "noise", "rewards")):
        first, again = (
            [tuple(getattr(e, name)[e.start[i]].tobytes() for name in names) for i in places]
            for e, places in ((earlier, before), (episodes, now))
        )
        if first == again and len(set(first)) >= different:
            raise InputError(
                "prior has episodes that were drawn with the seed of this run, so that critics "
                "would know them; give another seed"
            )


@contextmanager
def _blame_critics() -> Iterator[None]:
    """What goes wrong in a critic as one sentence: a user's may raise whatever it likes."""
    try:
        yield
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        raise InputError(f"a critic raised {type(error).__name__}: {first_line(error)}") from error


def _returns_alone(episodes: Episodes, discount: float) -> Experience:
    """What the mean return needs: nothing is seen."""
    return Experience(
        start=episodes.start,
        inputs=np.zeros((episodes.steps, 0)),
        elapsed=np.zeros(episodes.steps),
        rewards=episodes.rewards,
        scores=np.zeros((episodes.steps, 0)),
        actions=np.zeros((episodes.steps, 0)),
        noise=np.zeros((episodes.steps, 0)),
        law=type(episodes.law)(),
        discount=discount,
        resets=np.zeros((0, 0)),
    )

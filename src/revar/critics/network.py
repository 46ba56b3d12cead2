"""Networks: values and advantages learned from targets that grow quieter, round by round.

A network has an output for the value and one for the coefficient of every score, and regresses what
follows a step on value plus advantage. In the first round that is the return to go. From then on,
advantages of the steps to come are subtracted from it, as networks say that have not seen the
episode: the mean stays, noise goes, and no network is taught its own guesses.

Networks learn in JAX, all of them at once. The critics that come of it need NumPy alone.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from revar.critics.features import MOST_INPUTS
from revar.critics.interface import FOLDS, Columns, Experience, Numbers
from revar.critics.network_critic import InputScaling, NetworkCritic, Parameters
from revar.critics.sums import sums_to_go
from revar.errors import require_extra
from revar.model.arrays import FloatArray

NO_FOLD = -1  # left out by a world that knows every episode
MOST_STEPS = 400_000  # that are learned from, in whole episodes
MOST_NUMBERS = 16_000_000  # of scaled inputs of these steps, in one world
BATCHES = (128, 256, 512, 1024)  # steps in a batch: the more episodes, the more


@dataclass(frozen=True)
class NetworkFamily:
    """Networks of two hidden layers; some are read early, for data that they come to overfit."""

    width: int = 48  # of a hidden layer
    rounds: int = 8
    steps: int = 350  # of Adam, in a round
    rate: float = 1e-2  # of learning, at first; it falls to a tenth
    decay: float = 5.0  # of weights, over the number of episodes
    read: tuple[int, ...] = (2, 4, 8)  # the rounds after which networks become columns
    progress: Callable[[int, int], None] | None = None  # is told the round, and of how many
    name: str = "network"

    def cross_fit(self, experience: Experience, seed: int) -> Columns:
        """Networks for every world, and what they say of the steps that they serve."""
        training = _Training(self, experience, seed, range(FOLDS))
        said = [training.say() for number in training.rounds() if number in self.read]
        names = tuple(f"{self.name} {number}" for number in self.read)
        return Columns(names, *(np.stack(each, axis=-1) for each in zip(*said, strict=True)))

    def fit(self, experience: Experience, seed: int) -> NetworkCritic:
        """One network from all episodes; others, each without a fold, serve its targets."""
        training = _Training(self, experience, seed, [NO_FOLD])
        for _ in training.rounds():
            pass
        return training.critics()[0]


@dataclass(frozen=True)
class _Learner:
    """A network: the folds that it does not see, and the one that it serves in its world."""

    world: int
    without: tuple[int, ...]
    serves: int


def _learners(left_out: Sequence[int]) -> Iterator[_Learner]:
    """Those of a world one after the other, the one without the fold of the world alone first."""
    for world, fold in enumerate(left_out):
        yield _Learner(world, (fold,), fold)
        for other in range(FOLDS):
            if other != fold:
                yield _Learner(world, (fold, other), other)


class _Training:
    """The networks of some worlds while they learn."""

    def __init__(
        self, family: NetworkFamily, experience: Experience, seed: int, left_out: Sequence[int]
    ) -> None:
        self._family, self._all = family, experience
        self._learned = _first_episodes(experience)
        self._jax = _load_jax_part()
        self._learners = list(_learners(left_out))
        folds = self._learned.folds[self._learned.episode_of_step]
        self._known = [folds != fold for fold in left_out]
        self._sees = [
            np.flatnonzero(~np.isin(folds, each.without)).astype(np.int32)
            for each in self._learners
        ]
        self._serves = [np.flatnonzero(folds == each.serves) for each in self._learners]
        self._rngs = [
            np.random.default_rng((seed, each.world, 1 + each.serves)) for each in self._learners
        ]
        self._scalings = [
            InputScaling.fit(
                self._learned.inputs[known],
                self._learned.elapsed[known],
                np.random.default_rng(seed),
            )
            for known in self._known
        ]
        to_go = sums_to_go(self._learned, self._learned.rewards)
        self._centers = np.array([to_go[known].mean() for known in self._known])
        spreads = np.array([to_go[known].std() for known in self._known])
        self._spreads = np.where(spreads > 0, spreads, 1.0)
        self._values = np.zeros((len(left_out), folds.size))
        self._advantages = np.zeros_like(self._values)
        self._trust = np.zeros(len(left_out))  # in advantages, by world
        self._state = self._jax.start_learning(self._first_parameters())

    def rounds(self) -> Iterator[int]:
        """Learn, a round at a time."""
        family, episodes = self._family, self._learned.start.size - 1
        lessons = self._lessons()
        served = self._jax.in_chunks(self._serves)
        way = np.linspace(0.0, np.pi, family.rounds * family.steps)
        rates = family.rate * (0.55 + 0.45 * np.cos(way)).reshape(family.rounds, -1)
        for number in range(1, family.rounds + 1):
            targets = self._targets()
            scaled = (targets - self._centers[:, None]) / self._spreads[:, None]
            self._state = self._jax.learn(
                self._state,
                lessons,
                self._jax.padded(scaled, axis=1),
                self._batches(episodes),
                rates[number - 1].astype(np.float32),
                np.float32(family.decay / episodes),
            )
            self._listen(*self._jax.evaluate(self._state.average, lessons, served))
            self._trust = self._judge(targets)
            if family.progress is not None:
                family.progress(number, family.rounds)
            yield number

    def critics(self) -> list[NetworkCritic]:
        """The networks as they are now."""
        arrays = [np.asarray(array) for array in self._state.average]
        return [
            NetworkCritic(
                self._scalings[each.world],
                tuple(array[i] for array in arrays),
                float(self._centers[each.world]),
                float(self._spreads[each.world]),
            )
            for i, each in enumerate(self._learners)
        ]

    def say(self) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
        """Advantages, values at first observations and at resets, and of all steps, [world, n].

        And means over resets, [world, fold], by the network that serves the fold.
        """
        experience, learned = self._all, self._learned.rewards.size
        folds = experience.folds[experience.episode_of_step]
        first, resets = experience.inputs[experience.start[:-1]], experience.resets
        worlds = self._values.shape[0]
        values, advantages = np.zeros((2, worlds, folds.size), dtype=np.float32)
        values[:, :learned], advantages[:, :learned] = self._values, self._advantages
        at_first = np.zeros((worlds, first.shape[0]))
        at_resets = np.zeros((worlds, resets.shape[0]))
        means = np.zeros((worlds, FOLDS))
        for each, critic in zip(self._learners, self.critics(), strict=True):
            rows = learned + np.flatnonzero(folds[learned:] == each.serves)
            said = critic.outputs(experience.inputs[rows], experience.elapsed[rows])
            values[each.world, rows] = said[:, 0]
            advantages[each.world, rows] = (said[:, 1:] * experience.scores[rows]).sum(axis=1)
            # Both by the same code: a GPU rounds otherwise, and the difference has to be unbiased.
            own = experience.folds == each.serves
            at_first[each.world, own] = critic.values(first[own], np.zeros(own.sum()))
            if resets.shape[0]:
                there = critic.values(resets, np.zeros(resets.shape[0]))
                means[each.world, each.serves] = there.mean()
                if len(each.without) == 1:
                    at_resets[each.world] = there
        return advantages, at_first, at_resets, values, means

    def _first_parameters(self) -> Parameters:
        inputs, width = self._scalings[0].width, self._family.width
        outputs = 1 + self._learned.scores.shape[1]
        layers: list[Numbers] = []
        for rows, columns, size in ((inputs, width, 1), (width, width, 1), (width, outputs, 0.1)):
            drawn = np.stack([rng.standard_normal((rows, columns)) for rng in self._rngs])
            layers.append((size / np.sqrt(rows) * drawn).astype(np.float32))
            layers.append(np.zeros((len(drawn), columns), dtype=np.float32))
        return tuple(layers)

    def _lessons(self) -> Any:
        learned, padded = self._learned, self._jax.padded
        scaled = [scaling(learned.inputs, learned.elapsed) for scaling in self._scalings]
        return self._jax.Lessons(
            padded(np.stack(scaled), axis=1),
            padded(learned.scores, axis=0),
            padded(learned.discounts, axis=0),
            np.array([each.world for each in self._learners]),
        )

    def _batches(self, episodes: int) -> Any:
        """Steps that each network sees, drawn for a round, [step, network, batch]."""
        size = next((each for each in BATCHES if each >= episodes), BATCHES[-1])
        drawn = [
            rows[rng.integers(rows.size, size=(self._family.steps, size), dtype=np.int32)]
            for rng, rows in zip(self._rngs, self._sees, strict=True)
        ]
        return np.stack(drawn, axis=1)

    def _targets(self) -> FloatArray:
        """What follows each step, less what is believed of later advantages, [world, step]."""
        rewards = self._learned.rewards
        believed = self._trust[:, None] * self._advantages
        return np.stack([sums_to_go(self._learned, rewards - each) + each for each in believed])

    def _listen(self, values: Any, advantages: Any) -> None:
        """Take down what every network says of the steps that it serves."""
        heard_values, heard_advantages = np.asarray(values), np.asarray(advantages)
        for i, (each, rows) in enumerate(zip(self._learners, self._serves, strict=True)):
            world, spread = each.world, self._spreads[each.world]
            self._values[world, rows] = self._centers[world] + spread * heard_values[i, : rows.size]
            self._advantages[world, rows] = spread * heard_advantages[i, : rows.size]

    def _judge(self, targets: FloatArray) -> FloatArray:
        """The slope, from 0 to 1, of what values leave of the targets on advantages."""
        slopes = []
        for world, known in enumerate(self._known):
            said = self._advantages[world, known]
            left = targets[world, known] - self._values[world, known]
            slopes.append(said @ left / max(float(said @ said), 1e-300))
        return np.asarray(np.clip(slopes, 0.0, 1.0))


def _first_episodes(experience: Experience) -> Experience:
    """As many episodes as are learned from."""
    most = min(MOST_STEPS, MOST_NUMBERS // min(experience.inputs.shape[1] + 1, MOST_INPUTS))
    start = experience.start
    if start[-1] <= most:
        return experience
    start = start[: max(int(np.searchsorted(start, most, side="right")), 1 + 2 * FOLDS)]
    end = start[-1]
    return replace(
        experience,
        start=start,
        inputs=experience.inputs[:end],
        elapsed=experience.elapsed[:end],
        rewards=experience.rewards[:end],
        scores=experience.scores[:end],
        actions=experience.actions[:end],
        noise=experience.noise[:end],
    )


def _load_jax_part() -> ModuleType:
    flags = os.environ.get("XLA_FLAGS", "")
    if "jax" not in sys.modules and "xla_gpu_deterministic_ops" not in flags:
        # Read when JAX starts; without it a GPU adds up in another order each time.
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    require_extra("jax", "critic")
    require_extra("optax", "critic")
    return importlib.import_module("revar.critics.network_training")

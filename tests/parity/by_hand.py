"""ReVar and the paper's baselines written out by hand, from the paper's formulas and NumPy alone.

Nothing of the library's simulation, strategies or estimators is used. The order of draws is that of
`revar.simulate`: first state (if there are several), then at each step the action (if it is
sampled, or tied), the outcome (if there are several) and the reward (if it is random).
"""

from collections.abc import Callable
from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tests.plain_filling import Observed, fill
from tests.plain_model import Floats, PlainModel


def place(shares: Floats, draw: float) -> int:
    """The first index at which the cumulated shares pass the draw."""
    index, reached = 0, 0.0
    for i in np.flatnonzero(shares).tolist():
        index = i
        reached += shares[i]
        if draw < reached:
            break
    return index


class Run:
    """One run of normal rewards: everything it has seen, and the random stream."""

    def __init__(self, model: PlainModel, episodes: int, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        self.samples = episodes * model.horizon
        shape = model.states, model.actions
        self.rewards: dict[tuple[int, int], list[float]] = {pair: [] for pair in np.ndindex(*shape)}
        self.successors: dict[tuple[int, int], list[int]] = {pair: [] for pair in self.rewards}
        self.outcomes: NDArray[np.int64] = np.zeros((*shape, model.states + 1), dtype=np.int64)
        self.scores: Floats = np.zeros(shape)

    @property
    def visits(self) -> NDArray[np.int64]:
        return np.asarray(self.outcomes.sum(axis=2))

    def play(self, choose: Callable[[int], int]) -> None:
        model = self.model
        starts = np.flatnonzero(model.initial)
        state = int(starts[0])
        if starts.size > 1:
            state = place(model.initial, self.rng.random())
        for _ in range(model.horizon):
            action = choose(state)
            chance = model.chance[state, action]
            outcome = int(np.flatnonzero(chance)[0])
            if np.count_nonzero(chance) > 1:
                outcome = place(chance, self.rng.random())
            mean, std = model.mean[state, action, outcome], model.std[state, action, outcome]
            self.rewards[state, action].append(mean + std * self.rng.standard_normal())
            self.successors[state, action].append(outcome)
            self.outcomes[state, action, outcome] += 1
            if outcome == model.states:
                return
            state = outcome

    def sampled(self, state: int) -> int:
        return place(self.scores[state], self.rng.random())

    def largest(self, merit: Callable[[int, int], float], state: int) -> int:
        """The best action that the target policy takes; unvisited ones first, ties by lot."""
        merits = {
            a: merit(state, a) if self.rewards[state, a] else inf
            for a in np.flatnonzero(self.model.policy[state]).tolist()
        }
        best = [a for a, value in merits.items() if value == max(merits.values())]
        return best[int(self.rng.random() * len(best))] if len(best) > 1 else best[0]

    def tracked(self, state: int) -> int:
        return self.largest(lambda s, a: self.scores[s, a] / len(self.rewards[s, a]), state)

    def variance(self, state: int, action: int) -> float:
        seen = self.rewards[state, action]
        return float(np.var(seen, ddof=1)) if len(seen) > 1 else 0.0

    def proportions(self, deviation: Floats, chance: Floats) -> Floats:
        """Algorithm 2 with those deviations and transitions: sqrt(M) of every pair."""
        model = self.model
        normalizers = np.zeros(model.states + 1)
        scores = np.zeros((model.states, model.actions))
        for _ in range(model.horizon + 1):
            for s, a in np.ndindex(*scores.shape):
                ahead = sum(
                    chance[s, a, o] * normalizers[o] ** 2 for o in np.flatnonzero(chance[s, a])
                )
                spread = deviation[s, a] ** 2 + model.discount**2 * ahead
                scores[s, a] = model.policy[s, a] * sqrt(spread)
            normalizers[:-1] = [sum(row) for row in scores]
        return scores

    def frequencies(self) -> Floats:
        return self.outcomes / np.maximum(self.visits, 1)[:, :, None]

    def plan_revar(self, scale: float, delta: float = 0.05) -> None:
        pairs = self.visits.size
        bonus = 2 * scale * sqrt(log(pairs * self.samples * (self.samples + 1) / delta))
        deviation = np.empty(self.scores.shape)
        for s, a in np.ndindex(*deviation.shape):
            count = max(len(self.rewards[s, a]), 1)
            deviation[s, a] = sqrt(self.variance(s, a)) + bonus / sqrt(count)
        self.scores = self.proportions(deviation, self.frequencies())

    def index_of_cb_var(self, state: int, action: int, bound: float = 1.0) -> float:
        count, pairs = len(self.rewards[state, action]), self.visits.size
        logarithm = log(pairs * self.samples * (self.samples + 1))
        share, variance = self.model.policy[state, action], self.variance(state, action)
        spread = sqrt(2 * share * variance * logarithm / count)
        return (2 * bound + 4 * bound**2) * spread + 7 * logarithm / (3 * count)

    def estimate(self) -> float:
        """Certainty equivalence, gaps filled."""
        tried = {pair: seen for pair, seen in self.rewards.items() if seen}
        successors = {pair: self.successors[pair] for pair in tried}
        return fill(self.model, Observed(tried, successors)).value

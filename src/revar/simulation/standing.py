"""The plan in force: from its scores to an action, and for how long it holds."""

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.validation import SUM_TOLERANCE
from revar.strategies.selection import DRAWN, Selection, choose
from revar.strategies.strategy import Plan


class StandingPlan:
    """A plan while it is being followed; who follows it holds policy, visits and the generator."""

    def __init__(self, plan: Plan, strategy_id: str, covered: set[int] | None = None) -> None:
        self.plan = plan
        self.strategy_id = strategy_id
        self.covered = covered  # the states it was made for; None where it is all of them
        self.scores: FloatArray = plan.scores  # [1 or L, S or more, A]
        self.follows = plan.selection is Selection.FOLLOW
        self.taken: IntArray = np.zeros(self.scores.shape if self.follows else (0, 0, 0), np.int64)
        self.episodes = 0  # finished under the plan
        self._selection = int(plan.selection)  # numba types a number faster than an enum
        self._last_table = self.scores.shape[0] - 1
        self._checked: set[tuple[int, int]] = set()

    @property
    def due(self) -> bool:
        """Whether it has held for as long as it should, so that a new plan is wanted."""
        return self.plan.lasts is not None and self.episodes >= self.plan.lasts

    def action(
        self, step: int, state: int, policy: FloatArray, visits: IntArray, rng: np.random.Generator
    ) -> tuple[int, float]:
        """The action at that step and state, and its propensity (NaN if it was not sampled)."""
        table = min(step, self._last_table)
        if (table, state) not in self._checked:
            self._check(table, state, policy)
        return choose(
            self._selection,
            self.plan.visits_first,
            self.scores,
            table,
            state,
            policy,
            visits,
            self.taken,
            rng,
        )

    def note(self, step: int, state: int, action: int) -> None:
        """`action` is taken at that step and state."""
        if self.follows:
            self.taken[min(step, self._last_table), state, action] += 1

    def cover(self, state: int, scores: FloatArray) -> None:
        """Scores [1 or L, A] for a state that was not known when the plan was made."""
        if self.scores is self.plan.scores or state >= self.scores.shape[1]:
            self._make_room(max(state + 1, self.scores.shape[1] + self.scores.shape[1] // 2))
        self.scores[:, state] = scores if len(scores) <= len(self.scores) else scores[:1]
        if self.covered is not None:
            self.covered.add(state)

    def _make_room(self, states: int) -> None:
        tables, known, actions = self.scores.shape
        scores = np.zeros((tables, states, actions))
        scores[:, :known] = self.scores
        self.scores = scores
        if self.follows:
            taken = np.zeros(scores.shape, dtype=np.int64)
            taken[:, :known] = self.taken
            self.taken = taken

    def _check(self, table: int, state: int, policy: FloatArray) -> None:
        if self.plan.selection in DRAWN:
            total = float(self.scores[table, state].sum())
            if abs(total - 1.0) > SUM_TOLERANCE:
                raise InputError(
                    f"strategy {self.strategy_id!r} gives the actions of state {state} "
                    f"probabilities that sum to {total:.12g}; they must sum to 1"
                )
        elif not policy[state].any():
            raise InputError(f"the target policy takes no action in state {state}")
        self._checked.add((table, state))

"""VisitStatistics: all that has been learned from the episodes so far."""

from collections.abc import Iterable
from math import isfinite
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, Outcomes, RunStatistics, read_only
from revar.model.mdp import TabularMDP
from revar.model.moments import Moments, pooled, pooled_mean, push
from revar.model.trajectory import ENDED, Dataset, Trajectory

Number = TypeVar("Number", np.int64, np.float64)


class VisitStatistics:
    """Counts, reward moments and outcome counts of every state-action pair.

    Grows when new states or successors appear; two of them merge into what one would hold that
    had seen both sets of episodes. With `runs` given, arrays carry a leading run axis and each
    recording names its run.
    """

    def __init__(self, states: int, actions: int, *, runs: int | None = None) -> None:
        if states < 0 or actions < 1 or (runs is not None and runs < 1):
            raise InputError(f"statistics need actions >= 1; got {states=}, {actions=}, {runs=}")
        self.states = states
        self.actions = actions
        self.runs = runs
        count, capacity = runs or 1, max(states, 1)
        self._visits = np.zeros((count, capacity, actions), dtype=np.int64)
        self._mean = np.zeros((count, capacity, actions))
        self._squares = np.zeros((count, capacity, actions))
        self._cubes = np.zeros((count, capacity, actions))
        self._quartics = np.zeros((count, capacity, actions))
        self._initial = np.zeros((count, capacity), dtype=np.int64)
        self._slots: dict[tuple[int, int], int] = {}  # (pair, successor) -> slot
        self._pair = np.zeros(16, dtype=np.int64)
        self._successor = np.zeros(16, dtype=np.int64)
        self._count = np.zeros((count, 16), dtype=np.int64)
        self._outcome_mean = np.zeros((count, 16))
        self._order: IntArray | None = None  # slots sorted by pair and successor

    @classmethod
    def for_model(cls, mdp: TabularMDP, *, runs: int | None = None) -> "VisitStatistics":
        """Empty statistics with a slot for every outcome that `mdp` allows."""
        statistics = cls(mdp.states, mdp.actions, runs=runs)
        pairs = np.repeat(np.arange(mdp.states * mdp.actions), np.diff(mdp.outcomes.row_start))
        for pair, successor in zip(pairs.tolist(), mdp.outcomes.successor.tolist(), strict=True):
            statistics._slot(pair, ENDED if successor == mdp.states else successor)
        return statistics

    # -- reading ---------------------------------------------------------------------------

    @property
    def visits(self) -> IntArray:
        """How often each pair was taken, [(run,) S, A]."""
        return self._shown(self._visits)

    @property
    def reward_mean(self) -> FloatArray:
        """The mean reward of each pair, 0 where there are no visits, [(run,) S, A]."""
        return self._shown(self._mean)

    @property
    def reward_variance(self) -> FloatArray:
        """The unbiased reward variance of each pair, NaN below two visits, [(run,) S, A]."""
        freedom = self._visits - 1
        variance = np.full(self._squares.shape, np.nan)
        np.divide(self._squares, freedom, out=variance, where=freedom > 0)
        return self._shown(variance)

    @property
    def initial_count(self) -> IntArray:
        """How many episodes began in each state, [(run,) S]."""
        return self._shown(self._initial)

    @property
    def episodes(self) -> Any:
        """How many episodes were recorded: a number, or one for each run."""
        totals = self._initial.sum(axis=1)
        return int(totals[0]) if self.runs is None else totals

    def observed(self, states: int, run: int = 0) -> RunStatistics:
        """One run over `states` states in the layout of compiled loops; the arrays are copies."""
        if self.states > states:
            raise InputError(
                f"the data has {self.states} states, the target policy covers {states}"
            )
        self._check_run(run)
        self._reserve(states)
        order = self._sorted_slots()
        row_start = np.searchsorted(
            self._pair[order], np.arange(states * self.actions + 1), side="left"
        ).astype(np.int64)
        successor = self._successor[order]
        count = self._count[run, order]
        visits = self._visits[run, :states].copy()
        of_pair = visits.ravel()[self._pair[order]]
        return RunStatistics(
            outcomes=Outcomes(
                row_start,
                np.where(successor == ENDED, states, successor),
                count / of_pair.clip(min=1),
            ),
            visits=visits,
            reward_mean=self._mean[run, :states].copy(),
            reward_squares=self._squares[run, :states].copy(),
            reward_cubes=self._cubes[run, :states].copy(),
            reward_quartics=self._quartics[run, :states].copy(),
            outcome_count=count,
            outcome_reward_mean=self._outcome_mean[run, order],
            initial_count=self._initial[run, :states].copy(),
        )

    # -- writing ---------------------------------------------------------------------------

    def ensure_states(self, states: int) -> None:
        """Have at least so many states, with data or without."""
        if states > self.states:
            self._reserve(states)
            self.states = states

    def start_episode(self, state: int, *, run: int = 0) -> None:
        """An episode began in `state`."""
        self._check_run(run)
        if state < 0:
            raise InputError(f"an episode began in state {state}; states count from 0")
        self.ensure_states(state + 1)
        self._initial[run, state] += 1

    def record_step(
        self, state: int, action: int, reward: float, successor: int, *, run: int = 0
    ) -> None:
        """`action` in `state` gave `reward` and led to `successor` (or ENDED)."""
        self._check_run(run)
        if state < 0 or successor < ENDED:
            raise InputError(f"a step from state {state} to {successor}; states count from 0")
        if not 0 <= action < self.actions:
            raise InputError(f"action {action} in state {state}; there are {self.actions} actions")
        if not isfinite(reward):
            raise InputError(f"the reward of state {state}, action {action} is {reward}")
        self.ensure_states(max(state, successor) + 1)
        slot = self._slot(state * self.actions + action, successor)
        place = (run, state, action)
        count = int(self._visits[place]) + 1
        self._visits[place] = count
        self._mean[place], self._squares[place], self._cubes[place], self._quartics[place] = push(
            count,
            self._mean[place],
            self._squares[place],
            self._cubes[place],
            self._quartics[place],
            reward,
        )
        seen = int(self._count[run, slot]) + 1
        self._count[run, slot] = seen
        self._outcome_mean[run, slot] += (reward - self._outcome_mean[run, slot]) / seen

    def record(self, trajectory: Trajectory, *, run: int = 0) -> None:
        """Add one episode, all of it or (if it is refused) none of it."""
        self._check_run(run)
        if trajectory.actions.max() >= self.actions:
            raise InputError(
                f"action {trajectory.actions.max()} in a trajectory; there are "
                f"{self.actions} actions"
            )
        self.start_episode(int(trajectory.states[0]), run=run)
        for state, action, reward, successor in zip(
            trajectory.states.tolist(),
            trajectory.actions.tolist(),
            trajectory.rewards.tolist(),
            trajectory.successors.tolist(),
            strict=True,
        ):
            self.record_step(state, action, reward, successor, run=run)

    def record_many(self, trajectories: Dataset | Iterable[Trajectory], *, run: int = 0) -> None:
        """Add episodes in their order."""
        for trajectory in trajectories:
            self.record(trajectory, run=run)

    def absorb(self, other: "VisitStatistics") -> None:
        """`merge` in place, at the cost of `other` however much is known; `other` is unchanged."""
        if (self.actions, self.runs) != (other.actions, other.runs):
            raise InputError(
                f"cannot merge statistics of {self.actions} actions and runs={self.runs} with "
                f"{other.actions} actions and runs={other.runs}"
            )
        self.ensure_states(other.states)
        part = (slice(None), slice(other.states))
        joined = pooled(self._moments(part), other._moments(part))
        for array, together in zip(self._moments(part), joined, strict=True):
            array[:] = together
        self._initial[part] += other._initial[part]
        target = np.array([self._slot(*outcome) for outcome in other._slots], dtype=np.int64)
        self._count[:, target], self._outcome_mean[:, target] = pooled_mean(
            self._count[:, target],
            self._outcome_mean[:, target],
            other._count[:, : target.size],
            other._outcome_mean[:, : target.size],
        )

    def merge(self, other: "VisitStatistics") -> "VisitStatistics":
        """What one would hold that had recorded the episodes of both; neither is changed."""
        merged = VisitStatistics(max(self.states, other.states), self.actions, runs=self.runs)
        merged.absorb(self)
        merged.absorb(other)
        return merged

    # -- storage ---------------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """All that is known, as arrays: `from_arrays` makes equal statistics of them."""
        states, slots = self.states, len(self._slots)
        return {
            "visits": self._visits[:, :states],
            "mean": self._mean[:, :states],
            "squares": self._squares[:, :states],
            "cubes": self._cubes[:, :states],
            "quartics": self._quartics[:, :states],
            "initial": self._initial[:, :states],
            "pair": self._pair[:slots],
            "successor": self._successor[:slots],
            "count": self._count[:, :slots],
            "outcome_mean": self._outcome_mean[:, :slots],
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> "VisitStatistics":
        """What `arrays` described, for a single run."""
        _, states, actions = arrays["visits"].shape
        made = cls(states, actions)
        for pair, successor in zip(arrays["pair"], arrays["successor"], strict=True):
            made._slot(int(pair), int(successor))
        for name in ("visits", "mean", "squares", "cubes", "quartics", "initial"):
            getattr(made, f"_{name}")[:, :states] = arrays[name]
        for name in ("count", "outcome_mean"):
            getattr(made, f"_{name}")[:, : len(made._slots)] = arrays[name]
        return made

    def _moments(self, part: tuple[slice, slice]) -> Moments:
        """Views of the reward's moments."""
        return Moments(
            self._visits[part],
            self._mean[part],
            self._squares[part],
            self._cubes[part],
            self._quartics[part],
        )

    def _shown(self, array: NDArray[Number]) -> NDArray[Number]:
        part = array[:, : self.states]
        return cast(NDArray[Number], read_only(part[0] if self.runs is None else part))

    def _check_run(self, run: int) -> None:
        if not 0 <= run < self._visits.shape[0]:
            raise InputError(f"run {run} of statistics of {self._visits.shape[0]} runs")

    def _reserve(self, states: int) -> None:
        """Room for so many states, whether or not they have been seen."""
        missing = states - self._visits.shape[1]
        if missing <= 0:
            return
        extra = max(missing, self._visits.shape[1])
        for name in ("_visits", "_mean", "_squares", "_cubes", "_quartics", "_initial"):
            array = getattr(self, name)
            widths = [(0, 0)] * array.ndim
            widths[1] = (0, extra)
            setattr(self, name, np.pad(array, widths))

    def _slot(self, pair: int, successor: int) -> int:
        key = (pair, successor)
        slot = self._slots.get(key)
        if slot is None:
            slot = len(self._slots)
            if slot == self._pair.size:
                for name in ("_pair", "_successor", "_count", "_outcome_mean"):
                    array = getattr(self, name)
                    setattr(self, name, np.concatenate([array, np.zeros_like(array)], axis=-1))
            self._slots[key] = slot
            self._pair[slot], self._successor[slot] = pair, successor
            self._order = None
        return slot

    def _sorted_slots(self) -> IntArray:
        if self._order is None:
            size = len(self._slots)
            # The end of the episode sorts last, as in a model's layout.
            successor = self._successor[:size]
            last = np.where(successor == ENDED, np.iinfo(np.int64).max, successor)
            self._order = np.lexsort((last, self._pair[:size]))
        return self._order

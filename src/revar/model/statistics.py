"""VisitStatistics: all that has been learned from the episodes so far."""

import threading
from collections.abc import Iterable, Sequence
from copy import copy
from math import isfinite
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, Outcomes, RunStatistics, read_only
from revar.model.mdp import TabularMDP
from revar.model.moments import Moments, merge_means, merge_moments, push_steps
from revar.model.trajectory import ENDED, Dataset, Trajectory

Number = TypeVar("Number", np.int64, np.float64)

PENDING = 1 << 16  # steps that may wait to be summarised
MANY = 30  # steps that are recorded faster together than one by one


class VisitStatistics:
    """Counts, reward moments and outcome counts of every state-action pair.

    Grows when new states or successors appear. Merging two gives the statistics of all their
    episodes. With `runs` given, arrays carry a leading run axis and each recording names its run.

    A step is counted in `visits` at once; moments and outcomes follow when they are read, in one
    compiled pass over the steps that wait. Several threads may read; a thread that records must be
    alone.
    """

    def __init__(self, states: int, actions: int, *, runs: int | None = None) -> None:
        if states < 0 or actions < 1 or (runs is not None and runs < 1):
            raise InputError(f"statistics need actions >= 1; got {states=}, {actions=}, {runs=}")
        self.states = states
        self.actions = actions
        self.runs = runs
        self._run_count = count = runs or 1
        capacity = max(states, 1)
        self._visits = np.zeros((count, capacity, actions), dtype=np.int64)
        self._number = np.zeros((count, capacity, actions), dtype=np.int64)  # of steps summarised
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
        self._pending_places: list[int] = []  # run * slots + slot of steps not yet summarised
        self._pending_rewards: list[float] = []
        self._settled = 0  # steps summarised, episodes begun, and merges
        self._settling = threading.Lock()
        self._make_views()

    @classmethod
    def for_model(cls, mdp: TabularMDP, *, runs: int | None = None) -> "VisitStatistics":
        """Empty statistics with a slot for every outcome that `mdp` allows."""
        statistics = cls(mdp.states, mdp.actions, runs=runs)
        pairs = np.repeat(np.arange(mdp.states * mdp.actions), np.diff(mdp.outcomes.row_start))
        for pair, successor in zip(pairs.tolist(), mdp.outcomes.successor.tolist(), strict=True):
            statistics._slot(pair, ENDED if successor == mdp.states else successor)
        return statistics

    @classmethod
    def from_visits(cls, visits: IntArray) -> "VisitStatistics":
        """Statistics that know how often pairs were visited, and nothing else, [S, A]."""
        made = cls(*visits.shape)
        made._visits[0, : made.states] = visits
        return made

    def __repr__(self) -> str:
        runs = "" if self.runs is None else f", runs={self.runs}"
        steps = int(self._visits.sum())
        return f"VisitStatistics(states={self.states}, actions={self.actions}{runs}, steps={steps})"

    # -- reading ---------------------------------------------------------------------------

    @property
    def recorded(self) -> int:
        """Grows with every step and merge: an equal number says that nothing was added."""
        return self._settled + len(self._pending_rewards)

    def visits_in(self, state: int) -> IntArray:
        """How often each action was taken in a state, [1, A]; not to be written to.

        Zero for a state that was never met.
        """
        if state >= self.states:
            return np.zeros((1, self.actions), dtype=np.int64)
        return self._visits[0, state : state + 1]

    @property
    def visits(self) -> IntArray:
        """How often each pair was taken, [(run,) S, A]."""
        return self._visits_shown

    @property
    def reward_mean(self) -> FloatArray:
        """The mean reward of each pair, 0 where there are no visits, [(run,) S, A]."""
        self._settle()
        return self._show(self._mean)

    @property
    def reward_variance(self) -> FloatArray:
        """The unbiased reward variance of each pair, NaN below two visits, [(run,) S, A]."""
        self._settle()
        freedom = self._visits - 1
        variance = np.full(self._squares.shape, np.nan)
        np.divide(self._squares, freedom, out=variance, where=freedom > 0)
        return self._show(variance)

    @property
    def initial_count(self) -> IntArray:
        """How many episodes began in each state, [(run,) S]."""
        return self._show(self._initial)

    @property
    def episodes(self) -> Any:
        """How many episodes were recorded: a number, or one for each run."""
        totals = self._initial.sum(axis=1)
        return int(totals[0]) if self.runs is None else totals

    def run_statistics(self, states: int, run: int = 0) -> RunStatistics:
        """One run over `states` states in the layout of compiled loops; the arrays are copies."""
        if self.states > states:
            raise InputError(
                f"the data has {self.states} states, the target policy covers {states}"
            )
        self._check_run(run)
        self._settle()
        self._reserve(states)
        order = self._sort_slots()
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
            self._visits_shown = self._show(self._visits)

    def start_episode(self, state: int, *, run: int = 0) -> None:
        """An episode began in `state`."""
        self._check_run(run)
        if state < 0:
            raise InputError(f"an episode began in state {state}; states count from 0")
        self.ensure_states(state + 1)
        self._initial[run, state] += 1
        self._settled += 1

    def record_step(
        self, state: int, action: int, reward: float, successor: int, *, run: int = 0
    ) -> None:
        """`action` in `state` gave `reward` and led to `successor` (or ENDED)."""
        states, actions = self.states, self.actions
        if not (
            0 <= state < states
            and 0 <= action < actions
            and ENDED <= successor < states
            and 0 <= run < self._run_count
            and isfinite(reward)
        ):
            self._check_step(state, action, reward, successor, run)
            self.ensure_states(max(state, successor) + 1)
        pair = state * actions + action
        place = self._slots.get((pair, successor))
        if place is None:
            place = self._slot(pair, successor)
        if run:
            pair += run * self._visits[0].size
            place += run * self._pair.size
        self._visits_flat[pair] += 1
        self._pending_places.append(place)
        self._pending_rewards.append(reward)
        if len(self._pending_rewards) >= PENDING:
            self._settle()

    def record_steps(
        self,
        states: Sequence[int],
        actions: Sequence[int],
        rewards: Sequence[float],
        successors: Sequence[int],
        *,
        run: int = 0,
    ) -> None:
        """Add steps in their order, as `record_step` does; of many, all or (if refused) none."""
        if len(states) < MANY:
            for step in zip(states, actions, rewards, successors, strict=True):
                self.record_step(*step, run=run)
            return
        state, action, successor = (np.array(each) for each in (states, actions, successors))
        known = (state >= 0) & (successor >= ENDED) & np.isfinite(rewards)
        wrong = np.flatnonzero(~(known & (action >= 0) & (action < self.actions)))
        for i in [0, *wrong.tolist()]:
            self._check_step(states[i], actions[i], rewards[i], successors[i], run)
        self.ensure_states(1 + int(max(state.max(), successor.max())))
        pair = state * self.actions + action
        outcomes = list(zip(pair.tolist(), successors, strict=True))
        places: list[Any] = list(map(self._slots.get, outcomes))
        if None in places:
            found = zip(places, outcomes, strict=True)
            places = [self._slot(*new) if place is None else place for place, new in found]
        if run:
            places = [place + run * self._pair.size for place in places]
        np.add.at(self._visits[run].reshape(-1), pair, 1)
        self._pending_places += places
        self._pending_rewards += rewards
        if len(self._pending_rewards) >= PENDING:
            self._settle()

    def record(self, trajectory: Trajectory, *, run: int = 0) -> None:
        """Add one episode, all of it or (if it is refused) none of it."""
        self._check_run(run)
        if trajectory.actions.max() >= self.actions:
            raise InputError(
                f"action {trajectory.actions.max()} in a trajectory; there are "
                f"{self.actions} actions"
            )
        self.start_episode(int(trajectory.states[0]), run=run)
        self._record_all(trajectory, run)

    def record_many(self, trajectories: Dataset | Iterable[Trajectory], *, run: int = 0) -> None:
        """Add episodes in their order."""
        if not isinstance(trajectories, Dataset) or trajectories.actions.max(initial=-1) >= (
            self.actions
        ):
            for trajectory in trajectories:
                self.record(trajectory, run=run)
            return
        for state in trajectories.states[trajectories.start[:-1]].tolist():
            self.start_episode(state, run=run)
        self._record_all(trajectories, run)

    def _record_all(self, episodes: Dataset | Trajectory, run: int) -> None:
        columns = episodes.states, episodes.actions, episodes.rewards, episodes.successors
        for first in range(0, len(episodes.states), PENDING):
            part = slice(first, first + PENDING)
            self.record_steps(*(column[part].tolist() for column in columns), run=run)

    def add(self, other: "VisitStatistics") -> None:
        """Merge `other` into this one; the time depends on `other` alone."""
        if (self.actions, self.runs) != (other.actions, other.runs):
            raise InputError(
                f"cannot merge statistics of {self.actions} actions and runs={self.runs} with "
                f"{other.actions} actions and runs={other.runs}"
            )
        self._settle()
        other._settle()
        self._settled += 1
        self.ensure_states(other.states)
        part = (slice(None), slice(other.states))
        merged = merge_moments(self._moments(part), other._moments(part))
        for array, together in zip(self._moments(part), merged, strict=True):
            array[:] = together
        self._visits[part] = self._number[part]
        self._initial[part] += other._initial[part]
        target = np.array([self._slot(*outcome) for outcome in other._slots], dtype=np.int64)
        self._count[:, target], self._outcome_mean[:, target] = merge_means(
            self._count[:, target],
            self._outcome_mean[:, target],
            other._count[:, : target.size],
            other._outcome_mean[:, : target.size],
        )

    def merge(self, other: "VisitStatistics") -> "VisitStatistics":
        """The statistics of all episodes of both; neither is changed."""
        merged = VisitStatistics(max(self.states, other.states), self.actions, runs=self.runs)
        merged.add(self)
        merged.add(other)
        return merged

    def copy(self) -> "VisitStatistics":
        """The same statistics, to which nothing is added when something is to these."""
        made = VisitStatistics.__new__(VisitStatistics)
        made.__setstate__({name: copy(value) for name, value in self.__getstate__().items()})
        return made

    def hold(self, seen: RunStatistics) -> None:
        """Hold what a run has shown, and nothing else: the slots are those of `for_model`."""
        self._visits[0], self._number[0] = seen.visits, seen.visits
        self._mean[0], self._squares[0] = seen.reward_mean, seen.reward_squares
        self._cubes[0], self._quartics[0] = seen.reward_cubes, seen.reward_quartics
        self._initial[0] = seen.initial_count
        slots = seen.outcome_count.size
        self._count[0, :slots] = seen.outcome_count
        self._outcome_mean[0, :slots] = seen.outcome_reward_mean
        self._settled = int(seen.visits.sum())

    # -- storage ---------------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """All that is known, as arrays: `from_arrays` makes equal statistics of them."""
        self._settle()
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
        for pair, successor in zip(
            arrays["pair"].tolist(), arrays["successor"].tolist(), strict=True
        ):
            made._slot(pair, successor)
        for name in ("visits", "mean", "squares", "cubes", "quartics", "initial"):
            getattr(made, f"_{name}")[:, :states] = arrays[name]
        made._number[:] = made._visits
        for name in ("count", "outcome_mean"):
            getattr(made, f"_{name}")[:, : len(made._slots)] = arrays[name]
        made._settled = int(arrays["visits"].sum())
        return made

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        own = ("_by_pair", "_visits_flat", "_visits_shown", "_settling")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._settling = threading.Lock()
        self._make_views()

    def _make_views(self) -> None:
        """Views that are needed often, made anew when the arrays are."""
        by_pair: Any = (array.reshape(self._run_count, -1) for array in self._moments(...))
        self._by_pair = Moments(*by_pair)
        # A memoryview reads and writes a single number in half the time that an array takes.
        self._visits_flat = self._visits.reshape(-1).data
        self._visits_shown = self._show(self._visits)

    def _settle(self) -> None:
        """Summarise the steps that wait."""
        with self._settling:  # a second reader waits until the first is done
            if self._pending_rewards:
                push_steps(
                    np.array(self._pending_places, dtype=np.int64),
                    np.array(self._pending_rewards, dtype=np.float64),
                    self._pair,
                    *self._by_pair,
                    self._count,
                    self._outcome_mean,
                )
                self._settled += len(self._pending_rewards)
                self._pending_places.clear()
                self._pending_rewards.clear()

    def _moments(self, part: Any) -> Moments:
        """Views of the reward's moments."""
        return Moments(
            self._number[part],
            self._mean[part],
            self._squares[part],
            self._cubes[part],
            self._quartics[part],
        )

    def _show(self, array: NDArray[Number]) -> NDArray[Number]:
        part = array[:, : self.states]
        return cast(NDArray[Number], read_only(part[0] if self.runs is None else part))

    def _check_run(self, run: int) -> None:
        if not 0 <= run < self._run_count:
            raise InputError(f"run {run} of statistics of {self._run_count} runs")

    def _check_step(self, state: int, action: int, reward: float, successor: int, run: int) -> None:
        self._check_run(run)
        if state < 0 or successor < ENDED:
            raise InputError(f"a step from state {state} to {successor}; states count from 0")
        if not 0 <= action < self.actions:
            raise InputError(f"action {action} in state {state}; there are {self.actions} actions")
        if not isfinite(reward):
            raise InputError(f"the reward of state {state}, action {action} is {reward}")

    def _reserve(self, states: int) -> None:
        """Room for so many states, whether or not they have been seen."""
        missing = states - self._visits.shape[1]
        if missing <= 0:
            return
        extra = max(missing, self._visits.shape[1])
        tables = ("_visits", "_number", "_mean", "_squares", "_cubes", "_quartics", "_initial")
        for name in tables:
            array = getattr(self, name)
            widths = [(0, 0)] * array.ndim
            widths[1] = (0, extra)
            setattr(self, name, np.pad(array, widths))
        self._make_views()

    def _slot(self, pair: int, successor: int) -> int:
        key = (pair, successor)
        slot = self._slots.get(key)
        if slot is None:
            slot = len(self._slots)
            if slot == self._pair.size:
                self._settle()  # places count by the number of slots
                for name in ("_pair", "_successor", "_count", "_outcome_mean"):
                    array = getattr(self, name)
                    setattr(self, name, np.concatenate([array, np.zeros_like(array)], axis=-1))
            self._slots[key] = slot
            self._pair[slot], self._successor[slot] = pair, successor
            self._order = None
        return slot

    def _sort_slots(self) -> IntArray:
        if self._order is None:
            size = len(self._slots)
            # The end of the episode sorts last, as in a model's layout.
            successor = self._successor[:size]
            last = np.where(successor == ENDED, np.iinfo(np.int64).max, successor)
            self._order = np.lexsort((last, self._pair[:size]))
        return self._order

"""What many runs of one strategy on one problem gave, and the job that they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.estimators.certainty_equivalence import widen
from revar.estimators.estimator import Estimate, Estimator, JointEstimate, normal_quantile
from revar.model.arrays import FloatArray, IntArray
from revar.model.budget import Budget
from revar.model.mdp import TabularMDP
from revar.model.records import HasColumns, html_table, in_a_line
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.model.validation import check_confidence
from revar.strategies.strategy import Plan, Strategy


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RunEstimates:
    """Estimates of finished runs at every checkpoint, beside the truth.

    Where several values are asked for, all but the checkpoints have one more axis for them, and so
    have `mse` and `coverage`.
    """

    true_value: float | FloatArray  # of what is asked for: a value, a difference, or [value]
    strategy: str
    estimator: str
    checkpoints: FloatArray | IntArray  # [checkpoint] of the budget, when estimates were made
    estimates: FloatArray  # [run, checkpoint]
    standard_errors: FloatArray  # [run, checkpoint]
    unvisited_probability: FloatArray  # [run, checkpoint]

    __repr__ = in_a_line

    @property
    def runs(self) -> int:
        """How many runs were finished."""
        return int(self.estimates.shape[0])

    @property
    def mse(self) -> FloatArray:
        """Mean squared error at every checkpoint, [checkpoint]."""
        return np.asarray(self._squared_errors().mean(axis=0))

    @property
    def mse_standard_error(self) -> FloatArray:
        """Standard error of `mse` over the runs, [checkpoint]."""
        if self.runs < 2:
            return np.full(self.estimates.shape[1:], np.inf)
        return np.asarray(self._squared_errors().std(axis=0, ddof=1) / np.sqrt(self.runs))

    def coverage(self, confidence: float = 0.95) -> FloatArray:
        """The share of runs whose interval holds the true value, [checkpoint]."""
        reach = normal_quantile(check_confidence(confidence)) * self.standard_errors
        errors = self._errors()
        # Where there is no estimate yet, there is no interval to speak of.
        inside = np.where(np.isnan(errors), np.nan, np.abs(errors) <= reach)
        return np.asarray(inside.mean(axis=0))

    def _squared_errors(self) -> FloatArray:
        return self._errors() ** 2

    def _errors(self) -> FloatArray:
        if self.runs == 0:
            raise InputError("no run was finished: there is no error to speak of")
        return self.estimates - self.true_value


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SimulationResult(RunEstimates, HasColumns):
    """What `simulate` returns: the estimates, and what the runs did."""

    visits: IntArray  # [run, state, action] after the last episode
    episodes: IntArray  # [run]
    spent: FloatArray  # [run] of the budget, in its unit
    unit: str  # "episodes", "steps" or "cost"
    values: FloatArray  # [run, checkpoint, policy] estimated values of all target policies
    covariances: FloatArray  # [run, checkpoint, policy, policy] of their errors, estimated
    complete: bool  # False if the simulation was interrupted: unfinished runs are left out
    interrupted: bool = False  # also where every run was finished all the same
    datasets: tuple[Dataset, ...] = ()  # the episodes of every run, where they were kept

    @property
    def steps(self) -> IntArray:
        """How many steps each run had, [run]."""
        return np.asarray(self.visits.sum(axis=(1, 2)))

    def columns(self) -> dict[str, Any]:
        """A row for each run and checkpoint; of several values, for each of them, too."""
        shape = self.estimates.shape
        places = np.indices(shape)
        return {
            "run": places[0].ravel(),
            "checkpoint": self.checkpoints[places[1]].ravel(),
            **({"value": places[2].ravel()} if len(shape) > 2 else {}),
            "estimate": self.estimates.ravel(),
            "standard_error": self.standard_errors.ravel(),
            "unvisited_probability": self.unvisited_probability.ravel(),
        }

    def to_dict(self) -> dict[str, Any]:
        """What the runs come to at every checkpoint, as plain numbers and lists."""
        return {
            "strategy": self.strategy,
            "estimator": self.estimator,
            "true_value": np.asarray(self.true_value).tolist(),
            "runs": self.runs,
            "unit": self.unit,
            "checkpoints": self.checkpoints.tolist(),
            "mse": self.mse.tolist(),
            "mse_standard_error": self.mse_standard_error.tolist(),
            "coverage": self.coverage().tolist(),
            "complete": self.complete,
        }

    def _repr_html_(self) -> str:
        if self.runs == 0:
            return html_table([], caption=f"{self.strategy}: no run was finished")
        last = f"{self.checkpoints[-1]:,.6g} {self.unit}"
        rows = [
            ("true value", _numbers(self.true_value)),
            ("mean estimate", _numbers(self.estimates[:, -1].mean(axis=0))),
            ("mean squared error", _numbers(self.mse[-1])),
            ("95% intervals that held", _numbers(100.0 * self.coverage()[-1]) + "%"),
        ]
        return html_table(rows, caption=f"{self.strategy}, {self.runs:,} runs of {last}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """What is played, and the arrays that the runs fill, one row each."""

    mdp: TabularMDP
    task: Task
    strategy: Strategy
    estimator: Estimator
    seed: int
    first_run: int
    checkpoints: FloatArray  # [checkpoint] in the unit of the budget
    keep_episodes: bool
    plan: Plan  # before the first episode
    values: FloatArray  # [run, checkpoint, J]
    covariances: FloatArray  # [run, checkpoint, J, J]
    freedom: FloatArray  # [run, checkpoint, J] of variances that are yet to be widened by it
    unvisited: FloatArray  # [run, checkpoint, J]
    visits: IntArray  # [run, S, A]
    finished: IntArray  # [run, 1] episodes played
    spent: FloatArray  # [run, 1] of the budget
    stop: IntArray  # [1]
    datasets: dict[int, Dataset]

    @property
    def budget(self) -> Budget:
        """What a run may spend."""
        assert self.task.budget is not None
        return self.task.budget

    def stream(self, run: int) -> np.random.Generator:
        """The random stream of its own that row `run` of the arrays is played with."""
        number = self.first_run + run
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))

    def write(self, run: int, checkpoint: int, estimate: Estimate | JointEstimate | None) -> None:
        """Note an estimate; None leaves NaN."""
        if isinstance(estimate, JointEstimate):
            self.values[run, checkpoint] = estimate.values
            self.covariances[run, checkpoint] = estimate.covariance
            self.unvisited[run, checkpoint] = estimate.unvisited_probability
        elif estimate is not None:
            self.values[run, checkpoint] = estimate.value
            self.covariances[run, checkpoint] = estimate.standard_error**2
            self.unvisited[run, checkpoint] = estimate.unvisited_probability

    def result(self, true_values: FloatArray, ended: IntArray) -> SimulationResult:
        """What the runs of these numbers gave; all others are left out."""
        complete = ended.size == len(self.values)
        rows = slice(None) if complete else ended
        asked = self.task.question.combinations
        values = self.values[rows]
        covariances = widen(self.covariances[rows], self.freedom[rows])
        truth = asked.answer(true_values)
        counts = asked.coefficients != 0  # [Q, J]
        unvisited = np.where(counts, self.unvisited[rows][:, :, None, :], 0.0).max(axis=3)
        return SimulationResult(
            true_value=float(truth) if asked.single else truth,
            strategy=self.strategy.id,
            estimator=self.estimator.id,
            checkpoints=_whole_where_possible(self.checkpoints),
            estimates=asked.answer(values),
            standard_errors=np.sqrt(asked.answer_variance(covariances)),
            unvisited_probability=unvisited[:, :, 0] if asked.single else unvisited,
            visits=self.visits[rows],
            episodes=self.finished[rows, 0],
            spent=self.spent[rows, 0],
            unit=self.budget.unit,
            values=values,
            covariances=covariances,
            complete=complete,
            interrupted=bool(self.stop[0]),
            datasets=tuple(self.datasets[run] for run in ended) if self.keep_episodes else (),
        )


def _numbers(values: Any) -> str:
    return ", ".join(f"{number:.4g}" for number in np.ravel(values))


def _whole_where_possible(numbers: FloatArray) -> FloatArray | IntArray:
    whole = numbers.astype(np.int64)
    return whole if np.array_equal(whole, numbers) else numbers


def log_spaced(episodes: int, per_decade: int = 8) -> IntArray:
    """Whole numbers from 1 to `episodes`, about evenly spaced on a logarithmic axis."""
    count = max(2, int(np.ceil(per_decade * np.log10(max(episodes, 2)))) + 1)
    return np.unique(np.round(np.geomspace(1, episodes, count)).astype(np.int64))

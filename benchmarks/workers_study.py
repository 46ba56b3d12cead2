"""What several workers cost in error: batches under stale plans, against one episode after another.

    python -m benchmarks.workers_study --runs 200 --lake-runs 100 --processes 2

Plays through `revar.evaluate` with the engine "inline", which schedules exactly as processes and
Ray do. Both sides of a comparison draw from the same stacks: visit number n of a pair gives the
same outcome and reward in all of them. So their errors go together, and the ratio of their mean
squares needs far fewer runs. Writes benchmarks/results/workers_study.md and .json.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import revar
from benchmarks.machine import facts
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.problems import Problem
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward

EPISODES = 2000
WORKERS = 8
BATCHES = (1, 8, 64)
RESULTS = Path(__file__).with_name("results")
CHUNK = 64  # draws of a pair made at a time


class Stacks(gymnasium.Env[Any, Any]):
    """A model whose outcomes and rewards lie ready, a stack for every pair."""

    def __init__(self, mdp: TabularMDP, run: int) -> None:
        self.observation_space = gymnasium.spaces.Discrete(mdp.states)
        self.action_space = gymnasium.spaces.Discrete(mdp.actions)
        self.horizon = mdp.horizon
        self._world = World.of(mdp)
        self._mdp = mdp
        pairs = range(mdp.states * mdp.actions)
        self._rngs = [np.random.default_rng((run, pair)) for pair in pairs]
        self._stacks: list[list[tuple[int, float]]] = [[] for _ in pairs]
        self._first = np.random.default_rng((run, len(pairs)))
        self._state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """The first state; seeds are not for stacks."""
        del seed, options
        self._state = draw_first_state(self._world, self._first)
        return self._state, {}

    def step(self, action: Any) -> Any:
        """What lies on top of the pair's stack."""
        pair = self._state * self._mdp.actions + int(action)
        if not self._stacks[pair]:
            self._stacks[pair] = [self._drawn(pair) for _ in range(CHUNK)][::-1]
        successor, reward = self._stacks[pair].pop()
        ended = successor == self._mdp.states
        self._state = self._state if ended else successor
        return self._state, reward, ended, False, {}

    def _drawn(self, pair: int) -> tuple[int, float]:
        world, rng = self._world, self._rngs[pair]
        slot = draw_outcome(world, pair, rng)
        return int(world.successor[slot]), draw_reward(
            world, slot if world.by_outcome else pair, rng
        )


@dataclass(frozen=True)
class Cell:
    """Workers with batches of one length against one after the other."""

    problem: str
    batch: int
    runs: int
    alone: float  # K*MSE of one after the other
    alone_error: float
    together: float  # K*MSE of the workers
    together_error: float
    ratio: float
    ratio_error: float
    visits_ratio: float  # of sum C/T, which needs no luck
    visits_error: float


def studied(name: str) -> Problem:
    """The gridworld, or FrozenLake 4 x 4 with the optimal policy made soft by 0.2."""
    if name == "gridworld":
        return revar.find_problem("gridworld")
    lake = revar.find_problem("frozenlake", size=4, epsilon=0.2)
    return Problem(name, revar.from_gymnasium("FrozenLake-v1", discount=0.99), lake.policy)


def played(name: str, strategy: str, run: int) -> list[tuple[float, float]]:
    """Error and K * sum C/T: one after the other, and for each length of batches."""
    problem = studied(name)
    mdp, policy = problem.mdp, problem.policy
    truth, costs = revar.policy_value(mdp, policy), revar.one_step_costs(mdp, policy)
    found = []
    for batch in (None, *BATCHES):
        workers: dict[str, Any] = (
            {} if batch is None else {"workers": WORKERS, "engine": "inline", "batch": batch}
        )
        result = revar.evaluate(
            partial(Stacks, mdp, run),
            policy,
            strategy=strategy,
            episodes=EPISODES,
            discount=mdp.discount,
            seed=run,
            **workers,
        )
        found.append((result.value - truth, EPISODES * by_visits(result, costs)))
    return found


def by_visits(result: revar.EvaluationResult, costs: FloatArray) -> float:
    """The error that belongs to the visits: sum C/T."""
    visits = np.zeros(costs.shape)
    states = np.array(result.dataset.labels, dtype=np.int64)
    visits[states] = result.statistics.visits
    return float((costs / visits.clip(min=1.0)).sum())


def compared(name: str, strategy: str, runs: int, processes: int) -> list[Cell]:
    """All lengths of batches on one problem."""
    with ProcessPoolExecutor(processes) as pool:
        found = np.array(list(pool.map(partial(played, name, strategy), range(runs), chunksize=5)))
    squares = EPISODES * found[:, :, 0] ** 2  # [run, 1 + batches]
    cells = []
    for place, batch in enumerate(BATCHES, start=1):
        ratio, ratio_error = ratio_of_means(squares[:, place], squares[:, 0])
        visits, visits_error = ratio_of_means(found[:, place, 1], found[:, 0, 1])
        (alone, alone_error), (together, together_error) = (
            (float(column.mean()), float(column.std(ddof=1) / np.sqrt(runs)))
            for column in (squares[:, 0], squares[:, place])
        )
        cells.append(
            Cell(
                name,
                batch,
                runs,
                alone,
                alone_error,
                together,
                together_error,
                ratio,
                ratio_error,
                visits,
                visits_error,
            )
        )
    return cells


def ratio_of_means(over: FloatArray, under: FloatArray) -> tuple[float, float]:
    """The ratio of two means over the same runs, and its standard error (delta method)."""
    ratio = float(over.mean() / under.mean())
    rest = over - ratio * under
    return ratio, float(rest.std(ddof=1) / np.sqrt(rest.size) / under.mean())


def markdown(cells: list[Cell], strategy: str) -> str:
    """The table of docs/scaling.md."""
    lines = [
        f"# {WORKERS} workers against one episode after the other",
        "",
        f"Written by `python -m benchmarks.workers_study`. Strategy {strategy}, {EPISODES}",
        "episodes; FrozenLake 4 x 4 with the optimal policy soft by 0.2, discount 0.99. K\\*MSE",
        "with its standard error; both sides draw from the same stacks of outcomes, so that the",
        "ratio is known better than its parts. By visits: the ratio of Σ C/T, the error that",
        "belongs to the visits made.",
        "",
        "| problem | batch | runs | one after the other | workers | ratio | ratio by visits |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {cell.problem} | {cell.batch} | {cell.runs} "
        f"| {cell.alone:.3g} ± {cell.alone_error:.2g} "
        f"| {cell.together:.3g} ± {cell.together_error:.2g} "
        f"| {cell.ratio:.3f} ± {cell.ratio_error:.3f} "
        f"| {cell.visits_ratio:.3f} ± {cell.visits_error:.3f} |"
        for cell in cells
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="on the gridworld")
    parser.add_argument("--lake-runs", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--strategy", default="flow")
    asked = parser.parse_args()
    began = time.perf_counter()
    cells = [
        *compared("gridworld", asked.strategy, asked.runs, asked.processes),
        *compared("FrozenLake", asked.strategy, asked.lake_runs, asked.processes),
    ]
    table = markdown(cells, asked.strategy)
    print(table)
    content = {
        "machine": facts(),
        "episodes": EPISODES,
        "workers": WORKERS,
        "strategy": asked.strategy,
        "seconds": time.perf_counter() - began,
        "cells": [asdict(cell) for cell in cells],
    }
    (RESULTS / "workers_study.json").write_text(json.dumps(content, indent=1) + "\n")
    (RESULTS / "workers_study.md").write_text(table)


if __name__ == "__main__":
    main()

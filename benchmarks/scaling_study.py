"""How far workers go: the schedule simulated up to 1000 of them, from costs measured here.

    python -m benchmarks.scaling_study

Measures what a batch costs the process that collects, and how large messages are; plays the batch
rule with these numbers for any number of workers; and measures a few points for real. Writes
benchmarks/results/scaling_study.md and .json.
"""

import argparse
import heapq
import json
import pickle
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import revar
from benchmarks.machine import facts
from benchmarks.workers import PAUSE, STEPS, seconds_per_step
from revar.collection import Collection
from revar.collection.batches import Batch, Dispatcher, add_batch
from revar.environments.opening import action_count, horizon_of, open_environment
from revar.evaluation.target_policies import target_policy_of
from revar.evaluation.workers.pool import InlinePool, PoolSettings, default_batch
from revar.evaluation.workers.worker import WorkerSetup
from revar.interrupts import Interrupt
from revar.model.budget import Budget
from revar.model.question import combinations_of
from revar.strategies.strategy import find_strategy

RESULTS = Path(__file__).with_name("results")
WORKERS = (2, 4, 8, 32, 128, 1000)
MEASURED = (1, 2, 4, 8)
EPISODES = 100_000
# Seconds of an episode; it takes between half and one and a half times as long.
KINDS = {"250 µs": 250e-6, "50 ms": STEPS * PAUSE, "5 s": 5.0}


@dataclass(frozen=True)
class Costs:
    """What one problem costs the process that collects, and the network."""

    problem: str
    batch_seconds: float  # to request, send, receive and add a batch
    episode_seconds: float  # and for each of its episodes
    plan_seconds: float
    plan_bytes: int
    request_bytes: int
    batch_bytes: int  # of one episode
    batch_bytes_64: int


@dataclass(frozen=True)
class Simulated:
    """A schedule played by the clock of a simulation."""

    episode: str
    workers: int
    batch: int
    episodes_per_second: float
    speed_up: float  # over a process that plays by itself
    unknown: float  # episodes that a plan does not know of when a batch begins, on average
    unknown_share: float  # of those begun before


def costs_of(problem: str) -> Costs:
    """Measured with the very messages, in this process."""
    env = open_environment(problem)
    strategy = find_strategy("flow")
    policies = {"": revar.find_problem(problem).policy}
    target = target_policy_of(env, policies, None)
    horizon, actions = horizon_of(env, None), action_count(env)

    def collected() -> Collection:
        return Collection(strategy, horizon=horizon, actions=actions, budget=EPISODES, seed=0)

    asked = combinations_of("values", 1)
    setup = WorkerSetup(
        *(problem, None, policies, asked, None, strategy, horizon, 1.0, Budget(EPISODES), 0, 0)
    )
    collection = collected()
    dispatcher, pool = Dispatcher(collection), InlinePool(setup, Interrupt())
    batches: dict[int, list[Batch]] = {1: [], 64: []}
    first = 0
    for length, count in ((64, 40), (1, 400)):
        for _ in range(count):
            pool.give(*dispatcher.request(len(batches[length]), first, length))
            batch = pool.wait(0)[0]
            assert isinstance(batch, Batch)
            add_batch(collection, batch, target)
            batches[length].append(batch)
            first += length
    request, plan = dispatcher.request(0, first, 1)
    began = time.process_time()
    strategy.plan(collection.task, collection.statistics)
    plan_seconds = time.process_time() - began

    def seconds(length: int) -> float:
        began = time.process_time()
        for batch in batches[length]:
            pickle.loads(pickle.dumps(dispatcher.request(0, 0, 1)[0]))
            add_batch(collection, pickle.loads(pickle.dumps(batch)), target)
        return (time.process_time() - began) / len(batches[length])

    one, many = seconds(1), seconds(64)
    each = (many - one) / 63
    pool.close()
    return Costs(
        problem,
        one - each,
        each,
        plan_seconds,
        len(pickle.dumps(plan)),
        len(pickle.dumps(request)),
        len(pickle.dumps(batches[1][-1])),
        len(pickle.dumps(batches[64][-1])),
    )


def simulated(kind: str, workers: int, costs: Costs, seed: int = 0) -> Simulated:
    """The batch rule played with random times of episodes, and a collector that takes its time."""
    rng = np.random.default_rng(seed)
    mean = KINDS[kind]
    rule = PoolSettings("inline", None, workers, default_batch(EPISODES, workers))
    requests: deque[tuple[int, int]] = deque()  # number, episodes
    busy: list[tuple[float, int, int]] = []  # when it is done, number, episodes
    waiting: dict[int, int] = {}  # done and not added
    made = added_batches = requested = added = 0
    now = 0.0
    unknown = np.zeros(2)  # episodes times what their plan does not know, and times its share
    while added < EPISODES:
        while made < added_batches + rule.ahead and requested < EPISODES:
            count = rule.length(added, EPISODES - requested, None)
            requests.append((made, count))
            missing = requested - added
            unknown += count * np.array([missing, missing / max(requested, 1)])
            made, requested = made + 1, requested + count
        while requests and len(busy) < workers:
            number, count = requests.popleft()
            lasts = mean * count * (1.0 + rng.uniform(-0.5, 0.5) / np.sqrt(count))
            heapq.heappush(busy, (now + lasts, number, count))
        done, number, count = heapq.heappop(busy)
        # The collector takes batches one by one: when it is late, it is what all wait for.
        now = max(now, done) + costs.batch_seconds + count * costs.episode_seconds
        waiting[number] = count
        while added_batches in waiting:
            added += waiting.pop(added_batches)
            added_batches += 1
    rate = EPISODES / now
    return Simulated(kind, workers, rule.longest, rate, rate * mean, *(unknown / EPISODES).tolist())


def measured_points(repeats: int) -> list[dict[str, Any]]:
    """Real processes with an environment that sleeps, against this process alone."""
    # In turns, the best of each: a busy machine makes sleepers wait for their core.
    best = np.full(1 + len(MEASURED), np.inf)
    for _ in range(repeats):
        turn = [seconds_per_step(30)]
        turn += [seconds_per_step(30 * w, workers=w, batch=1) for w in MEASURED]
        best = np.minimum(best, turn)
    return [
        {"workers": workers, "speed_up": float(best[0] / each)}
        for workers, each in zip(MEASURED, best[1:], strict=True)
    ]


def markdown(costs: list[Costs], runs: list[Simulated], points: list[dict[str, Any]]) -> str:
    """The tables of docs/scaling.md."""
    lines = [
        "# Workers, simulated and measured",
        "",
        "Written by `python -m benchmarks.scaling_study`. What a batch costs the process that",
        "collects (request, pickling both ways, adding), measured on this machine with flow:",
        "",
        "| problem | each batch | and each episode | a plan | bytes: plan | request "
        "| batch of 1 | batch of 64 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {c.problem} | {1e6 * c.batch_seconds:.0f} µs | {1e6 * c.episode_seconds:.1f} µs "
        f"| {1e3 * c.plan_seconds:.1f} ms | {c.plan_bytes:,} | {c.request_bytes:,} "
        f"| {c.batch_bytes:,} | {c.batch_bytes_64:,} |"
        for c in costs
    ]
    lines += [
        "",
        f"The schedule of {EPISODES:,} episodes simulated with the costs of the gridworld and the",
        "default batch; speed-up over a process that plays by itself and nothing else. Unknown:",
        "episodes begun that a plan does not know of when a batch is requested, on average, and",
        "their share of all begun.",
        "",
        "| an episode takes | workers | batch | episodes a second | speed-up | unknown | share |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {run.episode} | {run.workers:,} | {run.batch} | {run.episodes_per_second:,.3g} "
        f"| {run.speed_up:,.3g} | {run.unknown:,.0f} | {run.unknown_share:.1%} |"
        for run in runs
    ]
    lines += [
        "",
        f"Measured on this machine: processes, {1000 * PAUSE:g} ms of sleep a step, {STEPS} steps",
        "an episode, batches of 1, start-up not counted:",
        "",
        "| workers | " + " | ".join(str(point["workers"]) for point in points) + " |",
        "|---|" + "---:|" * len(points),
        "| speed-up | " + " | ".join(f"{point['speed_up']:.2f}" for point in points) + " |",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, simulate, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    points = measured_points(parser.parse_args().repeats)
    costs = [costs_of(problem) for problem in ("gridworld", "frozenlake", "tree")]
    runs = [simulated(kind, workers, costs[0]) for kind in KINDS for workers in WORKERS]
    table = markdown(costs, runs, points)
    print(table)
    content = {
        "machine": facts(),
        "costs": [asdict(cost) for cost in costs],
        "simulated": [asdict(run) for run in runs],
        "measured": points,
    }
    (RESULTS / "scaling_study.json").write_text(json.dumps(content, indent=1) + "\n")
    (RESULTS / "scaling_study.md").write_text(table)


if __name__ == "__main__":
    main()

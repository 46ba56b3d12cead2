"""What stale statistics cost: many episodes of one campaign in flight, against one after the other.

    python -m benchmarks.in_flight_study --runs 1500 --processes 2

All episodes in flight decide on the same statistics and report together, which is the worst that so
many workers can do to each other. Writes benchmarks/results/in_flight_study.md.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import revar
from revar.campaigns import MemoryStorage
from revar.collection import Collection, Episode
from revar.problems import Problem
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward

EPISODES = 2000
THINKING = 0.002  # seconds that a step in a thread takes at most
RESULTS = Path(__file__).parent / "results" / "in_flight_study.md"


def in_flight(
    problem: Problem, strategy: str, episodes: int, workers: int, seed: int
) -> Collection:
    """One campaign with so many workers in lockstep: all choose, then all act, then all report."""
    mdp, policy = problem.mdp, problem.policy
    world = World.of(mdp)
    collection = Collection(
        strategy,
        horizon=mdp.horizon,
        discount=mdp.discount,
        actions=mdp.actions,
        budget=episodes,
        seed=seed,
        keep_episodes=False,
    )
    rng = np.random.default_rng((seed, 1))
    started = 0
    flying: list[tuple[Episode, int]] = []
    while started < episodes or flying:
        while len(flying) < workers and started < episodes:
            flying.append((collection.start(started), draw_first_state(world, rng)))
            started += 1
        choices = [episode.choose(state, policy[state]) for episode, state in flying]
        for (episode, state), (action, propensity, draws) in zip(flying, choices, strict=True):
            episode.repeat(state, policy[state], action, propensity, draws=draws)
        still: list[tuple[Episode, int]] = []
        for (episode, state), (action, _, _) in zip(flying, choices, strict=True):
            pair = state * mdp.actions + action
            slot = draw_outcome(world, pair, rng)
            reward = draw_reward(world, slot if world.by_outcome else pair, rng)
            successor = int(world.successor[slot])
            episode.observe(reward, None if successor == mdp.states else successor)
            if episode.over:
                episode.finish()
            else:
                still.append((episode, successor))
        flying = still
    return collection


def in_threads(
    problem: Problem, strategy: str, episodes: int, workers: int, seed: int
) -> Collection:
    """The same with so many threads on one campaign, none of which waits for the others."""
    mdp = problem.mdp
    world = World.of(mdp)
    campaign = revar.Campaign.create(
        MemoryStorage(),
        "in-flight",
        policy=problem.policy,
        horizon=mdp.horizon,
        discount=mdp.discount,
        episodes=episodes,
        strategy=strategy,
        seed=seed,
    )

    def work(number: int) -> None:
        rng = np.random.default_rng((seed, 1, number))
        for flying in campaign.episodes(poll=0.01):
            state = draw_first_state(world, rng)
            while not flying.over:
                pair = state * mdp.actions + flying.act(state)
                time.sleep(THINKING * rng.random())  # meanwhile others decide
                slot = draw_outcome(world, pair, rng)
                reward = draw_reward(world, slot if world.by_outcome else pair, rng)
                state = int(world.successor[slot])
                flying.reward(reward, None if state == mdp.states else state)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    return campaign.read(lambda state, _: state.collection)


def error(strategy: str, workers: int, seed: int) -> float:
    """The estimate's error of one campaign on the gridworld."""
    problem = revar.find_problem("gridworld")
    collection = in_flight(problem, strategy, EPISODES, workers, seed)
    # As in `simulate`, the first state is known: the gridworld has one.
    return collection.estimate().value - revar.policy_value(problem.mdp, problem.policy)


def measured(strategy: str, workers: int, runs: int, processes: int) -> tuple[float, float]:
    """K*MSE and its standard error."""
    with ProcessPoolExecutor(processes) as pool:
        work = partial(error, strategy, workers)
        errors = np.array(list(pool.map(work, range(runs), chunksize=10)))
    squares = EPISODES * errors**2
    return float(squares.mean()), float(squares.std(ddof=1) / np.sqrt(runs))


def sequential(strategy: str, runs: int) -> tuple[float, float]:
    """The same, one episode after the other, by the compiled loop."""
    problem = revar.find_problem("gridworld")
    result = revar.simulate(
        problem.mdp, problem.policy, strategy, episodes=EPISODES, runs=runs, checkpoints=[EPISODES]
    )
    return EPISODES * float(result.mse[0]), EPISODES * float(result.mse_standard_error[0])


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--strategies", nargs="*", default=["flow", "revar"])
    asked = parser.parse_args()
    lines = [
        f"# {asked.workers} episodes in flight against one after the other",
        "",
        f"Written by `python -m benchmarks.in_flight_study`. Gridworld, {EPISODES} episodes,",
        f"K\\*MSE with its standard error; {asked.runs:,} runs in flight, 8,000 runs of the",
        "compiled loop one by one.",
        "",
        "| strategy | one after the other | in flight | ratio |",
        "|---|---:|---:|---:|",
    ]
    for strategy in asked.strategies:
        alone, alone_error = sequential(strategy, 8_000)
        together, together_error = measured(strategy, asked.workers, asked.runs, asked.processes)
        ratio = together / alone
        spread = ratio * np.hypot(together_error / together, alone_error / alone)
        lines.append(
            f"| {strategy} | {alone:.3f} ± {alone_error:.3f} | {together:.3f} ± "
            f"{together_error:.3f} | {ratio:.3f} ± {spread:.3f} |"
        )
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()

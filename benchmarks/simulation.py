"""Ratios of simulation. A new benchmark is one more function here."""

from functools import partial

import numpy as np

import revar
from benchmarks import c_loop
from benchmarks.registry import Cost, Ratio, benchmark
from benchmarks.timing import Work, best_marginal, best_on_the_wall, best_per_unit
from revar.problems import Problem, problems
from revar.simulation.result import SimulationResult

EPISODES = 20_000  # of one run: set-up and the one estimate at the end do not count beside them


def simulated(
    problem: Problem, strategy: str, episodes: int, runs: int, *, threads: int = 1
) -> SimulationResult:
    """Compiled runs with a single estimate, at the end."""
    return revar.simulate(
        problem.mdp,
        problem.policy,
        strategy,
        episodes=episodes,
        runs=runs,
        checkpoints=[episodes],
        threads=threads,
    )


def interpreted(problem: Problem, strategy: str, episodes: int) -> SimulationResult:
    """One run of the plain-Python twin."""
    return revar.simulate(
        problem.mdp,
        problem.policy,
        strategy,
        episodes=episodes,
        runs=1,
        checkpoints=[episodes],
        compiled=False,
    )


def tree(depth: int = 4) -> Problem:
    """The paper's Experiment 1, or a deeper tree of the same kind."""
    return problems.find("tree")(depth)


@benchmark("one thread / two threads", at_least=1.7)
def two_threads() -> Ratio:
    """How much of a second core reaches the user. Comes first: whoever starts it left them free."""
    problem = tree()
    one, two = best_on_the_wall(
        partial(simulated, problem, "revar", EPISODES, threads=1),
        partial(simulated, problem, "revar", EPISODES, threads=2),
    )
    return Ratio(
        Cost("one thread", one, "run"),
        Cost("two threads", two, "run"),
        f"ReVar on the tree of depth 4, runs of {EPISODES:,} episodes; elapsed time, in "
        f"repetitions during which other processes took less than 10% of the cores",
    )


@benchmark("on-policy / hand-written C loop", at_most=2.0)
def on_policy_against_c() -> Ratio:
    """Against a C loop that draws the same numbers and keeps the same statistics."""
    problem = tree()
    play = c_loop.on_policy_run(c_loop.build(), problem, EPISODES)

    def by_hand(runs: int) -> None:
        for run in range(runs):
            play(np.random.default_rng(np.random.SeedSequence(0, spawn_key=(run,))))

    seeded = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0,)))
    visits = simulated(problem, "on-policy", EPISODES, 1).visits[0]
    if not np.array_equal(play(seeded), visits):
        raise AssertionError("the C loop and the compiled loop did not play the same episodes")
    ours, hand = best_per_unit(partial(simulated, problem, "on-policy", EPISODES), by_hand)
    return Ratio(
        Cost("compiled loop", ours / EPISODES, "episode"),
        Cost("C", hand / EPISODES, "episode"),
        "tree of depth 4; visits of both are equal; cc -O3; one thread",
    )


@benchmark("ReVar / on-policy", at_most=4.0)
def revar_against_on_policy() -> Ratio:
    """What deciding adaptively costs, compared with merely playing."""
    problem = tree()
    adaptive, playing = best_per_unit(
        partial(simulated, problem, "revar", EPISODES),
        partial(simulated, problem, "on-policy", EPISODES),
    )
    return Ratio(
        Cost("ReVar", adaptive / EPISODES, "episode"),
        Cost("on-policy", playing / EPISODES, "episode"),
        "tree of depth 4; re-planned after every episode; one thread",
    )


@benchmark("flow / on-policy, gridworld", at_most=5.0)
def flow_against_on_policy() -> Ratio:
    """What planning the optimal flow costs, over a run of 5000 episodes."""
    problem = problems.find("gridworld")()
    adaptive, playing = best_per_unit(
        partial(simulated, problem, "flow", 5000), partial(simulated, problem, "on-policy", 5000)
    )
    return Ratio(
        Cost("flow", adaptive / 5000, "episode"),
        Cost("on-policy", playing / 5000, "episode"),
        "4 x 4 gridworld, slip 0.1; runs of 5000 episodes; one thread",
    )


def _plain_against_compiled(strategy: str, label: str) -> Ratio:
    problem = tree()
    compiled, plain = best_per_unit(
        partial(simulated, problem, strategy, EPISODES),
        partial(interpreted, problem, strategy),
        repeats=7,
    )
    return Ratio(
        Cost(f"plain {label}", plain, "episode"),
        Cost("compiled", compiled / EPISODES, "episode"),
        "tree of depth 4; one thread; the same stream gives the same episodes",
    )


@benchmark("plain Python / compiled, on-policy", at_least=100.0)
def plain_on_policy() -> Ratio:
    """The plain-Python twin of on-policy collection."""
    return _plain_against_compiled("on-policy", "on-policy")


@benchmark("plain Python / compiled, ReVar", at_least=100.0)
def plain_revar() -> Ratio:
    """The plain-Python twin of ReVar, which re-plans with full sweeps."""
    return _plain_against_compiled("revar", "ReVar")


@benchmark("ReVar, cost of a step: depth 18 / depth 9", at_most=3.0)
def deep_tree() -> Ratio:
    """Whether the cost of an episode depends on the number of states (262,143 against 511)."""

    def growing(depth: int) -> Work:
        problem = tree(depth)
        return lambda episodes: simulated(problem, "revar", episodes, 1)

    small, large = 100_000, 600_000
    deep, shallow = best_marginal(growing(18), growing(9), small=small, large=large, repeats=5)
    return Ratio(
        Cost("depth 18", deep / 18, "step"),
        Cost("depth 9", shallow / 9, "step"),
        f"time of one run of {large:,} episodes less that of one of {small:,}, so that set-up "
        f"and the estimate at the end cancel; per step, so that the doubled path is allowed for",
    )

"""How many episodes it takes to tell which policy is best: the study behind docs/compare.md.

`python -m benchmarks.deciding_study` writes benchmarks/results/deciding_study.md and .json. Runs
are collected to the end, and the rule of deciding is applied to them afterwards: collection does
not depend on it. A second table has the error of a difference against its limit, and how often its
intervals hold.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

import revar
from benchmarks.differences import (
    CONFIDENCE,
    Accuracy,
    difference_lines,
    grid_policy,
    lake_policy,
    measure_differences,
    simulate,
)
from benchmarks.machine import facts
from revar.collection.checkpoints import (
    DECIDING_GROWTH,
    FIRST_CHECKPOINT,
    checkpoint_times,
    quantile,
)
from revar.model.arrays import FloatArray, IntArray
from revar.theory.values import return_variance

RESULTS = Path(__file__).with_name("results")
FLOW, POOLED, APART = "flow", "on-policy, pooled", "on-policy, apart"


@dataclass(frozen=True, eq=False)
class Contest:
    """Policies of which the best is wanted, and how far each way of collecting is followed."""

    name: str
    mdp: revar.TabularMDP
    policies: list[FloatArray]  # of [S, A]
    caps: dict[str, int]  # episodes, by way


@dataclass(frozen=True)
class Decision:
    """What deciding in one way took, over many runs."""

    contest: str
    way: str
    runs: int
    cap: int
    quantile: float
    wrong: float  # share of all runs
    undecided: float
    episodes: tuple[int | None, ...]  # quantiles 10%, 50%, 90%; None: not decided at the cap
    optimum: float  # episodes after which the optimal flow is expected to decide
    seconds: float

    @property
    def row(self) -> tuple[str, str, int, int]:
        """What was measured."""
        return self.contest, self.way, self.runs, self.cap


def main() -> None:
    """Run the study; rows that are stored already are kept unless they are asked for anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--difference-runs", type=int, default=4000)
    parser.add_argument("--way", choices=COLLECT, help="measure these rows anew")
    parser.add_argument("--anew", action="store_true", help="measure all rows anew")
    options = parser.parse_args()
    console = Console()
    path = RESULTS / "deciding_study.json"
    stored = json.loads(path.read_text()) if path.exists() and not options.anew else {}
    machine = facts() if options.way or not stored else stored["machine"]
    accuracies = [Accuracy(**row) for row in stored.get("differences", [])]
    kept = [Decision(**row) for row in stored.get("decisions", [])]
    if options.way == FLOW or {each.runs for each in accuracies} != {options.difference_runs}:
        with console.status("differences"):
            accuracies = list(measure_differences(options.difference_runs))
    decisions: list[Decision] = []
    for contest in contests():
        for way, cap in contest.caps.items():
            row = (contest.name, way, options.runs, cap)
            found = [each for each in kept if row == each.row and way != options.way]
            with console.status(f"{contest.name}, {way}"):
                decisions += found or [measure_deciding(contest, way, options.runs)]
            content = {
                "machine": machine,
                "decisions": [asdict(each) for each in decisions],
                "differences": [asdict(each) for each in accuracies],
            }
            path.write_text(json.dumps(content, indent=1) + "\n")
    surcharges = {contest.name: mean_return_surcharge(contest) for contest in contests()}
    table = markdown(decisions, accuracies, surcharges, machine)
    console.print(table, soft_wrap=True)
    (RESULTS / "deciding_study.md").write_text(table)


def contests() -> list[Contest]:
    """The problems on which the best policy is looked for."""
    lake = revar.from_gymnasium("FrozenLake-v1", discount=0.99)
    plan = lake_policy(0.1)
    noises = np.geomspace(0.1, 6.0, 10)
    equal = np.full(10, 0.1)
    return [
        Contest(
            "gridworld, A, B, C",
            revar.find_problem("gridworld").mdp,
            [grid_policy(common) for common in (0.45, 0.35, 0.25)],
            {FLOW: 100_000, POOLED: 200_000, APART: 600_000},
        ),
        Contest(
            "FrozenLake, ε = 0.10, 0.12, 0.14",
            lake,
            [lake_policy(epsilon) for epsilon in (0.10, 0.12, 0.14)],
            {FLOW: 500, POOLED: 500, APART: 30_000},
        ),
        Contest(
            "FrozenLake, three plans",
            lake,
            [plan, change_action(plan, 1, 0, 0.1), change_action(plan, 14, 2, 0.1)],
            {FLOW: 5_000, POOLED: 10_000, APART: 40_000},
        ),
        Contest(
            "ten-armed bandit, five policies",
            revar.find_problem("bandit", policy=equal, deviations=noises).mdp,
            list(np.random.default_rng(0).dirichlet(np.ones(10), size=(5, 1))),
            {FLOW: 20_000, POOLED: 20_000, APART: 200_000},
        ),
    ]


def change_action(policy: FloatArray, state: int, action: int, epsilon: float) -> FloatArray:
    """The soft policy with another favourite action in one state."""
    changed = policy.copy()
    changed[state] = epsilon / policy.shape[1]
    changed[state, action] += 1.0 - epsilon
    return changed


def measure_deciding(contest: Contest, way: str, runs: int) -> Decision:
    """Collect in one way, and decide."""
    began = time.perf_counter()
    times = checkpoint_times(contest.caps[way], DECIDING_GROWTH)
    values, covariances = COLLECT[way](contest, times, runs)
    count = len(contest.policies)
    z = quantile(1.0 - (1.0 - CONFIDENCE) / (count - 1), times)
    leaders, place = decide(values, covariances, z)
    truth = [revar.policy_value(contest.mdp, policy) for policy in contest.policies]
    decided = place < len(times)
    taken = np.append(np.array(times, dtype=np.float64), np.inf)[place]
    quantiles = np.quantile(taken, (0.1, 0.5, 0.9), method="nearest").tolist()
    best = revar.optimal_flow(contest.mdp, revar.Best(contest.policies), tolerance=1e-3)
    return Decision(
        contest=contest.name,
        way=way,
        runs=runs,
        cap=times[-1],
        quantile=z,
        wrong=float(np.mean(decided & (leaders != np.argmax(truth)))),
        undecided=float(np.mean(~decided)),
        episodes=tuple(int(each) if np.isfinite(each) else None for each in quantiles),
        optimum=z**2 * best.limit,
        seconds=time.perf_counter() - began,
    )


def decide(values: FloatArray, covariances: FloatArray, z: float) -> tuple[IntArray, IntArray]:
    """Who was named in every run, and at which look; the number of looks if at none.

    Decided is when the intervals of the leader's differences to all others exclude zero.
    """
    leader = values.argmax(axis=2)[:, :, None]  # [run, look, 1]
    gaps = np.take_along_axis(values, leader, axis=2) - values
    own = np.einsum("rljj->rlj", covariances)
    row = np.take_along_axis(covariances, leader[..., None], axis=2)[:, :, 0]  # with the leader
    with np.errstate(invalid="ignore"):
        variance = np.take_along_axis(own, leader, axis=2) + own - 2.0 * row
        beaten = gaps > z * np.sqrt(variance.clip(min=0.0))
    np.put_along_axis(beaten, leader, values=True, axis=2)
    decided = beaten.all(axis=2)
    place = np.where(decided.any(axis=1), decided.argmax(axis=1), decided.shape[1])
    last = np.minimum(place, decided.shape[1] - 1)
    return leader[np.arange(len(leader)), last, 0], place


def _collect_together(strategy: str) -> Callable[..., tuple[FloatArray, FloatArray]]:
    def collect(contest: Contest, times: list[int], runs: int) -> tuple[FloatArray, FloatArray]:
        result = simulate(contest.mdp, revar.Best(contest.policies), strategy, times, runs)
        return result.values, result.covariances

    return collect


def _collect_apart(contest: Contest, times: list[int], runs: int) -> tuple[FloatArray, FloatArray]:
    """Every policy from its own episodes alone, an equal share of them: independent errors."""
    count = len(contest.policies)
    values = np.zeros((runs, len(times), count))
    covariances = np.zeros((runs, len(times), count, count))
    for number, policy in enumerate(contest.policies):
        shares = [time // count for time in times]
        alone = simulate(contest.mdp, policy, "on-policy", shares, runs, seed=number)
        values[:, :, number] = alone.estimates
        covariances[:, :, number, number] = alone.standard_errors**2
    return values, covariances


COLLECT: dict[str, Callable[..., tuple[FloatArray, FloatArray]]] = {
    FLOW: _collect_together("flow"),
    POOLED: _collect_together("on-policy"),
    APART: _collect_apart,
}


def mean_return_surcharge(contest: Contest) -> float:
    """The variance of mean returns over certainty equivalence's, in the hardest difference."""
    mdp, policies = contest.mdp, contest.policies
    values = np.array([revar.policy_value(mdp, policy) for policy in policies])
    returns = np.array([return_variance(mdp, policy) for policy in policies])
    certainty = np.array([revar.estimation_variance(mdp, policy, policy) for policy in policies])
    best = int(values.argmax())
    others = np.delete(np.arange(len(policies)), best)
    effort = (certainty[best] + certainty[others]) / (values[best] - values[others]) ** 2
    hardest = others[effort.argmax()]
    return float((returns[best] + returns[hardest]) / (certainty[best] + certainty[hardest]))


def markdown(
    decisions: list[Decision],
    accuracies: list[Accuracy],
    surcharges: dict[str, float],
    machine: dict[str, str],
) -> str:
    """The page of results."""
    runs = decisions[0].runs
    spent = sum(each.seconds for each in decisions) + sum(each.seconds for each in accuracies)
    lines = [
        "# Which policy is best, and after how many episodes",
        "",
        f"Written by `python -m benchmarks.deciding_study` in {spent / 60:.0f} minutes, on a "
        f"machine of {machine['cores']} cores under a load of {machine['load before']}. {runs:,} "
        f"runs a row. The rule looks at the data after {FIRST_CHECKPOINT} episodes and whenever "
        f"they have grown by a factor {DECIDING_GROWTH}; the best is decided when the intervals of "
        f"the leader's differences to all others exclude zero. Their quantile allows for all "
        f"looks up to the cap and for the number of differences: a wrong policy may be named in "
        f"{1.0 - CONFIDENCE:.0%} of the runs.",
        "",
        "Ways to collect: **flow**, planned for the best of the policies; **on-policy, pooled**, "
        "the policies' own episodes in turn, every value estimated from all of them; **on-policy, "
        "apart**, the usual A/B test, every value estimated from its policy's own episodes. All "
        "estimates are certainty equivalence. The mean return, the usual estimate of an A/B test, "
        "has a larger variance than certainty equivalence apart, by the factor in the last column, "
        "and takes about as many times the episodes. Optimum: the episodes after which the flow "
        "that is optimal for the best would have the hardest interval end at zero, if estimates "
        "were exact.",
        "",
        "| problem | way | median episodes | 10% to 90% | optimum | of apart | wrong "
        "| undecided at the cap | quantile | seconds | mean return |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    usual = {each.contest: each.episodes[1] for each in decisions if each.way == APART}
    for each in decisions:
        low, median, high = (f"over {each.cap:,}" if k is None else f"{k:,}" for k in each.episodes)
        apart, own = usual[each.contest], each.episodes[1]
        share = f"{own / apart:.3f}" if each.way != APART and own and apart else ""
        optimum = f"{each.optimum:,.0f}" if each.way == FLOW else ""
        surcharge = f"x {surcharges[each.contest]:.2f}" if each.way == APART else ""
        lines.append(
            f"| {each.contest} | {each.way} | {median} | {low} to {high} | {optimum} | {share} "
            f"| {each.wrong:.1%} | {each.undecided:.1%} at {each.cap:,} | {each.quantile:.3f} "
            f"| {each.seconds:.0f} | {surcharge} |"
        )
    lines += ["", *difference_lines(accuracies)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

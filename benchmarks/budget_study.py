"""Budgets in steps, and limits on collection: the study behind docs/costs_and_limits.md.

`python -m benchmarks.budget_study` writes benchmarks/results/budget_study.md and .json: how far
flow and on-policy collection are from the limit per step; whether floors on the return are kept,
and what they cost; and a largest ratio. Ctrl-C keeps the rows that are done, and the next call
goes on with the others.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from math import hypot
from pathlib import Path
from typing import Any

from rich.console import Console

import revar
from benchmarks.budget_rows import (
    BUILD,
    LARGE,
    NEGLIGIBLE,
    ON_POLICY_EPISODES,
    Keeping,
    Key,
    Spending,
    measure_keeping,
    measure_spending,
)
from benchmarks.machine import facts

RESULTS = Path(__file__).with_name("results")
FLOW, ON_POLICY = "flow", "on-policy"
SPENT_ON = tuple(name for name in BUILD if name not in ("costly RiverSwim", "rare loss"))
LARGE_SHARE = 0.1  # of the runs
FLOORED = ("gridworld", "costly RiverSwim")
FLOOR_EPISODES, RATIO_EPISODES = 1000, 2000
RATIO = 3.0
# Floors as shares of the value, and the confidence.
FLOORS = (("90%", 0.9), ("100%", 0.5), ("100%", 0.9), ("100%", 0.99))
# What is not covered: losses that nobody has seen. Episodes, and the confidence.
RARE_LOSS = ((100, 0.9), (100, 0.99), (1000, 0.9))
Row = Spending | Keeping
Measure = Callable[..., Row]


def main() -> None:
    """Run the study; rows that are stored already are kept unless all are asked for anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--only", default="", help="problems whose name has this in it")
    parser.add_argument("--anew", action="store_true", help="measure all rows anew")
    options = parser.parse_args()
    console = Console()
    path = RESULTS / "budget_study.json"
    stored = json.loads(path.read_text()) if path.exists() and not options.anew else {}
    rows: list[Row] = [Spending(**row) for row in stored.get("spending", [])]
    rows += [Keeping(**row) for row in stored.get("keeping", [])]
    done = {key_of(row): row for row in rows}
    machine = stored.get("machine") or facts()
    wanted = {key: each for key, each in rows_of(options.runs).items() if options.only in key[0]}
    try:
        for key, measure in wanted.items():
            if key in done:
                continue
            with console.status(f"{key[0]}, {key[1]}") as status:
                done[key] = measure(key, status.update)
            console.print(f"{key[0]}, {key[1]}: {done[key].seconds:.0f} s")
            content = {
                "machine": machine,
                "spending": [asdict(row) for row in done.values() if isinstance(row, Spending)],
                "keeping": [asdict(row) for row in done.values() if isinstance(row, Keeping)],
            }
            path.write_text(json.dumps(content, indent=1) + "\n")
    except KeyboardInterrupt:
        console.print("interrupted; the next call goes on from here")
    table = markdown([done[key] for key in wanted if key in done], machine)
    console.print(table, soft_wrap=True)
    (RESULTS / "budget_study.md").write_text(table)


def rows_of(runs: int) -> dict[Key, Measure]:
    """Everything to measure."""
    rows: dict[Key, Measure] = {}
    for name in SPENT_ON:
        own_runs = max(2, round(LARGE_SHARE * runs)) if name in LARGE else runs
        for strategy in (FLOW, ON_POLICY):
            rows[name, strategy, own_runs] = measure_spending
    for name in FLOORED:
        free = partial(measure_keeping, limits=revar.Limits(), episodes=FLOOR_EPISODES)
        rows[name, "no limit", runs] = free
        for share, confidence in FLOORS:
            limits = revar.Limits(min_return=share, confidence=confidence)
            what = f"return at least {share}, confidence {confidence:g}"
            rows[name, what, runs] = partial(
                measure_keeping, limits=limits, episodes=FLOOR_EPISODES
            )
    for episodes, confidence in RARE_LOSS:
        limits = revar.Limits(min_return="100%", confidence=confidence)
        what = f"return at least 100%, confidence {confidence:g}, {episodes:,} episodes"
        rows["rare loss", what, runs] = partial(measure_keeping, limits=limits, episodes=episodes)
    rows["gridworld", f"at most {RATIO:g} times the policy", runs] = partial(
        measure_keeping, limits=revar.Limits(max_ratio=RATIO), episodes=RATIO_EPISODES
    )
    return rows


def key_of(row: Row) -> Key:
    """What a row measures."""
    return row.problem, row.what, row.runs


def markdown(rows: list[Row], machine: dict[str, Any]) -> str:
    """The page of results."""
    seconds = sum(row.seconds for row in rows)
    lines = [
        "# Budgets in steps, and limits on collection",
        "",
        f"Written by `python -m benchmarks.budget_study` after {seconds / 60:.0f} minutes of "
        f"simulation, on a machine of {machine['cores']} cores.",
        "",
        *spending_lines([row for row in rows if isinstance(row, Spending)]),
        "",
        *keeping_lines([row for row in rows if isinstance(row, Keeping)]),
    ]
    return "\n".join(lines) + "\n"


def spending_lines(rows: list[Spending]) -> list[str]:
    """Budgets of steps, both strategies in one line."""
    if not rows:
        return []
    lines = [
        f"Each budget B is the steps of {ON_POLICY_EPISODES:,} on-policy episodes. B·MSE over the "
        f"limit per step ± its standard error, for flow and for on-policy certainty equivalence; "
        f"in brackets by the visits made, which has little noise: a pair without visits counts as "
        f"if it had one, and there is no figure where more than {NEGLIGIBLE:.0%} of the policy's "
        f"episodes rest on no data. The error of flow over that of on-policy collection is for "
        f"equal steps. The bias is in standard deviations of the estimate.",
        "",
        "| problem | runs | steps B | flow over the limit | on-policy over the limit "
        "| error of flow / on-policy | bias of flow | steps of an episode: flow, on-policy "
        "| episodes: flow, on-policy | 95% interval holds: flow, on-policy |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for flow in rows:
        others = [row for row in rows if row.problem == flow.problem and row.what == ON_POLICY]
        if flow.what != FLOW or not others:
            continue
        other = others[0]
        holds = f"{flow.coverage:.1%}, {other.coverage:.1%}" if flow.limit > 0.0 else ""
        times = flow.mse / other.mse
        error = hypot(flow.mse_error, times * other.mse_error) / other.mse
        lines.append(
            f"| {flow.problem} | {flow.runs} | {flow.budget:,} | {measured(flow)} "
            f"| {measured(other)} | {times:.3g} ± {error:.2g} | {biased(flow)} "
            f"| {flow.steps:.1f}, {other.steps:.1f} | {flow.episodes:,.0f}, {other.episodes:,.0f} "
            f"| {holds} |"
        )
    return lines


def keeping_lines(rows: list[Keeping]) -> list[str]:
    """Limits on collection."""
    if not rows:
        return []
    lines = [
        "Limits, with flow. Returns are those of the visits made, without the noise of rewards. "
        "The surplus is the mean return of a run less the floor, as a share of the floor, ± its "
        "standard error over runs; where there is no floor, it is against the target policy's "
        "value. Price: the smallest possible K·MSE within the limits, over that without any.",
        "",
        "| problem | limits | K | runs | runs below the floor | surplus | price "
        "| K·MSE over the limit (by visits) | bias | largest ratio in a plan "
        "| 95% interval holds |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        surplus = (row.mean_return - row.floor) / abs(row.floor)
        error = row.return_error / abs(row.floor)
        ratio = "" if row.plan_ratio is None else f"{row.plan_ratio:.4f}"
        lines.append(
            f"| {row.problem} | {row.what} | {row.episodes:,} | {row.runs} | {row.below:.1%} "
            f"| {surplus:+.2%} ± {error:.2%} | {row.limit / row.free:.4f} | {measured(row)} "
            f"| {biased(row)} | {ratio} | {row.coverage:.1%} |"
        )
    return lines


def measured(row: Row) -> str:
    """The error over the limit, and by visits."""
    if row.ratio is None:
        return "the limit is 0"
    by_visits = "" if row.by_visits is None else f" ({row.by_visits:.3f})"
    return f"{row.ratio:.3f} ± {row.ratio_error:.3f}{by_visits}"


def biased(row: Row) -> str:
    """The bias, with its standard error."""
    return f"{row.bias:+.2f} ± {row.runs**-0.5:.2f}"


if __name__ == "__main__":
    main()

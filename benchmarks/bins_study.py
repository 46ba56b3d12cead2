"""Bins against critics and the mean return: the table on the page "Any policy in any environment".

A policy that PPO learned for CartPole; its value is known from many episodes. Takes some minutes:

    python -m benchmarks.bins_study
"""

from typing import Any

import numpy as np

import revar
from revar.experiments.critic_problems import Network, SoftmaxNetwork

TRUTH = 174.08
SEEDS = range(12)
LOW, HIGH = [-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0]
CHOICES: dict[str, dict[str, Any]] = {
    **{
        f"bins {' x '.join(map(str, counts))}": {"bins": revar.Bins.uniform(LOW, HIGH, counts)}
        for counts in ([3, 3, 6, 6], [6, 6, 12, 12], [1, 8, 24, 16])
    },
    "mean return": {"method": "mean"},
    "linear critics": {"critics": ["linear"]},
    "linear critics and networks": {"critics": ["linear", "network"]},
}


def main() -> None:
    """Print the table."""
    policy = SoftmaxNetwork(Network("cartpole_ppo"))
    print("| | value | half-width | interval holds | called biased |\n|---|---:|---:|---:|---:|")
    for name, options in CHOICES.items():
        runs = [
            revar.evaluate("CartPole-v1", policy, episodes=200, horizon=200, seed=seed, **options)
            for seed in SEEDS
        ]
        value = np.mean([run.value for run in runs])
        reach = np.mean([run.half_width for run in runs])
        held = sum(abs(run.value - TRUTH) <= run.half_width for run in runs)
        checks = [run.table_findings.aggregation for run in runs] if "bins" in options else []
        biased = sum(check is not None and check.biased for check in checks)
        print(
            f"| {name} | {value:.1f} | {reach:.1f} | {held} of {len(runs)} | {biased} |", flush=True
        )


if __name__ == "__main__":
    main()

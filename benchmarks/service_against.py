"""What a request to the service costs, beside the service of an earlier commit.

`python -m benchmarks.service_against COMMIT [--rounds 16]` prints ratios of this tree to that
commit. Both services run at the same time on one machine, and callers turn to them in turns.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.cold_start import ROOT, checked_out
from benchmarks.load import Load, loaded
from benchmarks.service import CALLERS, HORIZON, SECONDS, database, decisions

# In words that both trees understand: each makes the campaign that it serves.
CREATE = f"""
import sys, numpy as np
from revar.campaigns import Campaign
Campaign.create(
    sys.argv[1], "bench", policy=np.full(({HORIZON}, 2), 0.5), horizon={HORIZON}, episodes=10**8,
    seed=1,
).storage.close()
"""
SERVE = "from revar.cli.main import main; main()"
MEASURES = ("time", "p50", "p99", "CPU")


class Service(NamedTuple):
    """A service of a tree, in a process of its own."""

    process: int
    port: int

    def cpu(self) -> float:
        """Seconds that it has computed."""
        told = Path(f"/proc/{self.process}/stat").read_text(encoding="ascii").rpartition(")")[2]
        ticks = told.split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def measure(self) -> tuple[float, ...]:
        """Seconds of a request: those that pass, p50 and p99 of callers, and CPU of the service."""
        before = self.cpu()
        load: Load = loaded(self.port, decisions, CALLERS, SECONDS)
        # Callers warm up for a fifth of the time, which costs as much.
        requests = 1.2 * SECONDS / load.seconds
        return load.seconds, load.p50, load.p99, (self.cpu() - before) / requests


@contextmanager
def serving(tree: Path, address: str) -> Iterator[Service]:
    """The service of a tree with a campaign of its own."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    run = [sys.executable, "-c"]
    subprocess.run([*run, CREATE, address], cwd=tree, env=environment, check=True)
    with subprocess.Popen(
        [*run, SERVE, "serve", "--storage", address, "--port", "0"],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().strip().rpartition(":")[2])
            yield Service(process.pid, port)
        finally:
            process.terminate()


def compare(storage: str, trees: tuple[Path, Path], rounds: int) -> None:
    """Print the ratios of the first tree to the second, on one kind of storage."""
    with ExitStack() as stack:
        services = []
        for tree in trees:
            if storage == "SQLite":
                folder = stack.enter_context(TemporaryDirectory())
                address = f"sqlite:///{folder}/bench.db"
            else:
                address = stack.enter_context(database())
            services.append(stack.enter_context(serving(tree, address)))
        for service in services:
            service.measure()  # what is compiled on first use, and the first plans
        taken = np.array(
            [
                [each.measure() for each in (services if i % 2 else services[::-1])][
                    :: 1 if i % 2 else -1
                ]
                for i in range(rounds)
            ]
        )
    logs = np.log(taken[:, 0] / taken[:, 1])
    for k, name in enumerate(MEASURES):
        error = logs[:, k].std(ddof=1) / rounds**0.5
        ratio, middle = np.exp(logs[:, k].mean()), np.exp(np.median(logs[:, k]))
        print(
            f"{storage}, {name}: {ratio:.3f} ± {ratio * error:.3f}, median {middle:.3f}; "
            f"this tree {1e6 * np.median(taken[:, 0, k]):.0f} µs",
            flush=True,
        )


def main() -> None:
    """Measure both storages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="to compare this tree to")
    parser.add_argument("--rounds", type=int, default=16)
    options = parser.parse_args()
    with checked_out(options.commit) as tree:
        for storage in ("SQLite", "PostgreSQL"):
            compare(storage, (ROOT, tree), options.rounds)


if __name__ == "__main__":
    main()

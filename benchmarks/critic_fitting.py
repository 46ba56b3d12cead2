"""How long critics take to fit: networks beside the linear stack, and two cores beside a GPU.

`python -m benchmarks.critic_fitting` prints all of it, and needs no more than the extra `critic`.
Every fit is timed in a process of its own, which keeps to the cores that it is given: the first
time, when JAX compiles, and again.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.registry import Cost, NotMeasuredError, Ratio, benchmark
from revar.critics.interface import Experience
from revar.model.law import Law, Normal

EPISODES = (50, 200, 1000)
STEPS = 200  # of every episode
INPUTS = 4
RESETS = 10  # for every episode
FAMILIES = {"linear": "LinearFamily", "network": "NetworkFamily"}


@dataclass(frozen=True)
class Fit:
    """Seconds of a first and of a second fit."""

    device: str  # its name, or how many cores
    first: float
    again: float
    first_cpu: float  # of CPU time
    again_cpu: float
    megabytes: float  # the most that the process has held
    digest: str  # of what the critics say: equal where they are


def made_up(episodes: int) -> Experience:
    """Episodes of a walk in INPUTS dimensions that a normal action pushes; reward falls with it."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((episodes, STEPS, 1))
    drift = 0.1 * rng.standard_normal((episodes, STEPS, INPUTS))
    inputs = np.cumsum(drift + 0.1 * noise, axis=1) - drift - 0.1 * noise
    law = Law((Normal(1),))
    drawn = noise.reshape(-1, 1)
    return Experience(
        start=np.arange(episodes + 1) * STEPS,
        inputs=inputs.reshape(-1, INPUTS),
        elapsed=np.tile(np.arange(STEPS) / STEPS, episodes),
        rewards=-np.sum(inputs**2, axis=2).ravel(),
        scores=law.scores(drawn, drawn),
        actions=drawn,
        noise=drawn,
        law=law,
        discount=1.0,
        resets=np.zeros((RESETS * episodes, INPUTS)),
    )


def fit_here(family: str, episodes: int, cores: int) -> Fit:
    """Fit twice in this process, which has loaded neither JAX nor its threads yet."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    critics = getattr(import_module(f"revar.critics.{family}"), FAMILIES[family])()
    experience = made_up(episodes)
    times = [(perf_counter(), process_time())]
    for _ in range(2):
        columns = critics.cross_fit(experience, 0)
        times.append((perf_counter(), process_time()))
    (first, first_cpu), (again, again_cpu) = np.diff(times, axis=0).tolist()
    name = "one core" if cores == 1 else f"{cores} cores"
    if family == "network" and (found := import_module("jax").devices()[0]).platform != "cpu":
        name = found.device_kind
    digest = hashlib.sha256(columns.advantages.tobytes()).hexdigest()[:8]
    return Fit(name, first, again, first_cpu, again_cpu, _most_megabytes(), digest)


def _most_megabytes() -> float:
    resource = import_module("resource")
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024


def fit(family: str, episodes: int, *, cores: int, gpu: bool = False) -> Fit:
    """Fit twice in a process of its own."""
    environment: dict[str, Any] = {**os.environ, "OMP_NUM_THREADS": str(cores)}
    if not gpu:
        environment["JAX_PLATFORMS"] = "cpu"
    command = [sys.executable, "-m", "benchmarks.critic_fitting"]
    command += ["--fit", family, "--episodes", str(episodes), "--cores", str(cores)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return Fit(**json.loads(done.stdout.splitlines()[-1]))


def finds_gpu() -> bool:
    """Whether JAX does; asked in another process, so that this one does not load it."""
    ask = "import jax; print(jax.default_backend())"
    told = subprocess.run(
        [sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True, check=True
    )
    return told.stdout.strip() != "cpu"


@benchmark("fitting networks / the linear stack")
def networks_beside_the_linear_stack() -> Ratio:
    """What the extra `critic` costs where nothing has been compiled yet."""
    network, linear = (fit(family, 200, cores=1) for family in ("network", "linear"))
    return Ratio(
        Cost("networks, compiled first", network.first_cpu, "fit"),
        Cost("linear stack", linear.first_cpu, "fit"),
        f"critics of all worlds from 200 episodes of {STEPS} steps, CPU time on one core",
    )


@benchmark("fitting networks on two cores / on a GPU", at_least=5.0)
def two_cores_beside_a_gpu() -> Ratio:
    """What a GPU gains."""
    if not finds_gpu():
        raise NotMeasuredError("JAX finds no GPU")
    cpu, gpu = (fit("network", 1000, cores=2, gpu=gpu) for gpu in (False, True))
    return Ratio(
        Cost("two cores", cpu.again, "fit"),
        Cost(gpu.device, gpu.again, "fit"),
        f"networks of all worlds from 1,000 episodes of {STEPS} steps, elapsed time, compiled",
    )


def main() -> None:
    """Print a line for each fit, and how many times faster a GPU is than two cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", choices=tuple(FAMILIES), help="fit here, and print it as JSON")
    parser.add_argument("--episodes", type=int, nargs="+", default=list(EPISODES))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="two cores beside a GPU alone")
    options = parser.parse_args()
    if options.fit:
        print(json.dumps(vars(fit_here(options.fit, options.episodes[0], options.cores))))
        return
    if not options.gpu:
        for episodes in options.episodes:
            linear, network = (_shown(each, episodes, cores=1) for each in FAMILIES)
            print(f"  networks / linear: {network.first_cpu / linear.first_cpu:.2f} in CPU time")
    if not finds_gpu():
        print("JAX finds no GPU")
        return
    for episodes in options.episodes:
        two, gpu = (_shown("network", episodes, cores=2, gpu=gpu) for gpu in (False, True))
        print(
            f"  two cores / GPU: {two.again / gpu.again:.1f}, with compilation "
            f"{two.first / gpu.first:.1f}"
        )


def _shown(family: str, episodes: int, *, cores: int, gpu: bool = False) -> Fit:
    found = fit(family, episodes, cores=cores, gpu=gpu)
    print(
        f"{family}, {episodes} episodes of {STEPS} steps, {found.device}: "
        f"first {found.first:.1f} s (CPU {found.first_cpu:.1f}), "
        f"again {found.again:.1f} s (CPU {found.again_cpu:.1f}), {found.megabytes:.0f} MB, "
        f"advantages {found.digest}",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()

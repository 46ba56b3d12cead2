"""The hand-written C loop: compiled by the benchmark, called through ctypes."""

import ctypes
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.registry import NotMeasuredError
from revar.model.arrays import IntArray
from revar.model.mdp import TabularMDP
from revar.problems import Problem
from revar.simulation.world import World


def build() -> Any:
    """The C function, compiled with cc -O3 against NumPy's random library."""
    source = Path(__file__).with_name("on_policy.c")
    random_library = Path(np.__file__).parent / "random" / "lib" / "libnpyrandom.a"
    with tempfile.TemporaryDirectory(prefix="revar-bench-") as folder:
        library = Path(folder) / "on_policy.so"
        command = [
            "cc",
            "-O3",
            "-shared",
            "-fPIC",
            f"-I{np.get_include()}",
            f"-I{sysconfig.get_paths()['include']}",
            str(source),
            str(random_library),
            "-lm",
            "-o",
            str(library),
        ]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise NotMeasuredError("there is no C compiler (cc)") from None
        except subprocess.CalledProcessError as error:
            raise NotMeasuredError(f"cc failed: {error.stderr.strip()}") from None
        return ctypes.CDLL(str(library)).on_policy


def on_policy_run(
    function: Any, problem: Problem, episodes: int
) -> Callable[[np.random.Generator], IntArray]:
    """A function that plays one run from a stream and returns its visits [S, A]."""
    mdp: TabularMDP = problem.mdp
    world = World.of(mdp)
    policy = np.ascontiguousarray(problem.policy)
    starts = world.start_states
    if starts.size != 1 or world.by_outcome or mdp.reward_law != "normal":
        raise ValueError("the C loop plays one start state and normal rewards only")

    def play(rng: np.random.Generator) -> IntArray:
        pairs, slots = mdp.states * mdp.actions, world.successor.size
        visits = np.zeros(pairs, dtype=np.int64)
        mean, squares = np.zeros(pairs), np.zeros(pairs)
        outcome_count, outcome_mean = np.zeros(slots, dtype=np.int64), np.zeros(slots)
        arrays = (
            policy,
            world.row_start,
            world.successor,
            world.cumulative,
            world.reward_mean,
            world.reward_std,
            visits,
            mean,
            squares,
            outcome_count,
            outcome_mean,
        )
        function(
            rng.bit_generator.ctypes.bit_generator,
            *(
                ctypes.c_int64(number)
                for number in (episodes, mdp.horizon, mdp.states, mdp.actions, int(starts[0]))
            ),
            *(ctypes.c_void_p(array.ctypes.data) for array in arrays),
        )
        return visits.reshape(mdp.states, mdp.actions)

    return play

"""The hand-written C loop: compiled by the benchmark, called through ctypes."""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from revar.engine.world import World
from revar.model.mdp import TabularMDP
from revar.problems import Problem


def build() -> Any:
    """The C function, compiled with cc -O3 against NumPy's random library."""
    numpy_folder = Path(np.__file__).parent
    source = Path(__file__).with_name("on_policy.c")
    library = Path(tempfile.mkdtemp(prefix="revar-bench-")) / "on_policy.so"
    command = [
        "cc",
        "-O3",
        "-shared",
        "-fPIC",
        f"-I{np.get_include()}",
        f"-I{_python_headers()}",
        str(source),
        str(numpy_folder / "random" / "lib" / "libnpyrandom.a"),
        "-lm",
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library)).on_policy


def _python_headers() -> str:
    import sysconfig  # noqa: PLC0415 - only the compiler needs it

    return sysconfig.get_paths()["include"]


def on_policy_run(
    function: Any, problem: Problem, episodes: int
) -> Callable[[np.random.Generator], np.ndarray[Any, Any]]:
    """A function that plays one run from a stream and returns its visits [S, A]."""
    mdp: TabularMDP = problem.mdp
    world = World.of(mdp)
    policy = np.ascontiguousarray(problem.policy)
    starts = world.start_states
    if starts.size != 1 or world.by_outcome or mdp.reward_law != "normal":
        raise ValueError("the C loop plays one start state and normal rewards only")

    def play(rng: np.random.Generator) -> np.ndarray[Any, Any]:
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

"""One compiled loop for every strategy, kept on disk."""

import json
import subprocess
import sys
from typing import Any, cast

from revar import simulate
from revar.problems import problems
from revar.simulation.loop import play_run
from revar.strategies import strategies

SCRIPT = """
import json
from numba.core import event
from revar import simulate
from revar.problems import problems
from revar.strategies import strategies

tree = problems.find("tree")(2)
with event.install_recorder("numba:compile") as recorder:
    for name in strategies.ids():
        simulate(tree.mdp, tree.policy, name, episodes=3, runs=2)
print(json.dumps(sorted({happened.data["dispatcher"].py_func.__qualname__
                         for _, happened in recorder.buffer})))
"""


def play_all() -> None:
    for problem_id in ("tree", "gridworld"):
        problem = problems.find(problem_id)()
        for name in strategies.ids():
            simulate(problem.mdp, problem.policy, name, episodes=3, runs=2)


def test_one_loop_serves_every_strategy() -> None:
    play_all()
    assert len(cast(Any, play_run).overloads) == 1


def test_a_new_process_finds_everything_compiled() -> None:
    play_all()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == []

import json
import subprocess
import sys

SCRIPT = """
import json, pathlib, re, resource, time
from revar import oracle_mse, sampling_proportions
from revar.problems import problems

build = problems.find("tree")
small = build(2)
sampling_proportions(small.mdp, small.policy)  # compile, where nothing is cached yet
small.mdp.structure()
begin = time.process_time()
problem = build(18)
kind = problem.mdp.structure().kind
oracle = sampling_proportions(problem.mdp, problem.policy)
seconds = time.process_time() - begin
status = pathlib.Path("/proc/self/status")
if status.exists():
    # On Linux ru_maxrss counts the parent, from whose memory the process was spawned.
    kibibytes = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1])
else:
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # macOS: bytes
print(json.dumps({
    "states": problem.mdp.states,
    "kind": kind,
    "seconds": seconds,
    "mebibytes": kibibytes / 2**10,
    "normalizer": float(oracle.normalizers[0]),
    "shares": oracle.behavior[0].tolist(),
}))
"""


def test_a_tree_of_depth_18_takes_seconds_and_less_than_a_gibibyte() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert found["states"] == 262_143
    assert found["kind"] == "tree"
    assert found["seconds"] < 5.0
    assert found["mebibytes"] < 1024
    # Every state of a level has the same normalizer: B' = .95 sqrt(.01 + B^2) + .05 sqrt(20 + B^2).
    normalizer = 0.0
    for _ in range(18):
        quiet = 0.95 * (0.01 + normalizer**2) ** 0.5
        noisy = 0.05 * (20.0 + normalizer**2) ** 0.5
        normalizer = quiet + noisy
    assert abs(found["normalizer"] - normalizer) < 1e-10
    assert abs(found["shares"][1] - noisy / normalizer) < 1e-12

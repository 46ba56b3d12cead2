"""A campaign with a long log: opening it without a snapshot, and downloading it.

python -m benchmarks.long_log [--steps 1000000] [--profile]
"""

import argparse
import cProfile
import pstats
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from revar.campaigns import Campaign, SQLiteStorage
from revar.campaigns.events import Acted, Rewarded, Started, encode_event
from revar.campaigns.export import export_text

HORIZON, STATES, ACTIONS, SIDE_BY_SIDE = 10, 50, 3, 16
PIECE = 20_000  # events appended at a time


def events(steps: int) -> Iterator[bytes]:
    """Episodes of ten steps, sixteen side by side, over fifty states."""
    draw = random.Random(1)
    for first in range(0, steps // HORIZON, SIDE_BY_SIDE):
        numbers = range(first, min(first + SIDE_BY_SIDE, steps // HORIZON))
        names = [f"{number:032x}" for number in numbers]
        places = [draw.randrange(STATES) for _ in names]
        for name in names:
            yield encode_event(Started(name))
        for step in range(HORIZON):
            for which, name in enumerate(names):
                state = msgspec.Raw(str(places[which]).encode())
                yield encode_event(Acted(name, step, state, draw.randrange(ACTIONS)))
            for which, name in enumerate(names):
                places[which] = draw.randrange(STATES)
                following = msgspec.Raw(str(places[which]).encode())
                yield encode_event(Rewarded(name, step, draw.gauss(1.0, 1.0), following))


def write(path: Path, steps: int) -> None:
    """A file with such a campaign, and no snapshot."""
    with SQLiteStorage(path) as storage:
        policy = {state: [0.5, 0.25, 0.25] for state in range(STATES)}
        campaign = Campaign.create(
            storage, "long", policy=policy, horizon=HORIZON, episodes=steps // HORIZON, seed=1
        )
        stream = events(steps)
        while piece := list(islice(stream, PIECE)):
            storage.append(campaign.id, piece)


def main() -> None:
    """Write the file, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.db"
        write(path, given.steps)
        with SQLiteStorage(path) as storage:
            # Compiled code is loaded before the clock starts.
            small = Path(folder) / "small.db"
            write(small, 200 * HORIZON)
            with SQLiteStorage(small) as other:
                Campaign.open(other, "long").status()
            profile = cProfile.Profile()
            if given.profile:
                profile.enable()
            began, used = time.perf_counter(), time.process_time()
            campaign = Campaign.open(storage, "long")
            took, processor = time.perf_counter() - began, time.process_time() - used
            profile.disable()
            if given.profile:
                pstats.Stats(profile).sort_stats("tottime").print_stats(35)
            assert campaign.status().steps == given.steps // HORIZON * HORIZON
            each = 1e6 * processor / given.steps
            print(f"opened in {took:.1f} s, {processor:.1f} s of processor, {each:.1f} µs a step")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for form in ("jsonl", "csv"):
                began = time.perf_counter()
                lines = export_text(campaign.definition, campaign.events(), form)
                first = len(next(lines))
                begun = time.perf_counter() - began
                size = first + sum(map(len, lines))
                took = time.perf_counter() - began
                after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                print(
                    f"{form}: first line after {begun:.2f} s, {size / 1e6:.0f} MB in {took:.1f} s, "
                    f"{(after - before) / 1024:.0f} MiB more memory"
                )


if __name__ == "__main__":
    main()

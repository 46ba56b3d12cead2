"""A simulated ad server that takes part in a campaign of a service, over HTTP.

Visitors come in three segments and see up to three pages. On every page one of four ads is shown.
The policy in use, whose value is wanted, mostly shows the first two; the campaign decides which ads
are really shown, so that the value of that policy is known from as few visitors as possible.
"""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import revar
from revar.campaigns import BudgetReservedError, BudgetSpentError
from revar.client import ConnectedCampaign

VISITORS = int(os.environ.get("VISITORS", "1500"))
THREADS = 8
PAGES = 3
SEGMENTS = {"new": 0.5, "returning": 0.35, "loyal": 0.15}
# The target policy by page: which ad it shows with which probability.
TARGET = [[0.45, 0.45, 0.05, 0.05], [0.45, 0.45, 0.05, 0.05], [0.25, 0.25, 0.25, 0.25]]
# The mean profit of each ad by segment. The last one sells less often, but for more.
PROFIT = {
    "new": [1.0, 0.8, 0.5, 2.0],
    "returning": [1.2, 1.0, 0.9, 3.0],
    "loyal": [0.6, 1.4, 1.1, 5.0],
}
SALE = [0.5, 0.4, 0.3, 0.2]  # chance of a sale
STAYS = [0.6, 0.5, 0.7, 0.4]  # chance that the visitor goes on to the next page


def serve_visitors(campaign: ConnectedCampaign, seed: int) -> None:
    """One thread of the ad server: a visitor is an episode, a page a step."""
    draw = random.Random(seed)
    while True:
        try:
            visitor = campaign.start_episode()
        except (BudgetSpentError, BudgetReservedError):  # the rest is with the other threads
            return
        segment = draw.choices(list(SEGMENTS), list(SEGMENTS.values()))[0]
        while not visitor.over:
            page = visitor.steps
            ad = visitor.act({"segment": segment, "page": page}, TARGET[page])
            sold = draw.random() < SALE[ad]
            profit = PROFIT[segment][ad] / SALE[ad] * draw.uniform(0.5, 1.5) if sold else 0.0
            stays = page + 1 < PAGES and draw.random() < STAYS[ad]
            visitor.reward(profit, {"segment": segment, "page": page + 1} if stays else None)


def true_value() -> float:
    """The target policy's expected profit of a visitor: this world is known exactly."""
    value = 0.0
    for segment, share in SEGMENTS.items():
        after = 0.0
        for page in reversed(range(PAGES)):
            after = sum(
                probability * (PROFIT[segment][ad] + (STAYS[ad] * after if page + 1 < PAGES else 0))
                for ad, probability in enumerate(TARGET[page])
            )
        value += share * after
    return value


@contextlib.contextmanager
def service_address() -> Iterator[str]:
    """The service that REVAR_ADDRESS names, or one of our own, on loopback and for now."""
    if os.environ.get("REVAR_ADDRESS"):
        yield os.environ["REVAR_ADDRESS"]
        return
    command = shutil.which("revar", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if command is None:
        sys.exit("revar is not installed here; set REVAR_ADDRESS to a running service")
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [command, "serve", "--storage", f"sqlite:///{folder}/campaigns.db", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Run the campaign, and print what came of it beside the truth."""
    token = os.environ.get("REVAR_TOKEN") or None
    with service_address() as address, revar.connect(address, token) as service:
        name = f"ads-{random.randrange(10**6)}"
        campaign = service.create(name, actions=4, horizon=PAGES, episodes=VISITORS)
        print(f"{VISITORS} visitors; watch them at {address}/campaigns/{name}")
        threads = [
            threading.Thread(target=serve_visitors, args=(campaign, seed))
            for seed in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = campaign.estimate()
        low, high = found.interval
        print(f"estimated profit of a visitor: {found.value:.3f}")
        print(f"95% interval: {low:.3f} to {high:.3f}")
        print(f"the truth: {true_value():.3f}")


if __name__ == "__main__":
    main()

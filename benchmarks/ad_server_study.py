"""How often intervals hold where most rewards are zero: the ad server of examples/live.

    python -m benchmarks.ad_server_study --runs 150

Eight visitors are under way at a time, in one process and without a service. Writes
benchmarks/results/ad_server_study.md.
"""

import argparse
import random
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from revar.collection import Collection, Episode

EXAMPLE = Path(__file__).parents[1] / "examples" / "live" / "ad_server.py"
ad_server = SimpleNamespace(**runpy.run_path(str(EXAMPLE)))
RESULTS = Path(__file__).with_name("results")
STRATEGIES = ("on-policy", "revar", "flow")
VISITORS = (600, 1500)


def serve(strategy: str, visitors: int, seed: int) -> Collection:
    """One campaign: the threads of the example take turns, a page each."""
    collection = Collection(
        strategy,
        horizon=ad_server.PAGES,
        actions=len(ad_server.SALE),
        budget=visitors,
        seed=seed,
        keep_episodes=False,
    )
    draw = random.Random(seed)
    waiting = iter(range(visitors))
    threads = [_visits(collection, waiting, draw) for _ in range(ad_server.THREADS)]
    while threads:
        threads = [each for each in threads if next(each, None) is not None]
    return collection


def _visits(collection: Collection, waiting: Iterator[int], draw: random.Random) -> Iterator[bool]:
    """The visitors of one thread, one after the other; it yields after every page."""
    for number in waiting:
        episode: Episode = collection.start(number)
        segment = draw.choices(list(ad_server.SEGMENTS), list(ad_server.SEGMENTS.values()))[0]
        for page in range(ad_server.PAGES):
            state, policy = (segment, page), np.array(ad_server.TARGET[page])
            ad, propensity, draws = episode.choose(state, policy)
            episode.repeat(state, policy, ad, propensity, draws=draws)
            yield True
            sold = draw.random() < ad_server.SALE[ad]
            profit = ad_server.PROFIT[segment][ad] / ad_server.SALE[ad] * draw.uniform(0.5, 1.5)
            stays = page + 1 < ad_server.PAGES and draw.random() < ad_server.STAYS[ad]
            episode.observe(profit if sold else 0.0, (segment, page + 1) if stays else None)
            if episode.over:
                episode.finish()
                break


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=150)
    runs = parser.parse_args().runs
    truth = ad_server.true_value()
    text = [
        f"How many of the 95% intervals held, and the root of the mean squared error; {runs} runs.",
        "",
        f"| visitors | {' | '.join(f'`{strategy}`' for strategy in STRATEGIES)} |",
        "|---:" + "|---" * len(STRATEGIES) + "|",
    ]
    for visitors in VISITORS:
        cells = []
        for strategy in STRATEGIES:
            found = [serve(strategy, visitors, seed).estimate() for seed in range(runs)]
            held = np.mean([each.interval[0] <= truth <= each.interval[1] for each in found])
            error = np.sqrt(np.mean([(each.value - truth) ** 2 for each in found]))
            cells.append(f"{held:.0%}, {error:.3f}")
        text.append(f"| {visitors} | {' | '.join(cells)} |")
        print(text[-1], flush=True)
    (RESULTS / "ad_server_study.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

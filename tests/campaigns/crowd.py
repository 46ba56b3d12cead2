"""Many workers on one campaign at once, through the service or each on the storage itself.

python -m tests.campaigns.crowd sqlite:///crowd.db --workers 16 --episodes 800
python -m tests.campaigns.crowd postgresql://... --direct --compare
"""

import argparse
import json
import os
import signal
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from revar.campaigns import BudgetReservedError, BudgetSpentError, Campaign
from tests.campaigns.accounts import check
from tests.campaigns.processes import (
    HORIZON,
    NAME,
    POLICIES,
    POLICY,
    Caller,
    Notes,
    await_service,
    forked,
    outcome,
    play,
    service,
    warm_up,
)
from tests.postgres import free_port


def through_service(port: int, notes: Path) -> Callable[[], None]:
    """A worker that knows HTTP alone."""

    def work() -> None:
        caller = Caller(port, Notes(notes))
        while True:
            episode = {"id": uuid.uuid4().hex, "step": 0, "state": "a"}
            status, answer = caller.post("/episodes", {"episode": episode["id"]})
            if status == 201:
                play(caller, episode)
            elif answer["error"]["code"] == "budget-spent":
                return
            else:
                time.sleep(0.01)

    return work


def direct(storage: str, path: Path) -> Callable[[], None]:
    """A worker with the storage's address."""

    def work() -> None:
        notes = Notes(path)
        campaign = Campaign.open(storage, NAME)
        while True:
            try:
                episode = campaign.start_episode()
            except BudgetSpentError:
                return
            except BudgetReservedError:
                time.sleep(0.01)
                continue
            state: str | None = "a"
            while not episode.over:
                step = episode.steps
                action = episode.act(state)
                where = f"/episodes/{episode.id}"
                asked = {"step": step, "state": state}
                notes.add("sent", path=f"{where}/act", body=asked)
                notes.add(
                    "acknowledged", path=f"{where}/act", body=asked, answer={"action": action}
                )
                reward, state = outcome(episode.id, step, action)
                told = {"step": step, "reward": reward, "next_state": state}
                notes.add("sent", path=f"{where}/reward", body=told)
                episode.reward(reward, state)
                notes.add("acknowledged", path=f"{where}/reward", body=told)

    return work


def crowd(
    storage: str, workers: int, budget: dict[str, Any], *, directly: bool, compares: bool = False
) -> dict[str, Any]:
    """Let them work until the budget is spent; raises where the accounts do not agree."""
    asked: dict[str, Any] = {"policies": POLICIES} if compares else {"policy": POLICY}
    campaign = Campaign.create(storage, NAME, horizon=HORIZON, seed=1, lease=600, **budget, **asked)
    campaign.storage.close()
    warm_up()
    port = free_port()
    served = None if directly else forked(service(storage, port))
    with tempfile.TemporaryDirectory(prefix="revar-crowd-") as folder:
        notes = Path(folder) / "notes.jsonl"
        try:
            if served is not None:
                await_service(port)
            work = direct(storage, notes) if directly else through_service(port, notes)
            began = time.monotonic()
            children = [forked(work) for _ in range(workers)]
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            seconds = time.monotonic() - began
        finally:
            if served is not None:
                os.kill(served, signal.SIGTERM)
                os.waitpid(served, 0)
        assert codes == [0] * workers, codes
        found = check(storage, notes)
    assert (found["late"], found["partial"], found["unanswered"]) == (0, 0, 0), found
    return {**found, "seconds": round(seconds, 2), "decisions_per_second": found["steps"] / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("storage")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--episodes", type=int, default=800)
    parser.add_argument("--steps", type=int, help="the budget, in the place of episodes")
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--compare", action="store_true", help="of several target policies")
    asked = parser.parse_args()
    found = crowd(
        asked.storage,
        asked.workers,
        {"steps": asked.steps} if asked.steps else {"episodes": asked.episodes},
        directly=asked.direct,
        compares=asked.compare,
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()

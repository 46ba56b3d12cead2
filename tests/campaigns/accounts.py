"""What a storage holds in the end, against the workers' notes and a plain replay of its log."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from revar.campaigns import Campaign
from tests.campaigns.processes import NAME


def check(storage: str, notes: Path, *, complete: bool = True) -> dict[str, Any]:
    """Hold the storage against the workers' notes and a plain replay of its log.

    Not `complete` is a campaign that was closed before its budget was spent.
    """
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    acknowledged = [line for line in lines if line["kind"] == "acknowledged"]
    campaign = Campaign.open(storage, NAME)
    status = campaign.status()
    # Each step once, by the first event that stands in the log; nothing of revar's rules is used.
    actions: dict[tuple[str, int], tuple[str, int]] = {}
    rewards: dict[tuple[str, int], tuple[float, str | None]] = {}
    for _, event in campaign.events():
        kind = type(event).__name__
        if kind == "Acted":
            place = (event.episode, event.step)  # type: ignore[union-attr]
            chosen = (json.loads(bytes(event.state)), event.action)  # type: ignore[union-attr]
            actions.setdefault(place, chosen)
        elif kind == "Rewarded":
            place = (event.episode, event.step)  # type: ignore[union-attr]
            told = (event.reward, json.loads(bytes(event.next_state)))  # type: ignore[union-attr]
            rewards.setdefault(place, told)
    _check_acknowledged(acknowledged, actions, rewards)
    sent = {
        (line["path"], line["body"]["step"])
        for line in lines
        if line["kind"] == "sent" and line["path"].endswith("/reward")
    }
    strangers = {key for key in rewards if (f"/episodes/{key[0]}/reward", key[1]) not in sent}
    assert not strangers, f"rewards that nobody sent: {strangers}"
    _check_statistics(campaign, actions, rewards)
    assert status.steps == len(rewards), (status.steps, len(rewards))
    finished = {line["path"] for line in acknowledged if line["path"].endswith("/finish")}
    if not complete:
        assert status.closed, status
    elif status.unit == "episodes":
        assert status.episodes - status.late == status.budget, status
    else:  # never more than one episode over
        assert status.used == len(rewards), status
        assert 0 <= status.used - status.budget < campaign.definition.horizon, status
    assert status.episodes >= len(finished)
    assert status.spent, status
    assert not complete or (status.free, status.open) == (0, 0), status
    return {
        "acknowledged": len(acknowledged),
        "unanswered": 2 * sum(line["kind"] == "sent" for line in lines) - len(lines),
        "steps": status.steps,
        "finished": status.episodes,
        "late": status.late,
        "partial": status.partial,
        "value": status.estimate.value if status.estimate else None,
        "values": status.ranking.joint.values.tolist() if status.ranking else None,
    }


def _check_acknowledged(
    acknowledged: list[dict[str, Any]],
    actions: dict[tuple[str, int], tuple[str, int]],
    rewards: dict[tuple[str, int], tuple[float, str | None]],
) -> None:
    """Nothing acknowledged is lost or changed."""
    for line in acknowledged:
        parts = line["path"].split("/")
        if parts[-1] == "act":
            place = (parts[2], line["body"]["step"])
            assert actions[place] == (line["body"]["state"], line["answer"]["action"]), line
        elif parts[-1] == "reward":
            place = (parts[2], line["body"]["step"])
            assert rewards[place] == (line["body"]["reward"], line["body"]["next_state"]), line


def _check_statistics(
    campaign: Campaign,
    actions: dict[tuple[str, int], tuple[str, int]],
    rewards: dict[tuple[str, int], tuple[float, str | None]],
) -> None:
    """Visits, mean rewards and outcomes are those of the steps, each counted once."""
    seen: dict[tuple[str, int], list[float]] = defaultdict(list)
    following: Counter[tuple[str, int, str | None]] = Counter()
    for place, (reward, state) in rewards.items():
        seen[actions[place]].append(reward)
        following[(*actions[place], state)] += 1
    collection = campaign.read(lambda state, _: state.collection)
    statistics = collection.statistics
    keys: list[str] = [json.loads(bytes(key)) for key in collection.states.keys]  # type: ignore[call-overload]
    for number, key in enumerate(keys):
        for action in (0, 1):
            told = seen[(key, action)]
            assert statistics.visits[number, action] == len(told), (key, action)
            if told:
                mean = sum(told) / len(told)
                assert abs(statistics.reward_mean[number, action] - mean) < 1e-9
    arrays = statistics.arrays()
    counted = {
        (keys[pair // 2], pair % 2, None if successor < 0 else keys[successor]): int(count)
        for pair, successor, count in zip(
            arrays["pair"], arrays["successor"], arrays["count"][0], strict=True
        )
    }
    assert counted == dict(following)

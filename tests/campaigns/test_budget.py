"""Places in the budget: reserved at the start, freed by leases that run out, never exceeded."""

import pytest

from revar.campaigns import (
    BudgetReservedError,
    BudgetSpentError,
    Campaign,
    CampaignError,
    MemoryStorage,
)
from revar.campaigns.leases import LeaseClock
from tests.campaigns.worlds import Clock


def two_steps(clock: Clock, episodes: int = 2) -> Campaign:
    """A campaign of one state whose episodes have two steps and leases of ten seconds."""
    return Campaign.create(
        MemoryStorage(clock),
        "two-steps",
        policy={"s": [0.5, 0.5]},
        horizon=2,
        episodes=episodes,
        seed=3,
        lease=10,
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_places_are_reserved_at_the_start(clock: Clock) -> None:
    campaign = two_steps(clock)
    campaign.start_episode()
    clock.time += 4
    campaign.start_episode()
    with pytest.raises(
        BudgetReservedError, match="2 episodes left are with other workers"
    ) as caught:
        campaign.start_episode()
    assert caught.value.retry_after == pytest.approx(6)
    status = campaign.status()
    assert (status.open, status.free, status.episodes) == (2, 0, 0)


def test_two_processes_share_one_budget(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=3)
    other = Campaign.open(campaign.storage, campaign.name)
    ids = {campaign.start_episode().id, other.start_episode().id, campaign.start_episode().id}
    assert len(ids) == 3
    for worker in (campaign, other):
        with pytest.raises(BudgetReservedError):
            worker.start_episode()


def test_a_finished_budget_is_spent(clock: Clock) -> None:
    campaign = two_steps(clock)
    for episode in campaign.episodes():
        while not episode.over:
            episode.act("s")
            episode.reward(1.0, "s")
    with pytest.raises(BudgetSpentError, match="all 2 episodes are finished"):
        campaign.start_episode()
    assert campaign.status().spent


def test_a_lease_that_ran_out_frees_its_place(clock: Clock) -> None:
    campaign = two_steps(clock)
    silent, alive = campaign.start_episode(), campaign.start_episode()
    clock.time += 9
    alive.act("s")  # a sign of life renews the lease
    clock.time += 2
    replacement = campaign.start_episode()
    assert replacement.id != silent.id
    assert {lease.episode for lease in campaign.status().leases} == {alive.id, replacement.id}


def test_a_lease_is_not_taken_without_need(clock: Clock) -> None:
    campaign = two_steps(clock)
    slow = campaign.start_episode()
    clock.time += 1_000
    campaign.start_episode()  # there was room
    assert slow.act("s") in (0, 1)
    assert campaign.status().open == 2


def test_late_results_count(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=1)
    late = campaign.start_episode()
    late.act("s")
    clock.time += 11
    replacement = campaign.start_episode()
    late.reward(5.0, "s")  # taken, though its place has gone
    assert campaign.status().steps == 1
    with pytest.raises(CampaignError, match="its place in the budget is gone") as caught:
        late.act("s")
    assert caught.value.code == "lease-lost"
    for _ in range(2):
        replacement.act("s")
        replacement.reward(1.0, "s")
    status = campaign.status()
    assert (status.episodes, status.late, status.partial, status.steps) == (1, 0, 1, 3)
    late.finish()  # it is over now, with one step: a late episode, on top of the budget
    assert campaign.status().late == 1
    assert campaign.status().episodes == 2


def test_a_late_episode_takes_a_free_place_back(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=2)
    first, second = campaign.start_episode(), campaign.start_episode()
    clock.time += 11
    third = campaign.start_episode()  # both leases ran out, one place was needed
    first.act("s")  # takes the other
    assert campaign.status().open == 2
    with pytest.raises(CampaignError, match="place in the budget is gone"):
        second.act("s")
    third.abandon()
    second.act("s")


def test_a_late_episode_that_finishes_uses_its_place(clock: Clock) -> None:
    """The budget counts what is finished: nothing is started in place of a late result."""
    campaign = two_steps(clock, episodes=2)
    late, other = campaign.start_episode(), campaign.start_episode()
    late.act("s")
    clock.time += 11
    campaign.start_episode()  # both leases ran out, one place is free
    late.reward(1.0, None)
    status = campaign.status()
    assert (status.episodes, status.open, status.free, status.late) == (1, 1, 0, 0)
    with pytest.raises(CampaignError):
        other.act("s")


def test_an_expired_episode_that_is_finished_takes_a_free_place(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=2)
    early, _ = campaign.start_episode(), campaign.start_episode()
    early.act("s")
    early.reward(1.0, "s")
    clock.time += 11
    campaign.start_episode()  # both leases ran out; one place is free
    early.finish()
    status = campaign.status()
    assert (status.episodes, status.late, status.open, status.free) == (1, 0, 1, 0)


def test_an_abandoned_episode_frees_its_place_at_once(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=1)
    episode = campaign.start_episode()
    episode.act("s")
    episode.reward(1.0, "s")
    episode.abandon()
    episode.abandon()
    assert campaign.status().free == 1
    assert campaign.status().steps == 1


def test_an_episode_without_steps_does_not_use_its_place(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=1)
    episode = campaign.start_episode()
    episode.finish()
    assert episode.over
    assert (campaign.status().episodes, campaign.status().free) == (0, 1)


def test_an_episode_finished_early_uses_its_place(clock: Clock) -> None:
    campaign = two_steps(clock, episodes=1)
    episode = campaign.start_episode()
    episode.act("s")
    episode.reward(1.0, "s")
    episode.finish()
    assert campaign.status().spent


def test_the_last_reward_of_a_finished_episode_takes_no_place(clock: Clock) -> None:
    campaign = two_steps(clock)
    episode = campaign.start_episode()
    episode.act("s")
    episode.reward(1.0, "s")
    episode.act("s")
    episode.finish()  # it has used its place; the outcome of its last action comes late
    episode.reward(2.0, "s")
    status = campaign.status()
    assert (status.episodes, status.steps, status.open, status.free) == (1, 2, 0, 1)


def test_a_closed_campaign_starts_nothing_and_takes_results(clock: Clock) -> None:
    campaign = two_steps(clock)
    episode = campaign.start_episode()
    episode.act("s")
    campaign.close()
    campaign.close()
    with pytest.raises(BudgetSpentError, match="the campaign is closed"):
        campaign.start_episode()
    episode.reward(1.0, "s")
    episode.act("s")
    episode.reward(1.0, "s")
    assert episode.over
    assert campaign.status().episodes == 1
    assert list(campaign.episodes()) == []


def test_a_lease_renewed_meanwhile_is_not_taken(clock: Clock) -> None:
    """Two workers in a race: one takes a lease away that the other has just renewed."""
    campaign = two_steps(clock, episodes=1)
    alive = campaign.start_episode()
    clock.time += 11
    slow_worker = Campaign.open(campaign.storage, campaign.name)
    released = slow_worker.read(lambda state, _: LeaseClock(campaign.storage).overdue(state))
    assert [record.id for record in released] == [alive.id]
    alive.act("s")  # renewed, after the other had looked
    from revar.campaigns.events import Released

    (verdict,) = slow_worker.add([Released(alive.id)])
    assert verdict.code == "leased"
    assert campaign.status().open == 1

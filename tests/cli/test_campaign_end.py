"""`revar campaign`: the end of a campaign, what comes after it, and an end by precision."""

import json

import pytest

import revar
from revar.campaigns import CampaignError
from tests.cli.test_campaigns import run, said, storage

__all__ = ["storage"]  # a fixture
CREATE = ("create", "ads", "--horizon", "1", "--episodes", "2", "--actions", "2")


def test_from_extension_to_deletion(storage: str) -> None:
    said(storage, *CREATE)
    assert "0 of 5 episodes" in said(storage, "extend", "ads", "--episodes", "3")
    assert "closed" in said(storage, "close", "ads")
    assert "closed" not in said(storage, "reopen", "ads")
    result = run(storage, "delete", "ads", "--yes")
    assert isinstance(result.exception, CampaignError)
    assert "archive it first" in str(result.exception)
    assert "archived" in said(storage, "archive", "ads")
    assert json.loads(said(storage, "list", "--json")) == []
    (found,) = json.loads(said(storage, "list", "--json", "--all"))
    assert found["archived"]
    assert run(storage, "delete", "ads").exit_code == 1  # nobody said yes
    assert said(storage, "delete", "ads", "--yes") == "deleted ads\n"
    assert json.loads(said(storage, "list", "--json", "--all")) == []


def test_a_lease_is_released(storage: str) -> None:
    said(storage, *CREATE)
    episode = revar.Campaign.open(storage, "ads").start_episode()
    assert "1 open" in said(storage, "status", "ads")
    assert episode.id in said(storage, "release", "ads", episode.id)
    assert "0 open" in said(storage, "status", "ads")


def test_a_half_width(storage: str) -> None:
    said(storage, *CREATE, "--half-width", "0.5", "--confidence", "0.9")
    status = json.loads(said(storage, "status", "ads", "--json"))
    assert (status["precision"]["wanted"], status["precision"]["confidence"]) == (0.5, 0.9)


@pytest.mark.parametrize("option", ["--steps", "--budget"])
def test_a_unit_that_is_not_its_own(storage: str, option: str) -> None:
    said(storage, *CREATE)
    result = run(storage, "extend", "ads", option, "3")
    assert "the budget is in episodes" in str(result.exception)

"""`revar campaign` and `revar serve`."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import revar
from revar.campaigns import Campaign
from revar.campaigns.log import PAGE
from revar.cli import main
from revar.errors import InputError
from tests.campaigns.serving import COMMAND, Service, call, serving


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/campaigns.db"


def run(storage: str, *arguments: str) -> Result:
    environment = {"REVAR_STORAGE": storage, "COLUMNS": "120"}
    return CliRunner().invoke(main.revar, ["campaign", *arguments], env=environment)


def said(storage: str, *arguments: str) -> str:
    result = run(storage, *arguments)
    assert result.exception is None, result.exception
    return result.output


def test_from_create_to_close(storage: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('[{"state": {"page": 1}, "probabilities": [0.5, 0.5]}]')
    output = said(
        storage, "create", "ads", "--horizon", "1", "--episodes", "5", "--policy", str(policy)
    )
    assert output.startswith("created ads, id ")
    campaign = revar.Campaign.open(storage, "ads")
    for _ in range(3):
        episode = campaign.start_episode()
        episode.act({"page": 1})
        episode.reward(2.0, None)
    assert "3 of 5 episodes finished" in said(storage, "status", "ads")
    status = json.loads(said(storage, "status", "ads", "--json"))
    assert (status["episodes"], status["budget"]) == (3, 5)
    assert "ads" in said(storage, "list")
    assert [found["name"] for found in json.loads(said(storage, "list", "--json"))] == ["ads"]
    assert "closed" in said(storage, "close", "ads")
    assert json.loads(said(storage, "status", "ads", "--json"))["spent"]


def test_people_see_how_much_of_a_long_log_was_read(storage: str) -> None:
    campaign = revar.Campaign.create(storage, "ads", actions=2, horizon=1, episodes=5)
    campaign.storage.append(campaign.id, [b"damaged"] * (PAGE + 1))
    campaign.storage.close()
    terminal, its_end = os.openpty()
    os.set_blocking(terminal, False)
    for arguments in (["status", "ads"], ["list"]):
        done = subprocess.run(
            [*COMMAND, "campaign", *arguments, "--storage", storage],
            stdout=subprocess.PIPE,
            stderr=its_end,
            check=True,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "100"},
        )
        seen = os.read(terminal, 10_000).decode()
        assert "reading the log of ads" in seen and f"{PAGE}/{PAGE + 1} events" in seen
        assert "ads" in done.stdout.decode() and "reading" not in done.stdout.decode()
    for end in (terminal, its_end):
        os.close(end)
    assert run(storage, "status", "ads").stderr == ""


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ((b'"horizon":1', b'"horizon":"1"'), "Expected `int`"),
        ((b'"flow"', b'"gone"'), "unknown strategy 'gone'"),
        ((b'"horizon":1', b'"horizon":1000000000000000000'), "50,000,000 combinations"),
        ((b'"actions":2', b'"actions":1000000000000000000000'), "50,000,000 combinations"),
        ((b'"episodes":5', b'"episodes":null'), "has no budget"),
    ],
    ids=["format", "strategy", "horizon", "actions", "budget"],
)
def test_one_that_cannot_be_read_does_not_hide_the_others(
    damage: tuple[bytes, bytes], reason: str, storage: str
) -> None:
    for name in ("first", "last"):
        said(storage, "create", name, "--actions", "2", "--horizon", "1", "--episodes", "5")
    with revar.open_storage(storage) as store:
        definition = store.entries()[0].definition
        assert damage[0] in definition
        store.create("f" * 32, "damaged", definition.replace(*damage))
    table = said(storage, "list")
    assert "3 campaigns" in table
    assert "last" in table
    assert "the definition of campaign 'damaged' cannot be read" in table
    assert reason in table
    found = json.loads(said(storage, "list", "--json"))
    assert [each["name"] for each in found] == ["first", "last", "damaged"]
    assert found[2]["error"]["code"] == "unreadable"


def test_one_that_is_removed_meanwhile_does_not_hide_the_others(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "removed", "last"):
        said(storage, "create", name, "--actions", "2", "--horizon", "1", "--episodes", "5")
    open_it = Campaign._open

    def remove(campaign: Campaign, *arguments: Any) -> None:
        if campaign.name == "removed":
            campaign.storage.delete("removed")
        open_it(campaign, *arguments)

    monkeypatch.setattr(Campaign, "_open", remove)
    found = json.loads(said(storage, "list", "--json"))
    assert [each["name"] for each in found] == ["first", "last"]


def test_a_policy_file_of_names(storage: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"home": [1, 0], "cart": [0.5, 0.5]}')
    said(storage, "create", "ads", "--horizon", "1", "--episodes", "5", "--policy", str(policy))
    assert revar.Campaign.open(storage, "ads").definition.policy is not None


@pytest.mark.parametrize("text", ["{", "3", '[{"state": 1}]', "[1]", "[]"])
def test_policy_files_that_are_none(storage: str, tmp_path: Path, text: str) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(text)
    result = run(
        storage, "create", "ads", "--horizon", "1", "--episodes", "5", "--policy", str(policy)
    )
    assert isinstance(result.exception, InputError)


def test_several_policies(storage: str, tmp_path: Path) -> None:
    tables = {"old": '{"home": [1, 0]}', "new": '[{"state": "home", "probabilities": [0, 1]}]'}
    given = []
    for name, text in tables.items():
        (tmp_path / f"{name}.json").write_text(text)
        given += ["--policies", f"{name}={tmp_path}/{name}.json"]
    size = ["--horizon", "1", "--episodes", "20"]
    said(storage, "create", "ads", *size, *given, "--question", "values")
    definition = revar.Campaign.open(storage, "ads").definition
    assert (definition.names, definition.question) == (("old", "new"), "values")
    assert definition.has_table
    campaign = revar.Campaign.open(storage, "ads")
    for number in range(20):
        episode = campaign.start_episode()
        episode.reward(episode.act("home") + 0.1 * (number % 3), None)
    lines = said(storage, "status", "ads").splitlines()
    assert lines[2].startswith("policy ")
    assert [line.split()[0] for line in lines[3:5]] == ["new", "old"]
    assert lines[5] == "new is the best (95% confidence)"
    assert json.loads(said(storage, "status", "ads", "--json"))["ranking"]["leader"] == "new"
    assert "new 1." in said(storage, "list")
    # Names alone: every act brings the probabilities.
    names = ["--policies", "[old]", "--policies", "new"]
    said(storage, "create", "sent", *size, "--actions", "2", *names)
    episode = revar.Campaign.open(storage, "sent").start_episode()
    episode.act("home", {"[old]": [0.9, 0.1], "new": [0.1, 0.9]})
    episode.reward(0.5, None)
    listed = said(storage, "list")
    assert "[old] 0." in listed or "new 0." in listed
    target = f"sqlite:///{tmp_path}/target.db"
    assert "merged 20 new episodes" in said(target, "merge", "ads", storage)
    assert said(target, "status", "ads").splitlines()[2:] == lines[2:]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["old"], "a comparison needs at least two"),
        (["old", "old"], "two policies have the name 'old'"),
        (["=x.json", "new"], "x.json cannot be read: No such file"),
        (["old", ""], "the name of a policy is ''"),
    ],
)
def test_several_policies_that_are_refused(storage: str, given: list[str], message: str) -> None:
    several = [part for each in given for part in ("--policies", each)]
    size = ["--horizon", "1", "--episodes", "20", "--actions", "2"]
    result = run(storage, "create", "ads", *size, *several)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_export(storage: str, tmp_path: Path) -> None:
    campaign = revar.Campaign.create(storage, "ads", actions=2, horizon=2, episodes=5, seed=1)
    for state in ("a", ("b", 1)):
        episode = campaign.start_episode()
        episode.act(state, [0.5, 0.5])
        episode.reward(1.5, None)
    lines = said(storage, "export", "ads").splitlines()
    assert [json.loads(line)["steps"][0]["state"] for line in lines] == ["a", ["b", 1]]
    for ending in ("jsonl", "csv", "npz", "parquet"):
        said(storage, "export", "ads", "--output", str(tmp_path / f"ads.{ending}"))
    assert (tmp_path / "ads.jsonl").read_text().splitlines() == lines
    assert len((tmp_path / "ads.csv").read_text().splitlines()) == 3
    for ending in ("npz", "parquet"):
        data = revar.load_dataset(tmp_path / f"ads.{ending}")
        assert data.labels == ("a", ("b", 1))
        assert data.rewards.tolist() == [1.5, 1.5]
    assert isinstance(run(storage, "export", "ads", "--output", "ads.pkl").exception, InputError)


def test_export_does_not_open_the_campaign(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = revar.Campaign.create(
        storage, "ads", actions=2, horizon=1, episodes=5, strategy="on-policy", seed=1
    )
    episode = campaign.start_episode()
    episode.act("a", [0.5, 0.5])
    episode.reward(1.5, None)

    def refuse(*_: object) -> None:
        raise AssertionError("it is opened")

    monkeypatch.setattr(revar.Campaign, "_open", refuse)
    assert json.loads(said(storage, "export", "ads"))["steps"][0]["state"] == "a"
    said(storage, "export", "ads", "--output", str(tmp_path / "ads.npz"))
    assert revar.load_dataset(tmp_path / "ads.npz").rewards.tolist() == [1.5]
    assert str(run(storage, "export", "none").exception) == "there is no campaign 'none'"


def test_merge(storage: str, tmp_path: Path) -> None:
    campaign = revar.Campaign.create(storage, "ads", actions=2, horizon=2, episodes=5, seed=1)
    episode = campaign.start_episode()
    episode.act("s", [0.5, 0.5])
    episode.reward(1.5, None)
    target = f"sqlite:///{tmp_path}/target.db"
    assert "merged 1 new episodes" in said(target, "merge", "ads", storage)
    assert "merged 0 new episodes, 0 events" in said(target, "merge", "ads", storage)
    assert revar.Campaign.open(target, "ads").estimate() == campaign.estimate()


def test_errors_are_one_sentence(storage: str, capsys: pytest.CaptureFixture[str]) -> None:
    revar.open_storage(storage).close()
    sys.argv = ["revar", "campaign", "status", "none", "--storage", storage]
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err == "Error: there is no campaign 'none'\n"


@pytest.mark.parametrize(
    "arguments", [("status", "ads"), ("list",), ("export", "ads"), ("close", "ads")]
)
def test_looking_at_a_file_that_is_missing_does_not_make_it(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    missing = tmp_path / "mistyped.db"
    result = run(f"sqlite:///{missing}", *arguments)
    assert str(result.exception) == f"there is no file {missing}"
    assert not missing.exists()


def test_a_copy_does_not_stand_beside_its_original(storage: str) -> None:
    said(storage, "create", "ads", "--horizon", "1", "--episodes", "5", "--actions", "2")
    result = run(storage, "merge", "copy", storage, "--source-name", "ads")
    assert "a campaign that this storage has already" in str(result.exception)
    assert "copy" not in said(storage, "list")


@pytest.mark.parametrize("address", ["", "mysql://x", "sqlite://", "sqlite:///", "sqlite:x.db"])
def test_storages_that_are_none(address: str) -> None:
    with pytest.raises(InputError, match="it must be one of"):
        revar.open_storage(address)


# -- serve ----------------------------------------------------------------------------------


def test_serve_and_its_graceful_end(storage: str) -> None:
    with serving(storage) as service:
        assert call(service.address, "/health") == (200, {"status": "ok"})
        question = {"name": "ads", "actions": 2, "horizon": 2, "episodes": 2}
        assert call(service.address, "/api/campaigns", question)[0] == 201
        assert service.stop() == 0  # SIGTERM
    assert revar.Campaign.open(storage, "ads").status().budget == 2


def test_ctrl_c_ends_the_service(storage: str) -> None:
    with serving(storage) as service:
        assert call(service.address, "/health")[0] == 200
        began = time.monotonic()
        assert service.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 10


def test_a_request_under_way_is_finished(storage: str) -> None:
    """Told to stop in the middle of a request, the service takes the rest of it and answers."""
    body = json.dumps({"name": "ads", "actions": 2, "horizon": 2, "episodes": 2}).encode()
    head = (
        f"POST /api/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    with serving(storage) as service, socket.create_connection(("127.0.0.1", service.port)) as line:
        line.sendall(head + body[:10])
        time.sleep(0.5)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        line.sendall(body[10:])
        line.settimeout(20)
        assert line.recv(100).startswith(b"HTTP/1.1 201")
        assert service._reap() == 0
    assert revar.Campaign.open(storage, "ads").status().budget == 2


def test_a_caller_that_breaks_off_is_no_failure(storage: str) -> None:
    with serving(storage) as service:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", service.port)) as line:
                line.sendall(
                    b"POST /api/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
                )
        assert call(service.address, "/health")[0] == 200
        time.sleep(0.3)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.stderr is not None
        assert service.process.stderr.read() == ""
        assert service._reap() == 0


def test_outside_loopback_a_token_is_needed(storage: str) -> None:
    with pytest.raises(RuntimeError, match="outside loopback a token is needed"):
        Service(storage, "--host", "0.0.0.0")
    with pytest.raises(RuntimeError, match="at least 16 printable"):
        Service(storage, token="short")


def test_a_token_file(storage: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("first-token-of-the-file\n\nsecond-token-of-the-file\n")
    with serving(storage, "--token-file", str(tokens)) as service:
        assert call(service.address, "/api/campaigns")[0] == 401
        for token in tokens.read_text().split():
            headers = [("Authorization", f"Bearer {token}")]
            assert call(service.address, "/api/campaigns", headers=headers)[0] == 200
    tokens.write_text("\n")
    with pytest.raises(RuntimeError, match="holds no token"):
        Service(storage, "--token-file", str(tokens))


@pytest.mark.parametrize("port", ["-1", "65536", "99999"])
def test_a_port_that_is_none(storage: str, port: str) -> None:
    result = CliRunner().invoke(main.revar, ["serve", "--storage", storage, "--port", port])
    assert result.exit_code == 2
    assert "0<=x<=65535" in result.output


def test_a_port_that_is_taken(storage: str) -> None:
    with (
        serving(storage) as service,
        pytest.raises(RuntimeError, match="cannot listen at"),
    ):
        Service(storage, port=service.port)


def test_budgets_of_steps_and_cost_with_limits(storage: str) -> None:
    size = ["--horizon", "2", "--actions", "2"]
    limits = ["--min-return", "50%", "--max-ratio", "3", "--max-sum", "unsafe=0.5"]
    said(storage, "create", "paid", *size, "--budget", "7.5", *limits, "--limit-confidence", "0.8")
    forbidden = ["--forbid", "cart:1", "--forbid", '{"page": 1}:1']
    said(storage, "create", "walk", *size, "--steps", "5", *forbidden)
    paid = revar.Campaign.open(storage, "paid")
    for reward in (1.0, 2.0):
        episode = paid.start_episode()
        episode.act("s", [0.5, 0.5])
        episode.reward(reward, None, cost=1.25, amounts={"unsafe": 0})
    text = said(storage, "status", "paid")
    assert "paid: 2.5 of a cost of 7.5 spent, 2 episodes finished, 0 open" in text
    assert "unsafe of collecting episodes: 0 ± 0, to be at most 0.5" in text
    status = json.loads(said(storage, "status", "paid", "--json"))
    assert (status["unit"], status["used"], status["left"]) == ("cost", 2.5, 5.0)
    assert status["limits"] == {
        **{"max_ratio": 3.0, "min_return": "50%", "max_sums": {"unsafe": 0.5}},
        "confidence": 0.8,
    }
    assert [limit["name"] for limit in status["realised"]] == ["return", "unsafe"]
    walk = json.loads(said(storage, "status", "walk", "--json"))
    assert walk["limits"] == {
        "confidence": 0.9,
        "forbidden": [["cart", 1], [{"page": 1}, 1]],
    }
    listed = said(storage, "list")
    assert "2.5 of a cost of 7.5" in listed
    assert "0 of 5 steps" in listed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "one budget: episodes, steps or budget; got none"),
        (["--steps", "5", "--episodes", "5"], "got episodes and steps"),
        (["--steps", "0"], "steps is 0"),
        (["--budget", "-1"], "budget is -1.0; it must be positive"),
        (["--steps", "5", "--forbid", "2"], "forbidden names action 2; there are 2 actions"),
        (["--steps", "5", "--max-sum", "unsafe"], "is not KEY=MOST"),
        (["--steps", "5", "--max-sum", "cost=1"], "max_sums names 'cost'"),
        (["--steps", "5", "--strategy", "uniform", "--max-ratio", "2"], "knows no limits"),
    ],
)
def test_budgets_and_limits_that_are_refused(
    storage: str, options: list[str], message: str
) -> None:
    result = run(storage, "create", "c", "--horizon", "2", "--actions", "2", *options)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)

"""Tokens: comments, reading alone, rotation, sessions that end, and guesses that are throttled."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import MemoryStorage
from revar.campaigns.service.app import make_app
from revar.campaigns.service.tokens import MOST_WRONG, WRONG_SECONDS, Access, Right
from revar.errors import InputError

LOOPBACK = "http://127.0.0.1"
WRITER, READER, NEW = "a-token-that-may-write", "a-token-that-may-read", "a-token-made-later"
COMMENT = "# tokens-of-the-ad-server"
QUESTION = {"name": "ads", "actions": 2, "horizon": 3, "episodes": 4, "seed": 1}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.txt"
    path.write_text(f"{COMMENT}\n{WRITER}\n\n{READER} read-only\n")
    return path


def served(file: Path) -> TestClient:
    return TestClient(make_app(MemoryStorage(), token_file=file), base_url=LOOPBACK)


def test_comments_are_no_tokens(file: Path) -> None:
    with served(file) as client:
        for wrong in (COMMENT, COMMENT.removeprefix("# "), "#", f"{READER} read-only"):
            assert client.get("/api/campaigns", headers=bearer(wrong)).status_code == 401
        assert client.get("/api/campaigns", headers=bearer(WRITER)).status_code == 200


def test_a_reader_changes_nothing(file: Path) -> None:
    with served(file) as client:
        assert client.post("/api/campaigns", json=QUESTION, headers=bearer(WRITER)).is_success
        for path in ("/api/campaigns/ads", "/metrics", "/campaigns/ads"):
            assert client.get(path, headers=bearer(READER)).status_code == 200
        assert "Archive" not in client.get("/campaigns/ads", headers=bearer(READER)).text
        assert "Archive" in client.get("/campaigns/ads", headers=bearer(WRITER)).text
        path = "/api/campaigns/ads"
        replies = [
            client.post(f"{path}/episodes", json={}, headers=bearer(READER)),
            client.post(f"{path}/close", json={}, headers=bearer(READER)),
            client.delete(path, headers=bearer(READER)),
        ]
        assert {(r.status_code, r.json()["error"]["code"]) for r in replies} == {(403, "read-only")}
        client.post("/login", data={"token": READER})
        assert client.post(f"{path}/close", json={}).status_code == 403
        client.post("/logout")
        assert client.get(path).status_code == 401


def test_tokens_are_rotated_without_a_restart(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("revar.campaigns.service.tokens.FILE_SECONDS", 0.0)
    with served(file) as client:
        client.post("/login", data={"token": WRITER})
        assert client.get("/api/campaigns").status_code == 200
        other = file.with_name("next.txt")
        other.write_text(f"{NEW}\n")
        other.replace(file)
        assert client.get("/api/campaigns").status_code == 401  # the session's token has gone
        assert client.get("/api/campaigns", headers=bearer(WRITER)).status_code == 401
        assert client.get("/api/campaigns", headers=bearer(NEW)).status_code == 200
        file.unlink()
        assert client.get("/api/campaigns", headers=bearer(NEW)).status_code == 200
        assert "tokens stay as they were" in caplog.text


@pytest.mark.parametrize("bad", ["short", f"{WRITER} readonly", "\xe9" * 20, f"{WRITER}\x00"])
def test_a_bad_line_keeps_no_token_alive(
    file: Path, bad: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are read: one that was removed at the same time is worth nothing."""
    monkeypatch.setattr("revar.campaigns.service.tokens.FILE_SECONDS", 0.0)
    with served(file) as client:
        file.write_bytes(f"{NEW}\n".encode() + bad.encode("latin-1") + f"\n{READER}".encode())
        statuses = [
            client.get("/api/campaigns", headers=bearer(token)).status_code
            for token in (WRITER, NEW, READER)
        ]
        assert statuses == [401, 200, 200]
        assert f"{file}, line 2: a token" in caplog.text
        assert bad not in caplog.text
        file.write_text("# all of them are gone\n")
        for token in (WRITER, NEW, READER):
            assert client.get("/api/campaigns", headers=bearer(token)).status_code == 401


def test_logging_out_revokes_the_session(file: Path) -> None:
    with served(file) as client:
        client.post("/login", data={"token": WRITER})
        cookie = {"Cookie": f"revar_session={client.cookies['revar_session']}"}
        assert client.get("/api/campaigns", headers=cookie).status_code == 200
        client.post("/logout")
        assert client.get("/api/campaigns", headers=cookie).status_code == 401


def test_guesses_are_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a right one from that address, unless it was used there before."""
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with TestClient(make_app(MemoryStorage(), [WRITER, NEW]), base_url=LOOPBACK) as client:

        def ask(token: str) -> Any:
            return client.get("/api/campaigns", headers=bearer(token))

        assert ask(NEW).status_code == 200
        for number in range(MOST_WRONG):
            assert ask(f"guess-number-{number}-of-many").status_code == 401
        reply = ask("one-more-guess-of-a-token")
        assert (reply.status_code, reply.json()["error"]["code"]) == (429, "throttled")
        assert 0 < int(reply.headers["retry-after"]) <= WRONG_SECONDS
        assert ask(WRITER).status_code == 429
        assert client.post("/login", data={"token": WRITER}).status_code == 429
        assert ask(NEW).status_code == 200
        assert client.get("/api/campaigns").status_code == 401  # no guess
        assert client.get("/health").status_code == 200
        assert (
            "revar_tokens_throttled_total 3.0" in client.get("/metrics", headers=bearer(NEW)).text
        )
        now += WRONG_SECONDS + 1
        assert ask(WRITER).status_code == 200


def test_a_form_with_many_fields_is_refused(file: Path) -> None:
    with served(file) as client:
        form = "&".join(f"token={number}" for number in range(100))
        reply = client.post("/login", content=form)
        assert reply.status_code == 401
        assert "not valid" in reply.text


def test_a_form_that_breaks_off_is_no_failure(file: Path) -> None:
    async def send_part() -> list[Any]:
        parts = [{"type": "http.request", "body": b"tok", "more_body": True}]
        sent: list[Any] = []

        async def receive() -> Any:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/login", "headers": []}
        await make_app(MemoryStorage(), token_file=file)(scope, receive, send)
        return sent

    assert asyncio.run(send_part())[0]["status"] == 401


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("# only a comment\n", "no token"),
        ("short\n", "at least 16"),
        ("a-token-that-is-long readonly\n", "read-only"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        Access(file=path)


def test_tokens_given_otherwise_may_read_alone_too() -> None:
    access = Access([f"{READER} read-only"])
    assert access.right_of(f"Bearer {READER}", None, "a") is Right.READ
    with pytest.raises(InputError, match="not begin with #"):
        Access([COMMENT])

"""Alerts leave a stream at least once: to a real web server that fails at first, and to a real command."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shell import Shell
from tidelog.cli import alert_delivery

RULES = "Hot(X) :- Diamondminus[0,2] High(X)."
FACTS = "High(a)@0\nHigh(b)@5\nHigh(c)@20"


class Hook(ThreadingHTTPServer):
    """A web hook that answers with the given statuses first, and then with 204."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = list(statuses)
        self.attempts: list[dict[str, object]] = []
        self.accepted: list[dict[str, object]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/alerts"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.attempts.append(message)
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        if status < 300:
            self.server.accepted.append(message)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hooks() -> Iterator[list[Hook]]:
    started: list[Hook] = []
    yield started
    for hook in started:
        hook.shutdown()
        hook.server_close()


def start(hooks: list[Hook], *statuses: int) -> Hook:
    hook = Hook(*statuses)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    hooks.append(hook)
    return hook


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_delivery, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(alert_delivery, "LAST_CHANCE", 3.0)


def stream(sh: Shell, *more: str) -> tuple[str, ...]:
    files = sh.write("r.dmtl", RULES), sh.write("d.facts", FACTS)
    return "stream", files[0], "--query", "Hot", "--input", files[1], *more


def test_a_web_hook_that_fails_at_first_gets_every_alert_in_order(sh: Shell, hooks: list[Hook]) -> None:
    hook = start(hooks, 500, 503, 302, 404)
    done = sh(*stream(sh, "--notify", hook.address))
    assert done.code == 0, done.err
    assert done.out.splitlines() == ["Hot(a)@[0,2]", "Hot(b)@[5,7]", "Hot(c)@20"]
    assert [message["fact"] for message in hook.accepted] == ["Hot(a)", "Hot(b)", "Hot(c)"]
    assert hook.accepted[0] == {
        "id": hook.attempts[0]["id"],
        "fact": "Hot(a)",
        "start": "0",
        "end": "2",
        "closed": "both",
        "predicate": "Hot",
        "args": ["a"],
    }
    assert len(hook.attempts) == 7
    assert "status 500; trying again" in done.err


def test_starts_only_are_sent_as_alerts(sh: Shell, hooks: list[Hook]) -> None:
    hook = start(hooks)
    assert sh(*stream(sh, "--changes", "start", "--notify", hook.address)).code == 0
    assert [(message["event"], message["fact"]) for message in hook.accepted] == [
        ("start", "Hot(a)"),
        ("start", "Hot(b)"),
        ("start", "Hot(c)"),
    ]


def test_a_command_is_run_again_until_it_succeeds(sh: Shell, tmp_path: Path) -> None:
    script = tmp_path / "alert.sh"
    script.write_text('cat >> attempts\necho told\ntest "$(wc -l < attempts)" -gt 2\n')
    done = sh(*stream(sh, "--exec", f"sh {script}"))
    assert done.code == 0, done.err
    assert done.out.splitlines() == ["Hot(a)@[0,2]", "Hot(b)@[5,7]", "Hot(c)@20"]
    attempts = [json.loads(line)["fact"] for line in (sh.folder / "attempts").read_text().splitlines()]
    assert attempts == ["Hot(a)", "Hot(a)", "Hot(a)", "Hot(b)", "Hot(c)"]


def test_alerts_that_are_not_delivered_are_counted_and_reported(
    sh: Shell, hooks: list[Hook], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alert_delivery, "LAST_CHANCE", 0.3)
    hook = start(hooks, 204, *[500] * 1000)
    done = sh(*stream(sh, "--notify", hook.address))
    assert done.code == 2
    assert f"error[TL406]: 2 alerts not delivered to {hook.address}: status 500" in done.err
    assert done.out.splitlines() == ["Hot(a)@[0,2]", "Hot(b)@[5,7]", "Hot(c)@20"]


def test_a_state_keeps_alerts_for_the_next_run(
    sh: Shell, hooks: list[Hook], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(alert_delivery, "LAST_CHANCE", 0.3)
    hook = start(hooks, *[500] * 1000)
    state = str(tmp_path / "s.state")
    done = sh(*stream(sh, "--notify", hook.address, "--state", state))
    assert done.code == 0
    assert f"3 alerts not delivered to {hook.address}: status 500; kept in {state} for the next run" in done.err
    hook.statuses.clear()
    monkeypatch.setattr(alert_delivery, "LAST_CHANCE", 3.0)
    later = sh.write("later.facts", "High(d)@30")
    done = sh("stream", "r.dmtl", "--query", "Hot", "--input", later, "--notify", hook.address, "--state", state)
    assert done.code == 0
    assert [message["fact"] for message in hook.accepted] == ["Hot(a)", "Hot(b)", "Hot(c)", "Hot(c)", "Hot(d)"]


@pytest.mark.parametrize("address", ["example.org/alerts", "ftp://example.org", "http://"])
def test_an_address_that_is_not_one_is_refused(sh: Shell, address: str) -> None:
    done = sh(*stream(sh, "--notify", address))
    assert done.code == 2
    assert "is not an address like https://example.org/alerts" in done.err

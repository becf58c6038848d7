"""The page of a running stream: its figures, who may read them, and that it leaves the stream alone."""

from __future__ import annotations

import http.client
import json
import socket
import struct
from collections.abc import Iterator
from fractions import Fraction
from threading import Semaphore, active_count
from typing import Any
from urllib.parse import urlsplit

import pytest

import tidelog as tl
from processes import wait_for
from shell import Shell, start_command
from tidelog.errors import TidelogError
from tidelog.page.live_board import LiveBoard
from tidelog.page.live_observer import BoardObserver
from tidelog.page.live_server import serve_board
from tidelog.stream_server import StreamServer
from tidelog.streaming.answers import RuleCost
from tidelog.timeline.interval import INF

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "Hot(X) :- Diamondminus[0,2] High(X).\n"


@pytest.fixture
def board() -> LiveBoard:
    return LiveBoard()


@pytest.fixture
def address(board: LiveBoard) -> Iterator[str]:
    with serve_board(board, "a <stream>", port=0) as address:
        yield address


def get(address: str, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    parts = urlsplit(address)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


# The figures


def test_rows_that_are_set_aside_are_counted_once(board: LiveBoard) -> None:
    bad_rows = [2]
    watching = BoardObserver(board, None, lambda: bad_rows[0])
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "Hot")
    for expected in (2, 2, 5):
        bad_rows[0] = expected
        watching.pause(reasoner)
        assert board.status()["aside"] == expected


def test_a_board_counts_what_it_is_told(board: LiveBoard) -> None:
    board.count(facts=3, answers=2, late=1, seconds=0.5)
    board.count(facts=4, aside=2)
    board.set_state({"High": 2, "Hot": 0}, Fraction(7, 2), dates=False)
    board.add_answers(["Hot(a)@1", "Hot(a)@2"])
    board.add_rule_costs([{"rule": "A :- B.", "seconds": 0.25}, {"rule": "C :- B.", "seconds": 1.0}])
    board.add_rule_costs([{"rule": "A :- B.", "seconds": 1.0}])
    found = board.status()
    assert (found["facts"], found["answers"], found["late"], found["aside"]) == (7, 2, 1, 2)
    assert (found["watermark"], found["lag_seconds"], found["held"]) == ("7/2", None, {"High": 2})
    assert found["latest"] == ["Hot(a)@2", "Hot(a)@1"]
    assert found["slowest_rules"] == [{"rule": "A :- B.", "seconds": 1.25}, {"rule": "C :- B.", "seconds": 1.0}]
    assert found["state"] == "running"
    board.end()
    assert board.status()["state"] == "ended"
    assert sum(board.status()["samples"]["step"]) == 0.5


def test_a_watermark_that_is_a_date_has_a_lag(board: LiveBoard) -> None:
    board.set_state({}, Fraction(0), dates=True)
    found = board.status()
    assert found["watermark"] == "1970-01-01T00:00:00Z"
    assert found["lag_seconds"] > 50 * 365 * 86400


def test_a_board_keeps_the_latest_answers_only(board: LiveBoard) -> None:
    board.add_answers(str(number) for number in range(1000))
    assert board.status()["latest"] == [str(number) for number in range(999, 949, -1)]


def test_a_watched_reasoner_gives_the_same_answers(board: LiveBoard) -> None:
    data = tl.Dataset.parse("".join(f"High(a)@{3 * n}\n" for n in range(500)), ordered=True)
    watching = BoardObserver(board, None)
    found: list[list[tl.Fact]] = []
    for observers in ([], [watching]):
        reasoner = tl.Reasoner(tl.Program.parse(RULES), "Hot")
        given = []
        for step in reasoner.feed(data):
            given += list(step.answers)
            for observer in observers:
                observer.step(step)
        for observer in observers:
            observer.pause(reasoner)
        found.append(given)
    assert found[0] == found[1]
    status = board.status()
    assert (status["facts"], status["answers"]) == (500, len(found[0]))
    assert status["latest"][0] == f"Hot(a)@[{3 * 498},{3 * 498 + 2}]"
    assert status["held"] == {name: count for name, count in reasoner.count_held_atoms().items() if count}
    assert status["watermark"] is not None


def test_a_watched_reasoner_names_its_slowest_rules(board: LiveBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "Pair(X,Y) :- A(X),\n  A(Y).\nBig(X) :- Pair(X,X), X > 8.\n"
    reasoner = tl.Reasoner(tl.Program.parse(rules), "Big")
    asked: list[int | None] = []
    slowest = reasoner.slowest_rules

    def counted(count: int | None = None) -> list[RuleCost]:
        asked.append(count)
        return slowest(count)

    monkeypatch.setattr(reasoner, "slowest_rules", counted)
    clock = [100.0]
    monkeypatch.setattr("tidelog.page.live_observer.monotonic", lambda: clock[0])
    watching = BoardObserver(board, None)

    def feed(t: int) -> None:
        data = tl.Dataset.parse("".join(f"A({n})@{t}\n" for n in range(10)), ordered=True)
        for step in reasoner.feed(data):
            watching.step(step)
        watching.pause(reasoner)

    for t in range(5):  # all within a second
        feed(t)
    assert len(asked) == 1
    clock[0] += 1
    feed(5)
    assert len(asked) == 2
    feed(6)
    watching.report_now(reasoner)  # the last report has everything
    assert len(asked) == 3
    found = board.status()["slowest_rules"]
    assert [cost["rule"] for cost in found] == ["Pair(X,Y) :- A(X), A(Y).", "Big(X) :- Pair(X,X), X > 8."]
    # Figures since the beginning replace those of the look before, rather than add to them.
    assert [cost["seconds"] for cost in found] == [round(cost.seconds, 6) for cost in slowest()]


def test_a_slow_look_at_the_state_does_not_stop_the_page(board: LiveBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, used = [100.0], [0.0]

    def use_time() -> float:
        used[0] += 60  # every look takes a minute
        return used[0]

    monkeypatch.setattr("tidelog.page.live_observer.monotonic", lambda: clock[0])
    monkeypatch.setattr("tidelog.page.live_observer.thread_time", use_time)
    reasoner, watching = tl.Reasoner(tl.Program.parse(RULES), "Hot"), BoardObserver(board, None)

    def known_after(t: int) -> str:
        reasoner.push(t, ["High(a)"])
        watching.pause(reasoner)
        return str(board.status()["watermark"])

    assert known_after(1) == "1"
    clock[0] += 4
    assert known_after(2) == "1"  # it rests
    clock[0] += 1
    assert known_after(3) == "3"


# What holds now


HEARTBEATS = "Down(X) :- Node(X), not Diamondminus[0,5min] Beat(X).\n"
NODES = "Node(a)\nNode(b)\n"


def watch(board: LiveBoard, reasoner: tl.Reasoner, pushed: list[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    """Push facts, and return what the board says after each time."""
    observer, found = BoardObserver(board, None), []
    for t, facts in pushed:
        reasoner.push(t, facts)
        observer.step(reasoner.last_step)
        observer.report_now(reasoner)
        found.append(board.status()["open"])
    return found


def test_the_board_says_what_holds_now_and_why(board: LiveBoard) -> None:
    reasoner = tl.Reasoner(tl.Program.parse(HEARTBEATS), "Down", background=tl.Dataset.parse(NODES))
    day = "2026-01-31T10:"
    found = watch(
        board,
        reasoner,
        [(f"{day}00:00Z", ["Beat(a)", "Beat(b)"]), (f"{day}02:00Z", ["Beat(b)"]), (f"{day}09:00Z", ["Beat(c)"])],
    )
    assert [alert["since"] for alert in found[0]["alerts"]] == [None, None]  # before their first beat
    assert found[1]["alerts"] == []
    assert (found[2]["total"], found[2]["known"]) == (2, f"{day}09:00Z")
    newest, oldest = found[2]["alerts"]
    assert [newest[key] for key in ("atom", "since", "closed", "lasted")] == ["Down(b)", f"{day}07:00Z", False, 120.0]
    assert [oldest[key] for key in ("atom", "since", "closed", "lasted")] == ["Down(a)", f"{day}05:00Z", False, 240.0]
    assert newest["reason"] == {
        "rule": HEARTBEATS.strip(),
        "because": [f"Node(b)@({day}07:00Z,{day}09:00Z)", f"no Beat(b) in ({day}02:00Z,{day}09:00Z)"],
    }


def test_an_alert_that_is_corrected_away_is_withdrawn_and_one_that_ends_is_not(board: LiveBoard) -> None:
    reasoner = tl.Reasoner(tl.Program.parse(HEARTBEATS), "Down", background=tl.Dataset.parse(NODES), corrections="1h")
    late = ["Beat(a)@300", "Beat(a)@500", "Beat(a)@800"]
    found = watch(board, reasoner, [("0", ["Beat(a)", "Beat(b)"]), ("1000", ["Beat(b)"]), ("1001", late)])
    assert [alert["atom"] for alert in found[1]["alerts"]] == ["Down(a)", "Down(b)"]
    assert found[2]["alerts"] == []
    assert found[2]["withdrawn"] == [{"atom": "Down(a)", "since": "300", "closed": False, "known": "1001"}]
    assert "+Down(b)@(300,1000)" in board.status()["latest"]


def test_reasons_that_are_not_held_are_not_made_up(board: LiveBoard) -> None:
    program = tl.Program.parse("Many(X) :- count[0,1h]{ High(X) } >= 2.\n")
    found = watch(board, tl.Reasoner(program, "Many"), [("0", ["High(a)"]), ("1", ["High(a)"]), ("2", ["High(b)"])])
    assert [(alert["atom"], alert["reason"]) for alert in found[2]["alerts"]] == [("Many(a)", None)]


def test_answers_at_points_do_not_hold_now(board: LiveBoard) -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "Hot", at="every:1")
    assert watch(board, reasoner, [("0", ["High(a)"]), ("1", [])]) == [None, None]


def test_of_many_alerts_the_newest_are_shown(board: LiveBoard) -> None:
    reasoner = tl.Reasoner(tl.Program.parse("Hot(X) :- High(X).\n"), "Hot")
    pushed = [(str(t), [f"High(m{t})@[{t},1000]"]) for t in range(60)]
    last = watch(board, reasoner, [*pushed, ("60", [])])[-1]
    assert last["total"] == 60
    assert [alert["atom"] for alert in last["alerts"]] == [f"Hot(m{t})" for t in range(59, 9, -1)]


@pytest.mark.parametrize(("largest", "shown"), [(INF, True), (86_400.0, False), (-1.0, False)])
def test_a_replay_has_no_lag(largest: float, shown: bool) -> None:
    board = LiveBoard(largest)
    board.set_state({}, Fraction(0), dates=True)
    assert (board.status()["lag_seconds"] is not None) == shown


# The server


def test_the_page_and_the_figures_are_served(board: LiveBoard, address: str) -> None:
    assert address.startswith("http://127.0.0.1:")
    board.add_answers(['P("</script>é")@1'])
    code, body, headers = get(address)
    assert code == 200
    assert "<title>a &lt;stream&gt;</title>" in body
    assert body.count("</script") == 2
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    code, body, headers = get(address, "/status")
    assert json.loads(body)["latest"] == ['P("</script>é")@1']
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "no-store"
    assert get(address, "/", "HEAD")[1] == ""
    assert get(address, "/etc/passwd")[0] == 404
    assert get(address, "/status", "POST")[0] == 501


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1"])
def test_other_names_get_nothing(address: str, host: str) -> None:
    assert get(address, "/status", Host=host)[0] == 403
    assert get(address, "/", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:1"])
def test_names_of_this_machine_are_served(address: str, host: str) -> None:
    assert get(address, "/status", Host=host)[0] == 200


def test_pages_of_other_sites_get_nothing(address: str) -> None:
    for site in ("cross-site", "same-site"):
        assert get(address, "/status", Sec_Fetch_Site=site)[0] == 403
        assert get(address, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
        assert get(address, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0] == 200  # a link to the page
    assert get(address, "/status", Sec_Fetch_Site="same-origin")[0] == 200


def test_a_browser_that_goes_away_is_no_news(
    board: LiveBoard, address: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Semaphore(0)
    shut = StreamServer.shutdown_request

    def shutdown_request(self: StreamServer, request: socket.socket) -> None:
        shut(self, request)
        ended.release()

    monkeypatch.setattr(StreamServer, "shutdown_request", shutdown_request)
    with socket.create_connection(("127.0.0.1", urlsplit(address).port or 0)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset instead of an end
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(10)
    assert ended.acquire(timeout=20)
    assert capfd.readouterr().err == ""


def test_nothing_is_left_when_it_ends(board: LiveBoard) -> None:
    before = active_count()
    with serve_board(board, "x", port=0) as address:
        port = urlsplit(address).port
        open_still = socket.create_connection(("127.0.0.1", port or 0))
        assert get(address, "/status")[0] == 200
    with pytest.raises(OSError):
        get(address)
    open_still.close()
    assert active_count() <= before + 1  # at most the thread of the connection that was open, which ends by itself


def test_a_port_that_is_taken_is_said(board: LiveBoard) -> None:
    with serve_board(board, "x", port=0) as address:
        port = urlsplit(address).port
        with pytest.raises(TidelogError, match="cannot listen on"), serve_board(board, "y", port=port):
            pass


# The commands


@pytest.mark.slow
def test_a_stream_shows_its_page_while_it_runs(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    running = start_command(sh.folder, "stream", "rules.dmtl", "--query", "Hot", "--input", "-", "--ui", "0")
    assert running.stdin is not None
    assert running.stderr is not None
    assert running.stdout is not None
    try:
        said = running.stderr.readline().decode()
        while "watch it at" not in said:
            assert said
            said = running.stderr.readline().decode()
        address = said.split()[-1]
        running.stdin.write(b"High(a)@0\nHigh(a)@9\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"Hot(a)@[0,2]\n"
        wait_for(lambda: bool(json.loads(get(address, "/status")[1])["latest"]), 60, "answer on the page", running)
        status = json.loads(get(address, "/status")[1])
        assert (status["state"], status["answers"], status["latest"]) == ("running", 1, ["Hot(a)@[0,2]"])
        assert [cost["rule"] for cost in status["slowest_rules"]] == [RULES.strip()]
        running.stdin.close()
        assert running.wait(60) == 0
        with pytest.raises(OSError):
            get(address)
        assert running.stdout.read() == b"Hot(a)@9\n"
    finally:
        running.kill()
        running.wait()


def test_a_port_is_a_number(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    ran = sh("stream", "--ui", "rules.dmtl", "--query", "Hot", "--input", "x")
    assert ran.code == 2
    assert "is not a port" in ran.err

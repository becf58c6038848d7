"""The page of a running stream in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from browsing import Open, chromium, pages

from tidelog.page import live_board
from tidelog.page.live_board import LiveBoard, OpenAlert, OpenAlerts
from tidelog.page.live_server import serve_board

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    with pages(browser) as opened:
        yield opened


def test_a_page_follows_its_stream_to_the_end(open_page: Open) -> None:
    board = LiveBoard()
    board.count(facts=1200, answers=3, late=2, seconds=0.002)
    board.set_state({"High": 7, "Hot": 1}, Fraction(42), dates=False)
    board.add_answers(["Hot(a)@1", 'Hot("<b>")@2'])
    with serve_board(board, "readings", port=0) as address:
        page = open_page(address)
        page.wait_for_selector(".state.running")
        names, values = (page.locator(f".tiles {tag}").all_inner_texts() for tag in ("dt", "dd"))
        tiles = dict(zip(names, values, strict=True))
        assert tiles["Facts in"] == "1,200"
        assert tiles["Answered up to"] == "42"
        assert tiles["Facts held"] == "8"
        assert tiles["Late facts"] == "2"
        assert page.locator(".latest li").all_inner_texts() == ['Hot("<b>")@2', "Hot(a)@1"]
        held = page.locator(".box", has_text="Held by predicate").locator("tr")
        assert held.first.inner_text().split() == ["High", "7"]
        assert not page.locator(".box", has_text="Slowest rules").is_visible()
        board.count(facts=300)
        board.add_rule_costs([{"rule": "Hot(X) :- High(X).", "seconds": 0.5}])
        page.wait_for_selector(".tiles dd:has-text('1,500')")
        assert page.locator(".box", has_text="Slowest rules").locator("tr").inner_text().split("\t")[0] == (
            "Hot(X) :- High(X)."
        )
        assert page.locator(".chart canvas").count() == 4
        board.end()
        page.wait_for_selector(".state.ended")


def down(node: str, since: int, because: str) -> OpenAlert:
    reason = {"rule": "Down(X) :- Node(X), not Diamondminus[0,5min] Beat(X).", "because": [because]}
    return OpenAlert(f"Down({node})", Fraction(since), False, reason)


def test_what_is_firing_comes_first_and_stays_unfolded(open_page: Open) -> None:
    board = LiveBoard()
    board.set_state({"Node": 2}, Fraction(1000), dates=True)
    old = down("a", 300, "no Beat(a) in (0,1000)")
    board.set_open(OpenAlerts((old,), 1, Fraction(1000)))
    with serve_board(board, "nodes", port=0) as address:
        page = open_page(address)
        page.wait_for_selector(".alerts li")
        assert page.locator("#app > *").nth(1).get_attribute("aria-label") == "Firing now"
        assert page.title() == "(1) nodes"
        assert page.locator(".alerts > li").inner_text().split("\n")[:3] == [
            "Down(a)", "since 1970-01-01T00:05:00Z", "for 11 min 40 s",
        ]  # fmt: skip
        page.locator(".alerts summary").click()
        assert page.locator(".alerts .why").inner_text().split("\n") == [
            "Down(X) :- Node(X), not Diamondminus[0,5min] Beat(X).", "no Beat(a) in (0,1000)",
        ]  # fmt: skip
        new = down("b", 1100, "no Beat(b) in (800,1200)")
        board.set_open(OpenAlerts((new, old), 72, Fraction(1200)))
        page.wait_for_selector(".alerts > li >> nth=1")
        assert page.locator(".alerts .atom").all_inner_texts() == ["Down(b)", "Down(a)"]
        assert page.locator(".alerts details").evaluate_all("all => all.map((one) => one.open)") == [False, True]
        assert "and 70 alerts that began earlier" in page.locator(".firing").inner_text()
        board.set_open(OpenAlerts((), 0, Fraction(1300)), [new])
        page.wait_for_selector(".firing.calm")
        said = page.locator(".firing").inner_text()
        assert "Nothing is firing." in said
        assert "Withdrawn at 1970-01-01T00:21:40Z: Down(b) since 1970-01-01T00:18:20Z, after a correction" in said


def test_answers_that_were_taken_back_say_so(open_page: Open) -> None:
    board = LiveBoard()
    board.add_answers(["+Hot(a)@1", "+Hot(b)@2", "-Hot(a)@1"])
    with serve_board(board, "readings", port=0) as address:
        page = open_page(address)
        page.wait_for_selector(".latest li")
        assert page.locator(".latest li").all_inner_texts() == ["Hot(a)@1withdrawn", "Hot(b)@2", "Hot(a)@1withdrawn"]
        assert page.locator(".latest s").all_inner_texts() == ["Hot(a)@1", "Hot(a)@1"]


def test_lag_is_shown_for_live_streams_only(open_page: Open) -> None:
    for largest, shown in ((1e12, True), (-1.0, False)):
        board = LiveBoard(largest)
        board.set_state({}, Fraction(1000), dates=True)
        with serve_board(board, "readings", port=0) as address:
            page = open_page(address)
            page.wait_for_selector(".tiles dd:has-text('1970-01-01T00:16:40Z')")
            assert page.locator(".lag").is_visible() == shown


@pytest.mark.parametrize("width", [390, 820, 1280, 1900])
def test_nothing_is_wrapped_or_cut_off_and_no_chart_stands_alone(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    clock = [0.0]
    monkeypatch.setattr(live_board, "monotonic", lambda: clock[0])
    board = LiveBoard()
    board.set_state({"Node": 123_456_789}, Fraction(1_800_000_000), dates=True)
    board.set_open(OpenAlerts((down("a", 1_700_000_000, "Node(a)"),), 1, Fraction(1_800_000_000)))
    for _ in range(20):
        clock[0] += 1
        board.count(facts=98_765_432, answers=1_234_567, late=1_000_000)
    with serve_board(board, "nodes", port=0) as address:
        page = open_page(address, viewport={"width": width, "height": 844})
        page.wait_for_selector(".alerts li")
        page.wait_for_selector(".chart canvas >> nth=3")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        lines = "all => all.filter((one) => one.scrollWidth > one.clientWidth || one.clientHeight > 40).length"
        assert page.locator(".tiles span:visible").evaluate_all(lines) == 0
        assert page.locator(".since, .lasted").evaluate_all("all => all.every((one) => one.clientHeight < 30)")
        for boxes in (".chart", ".tiles > div"):
            tops = page.locator(boxes).evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
            sizes = page.locator(boxes).evaluate_all("all => all.map((one) => one.getBoundingClientRect().right)")
            # The last row is as full as the first.
            last = max(right for top, right in zip(tops, sizes, strict=True) if top == max(tops))
            assert last == pytest.approx(max(sizes), abs=1)


#: Returns the lines in which the text of each element stands.
LINES = """(all) => all.map((one) => {
  const lines = [];
  let middle = -Infinity;
  const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (let at = 0; at < texts.currentNode.length; at++) {
      const range = document.createRange();
      range.setStart(texts.currentNode, at);
      range.setEnd(texts.currentNode, at + 1);
      const box = range.getBoundingClientRect();
      if (box.top > middle) lines.push("");
      middle = (box.top + box.bottom) / 2;
      lines[lines.length - 1] += range.toString();
    }
  }
  return lines;
})"""


def test_lines_of_answers_break_between_ends_of_intervals(open_page: Open) -> None:
    board = LiveBoard()
    first, second = "2026-11-19T22:06:09Z", "2026-11-19T22:06:23Z"
    board.add_answers([f'Down("node-6.example")@({first},{second})', f'Down("node-6.example")@(-inf,{second})'])
    with serve_board(board, "nodes", port=0) as address:
        page = open_page(address, viewport={"width": 390, "height": 844})
        page.wait_for_selector(".latest li")
        assert page.locator(".latest code").evaluate_all(LINES) == [
            ['Down("node-6.example")@(-inf,', f"{second})"],
            ['Down("node-6.example")', f"@({first},{second})"],
        ]


def test_gaps_are_drawn_as_gaps(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(live_board, "monotonic", lambda: clock[0])
    board = LiveBoard()
    board.set_state({"Node": 5}, None, dates=False)
    for passed in [1] * 30 + [40] + [1] * 30:
        clock[0] += passed
        board.count(facts=10)
    with serve_board(board, "nodes", port=0) as address:
        page = open_page(address)
        page.wait_for_selector(".chart canvas >> nth=3")
        page.wait_for_timeout(300)
        # Colours of the area below the line of "Facts held", from left to right.
        drawn = (
            page.locator(".chart", has_text="Facts held")
            .locator("canvas")
            .evaluate(
                """(canvas) => {
                const { width, height } = canvas;
                const row = canvas.getContext("2d").getImageData(0, Math.round(height * 0.7), width, 1).data;
                return [0.3, 0.55, 0.85].map((part) => row[4 * Math.round(part * width) + 3] > 0);
            }"""
            )
        )
        assert drawn == [True, False, True]

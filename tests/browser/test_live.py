"""The page of a running stream in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from browsing import Open, chromium, pages

from tidelog.page.live_board import LiveBoard
from tidelog.page.live_server import serve_board

pytestmark = pytest.mark.browser


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

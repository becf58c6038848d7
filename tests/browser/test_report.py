"""Reports in a real browser: they show what they should, to eyes, hands, keys and screen readers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Open, chromium, pages

import tidelog as tl
from locations import ROOT
from tidelog.cli.main import run
from tidelog.page.html_document import render_page
from tidelog.page.report_data import Heading, build_report, materialise_timeline

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

NASTY = "a</script><script>alert(1)</script>\"'&<b>ü</b>"
#: Where the rows of the timeline begin below its axis, and how high they are.
AXIS, ROW = 30, 26


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    with pages(browser) as opened:
        yield opened


def written(folder: Path, *args: str) -> Path:
    assert run(["report", *args, "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.fixture
def signals(tmp_path: Path) -> Path:
    return written(tmp_path, str(ROOT / "examples/signals/signals.dmtl"), str(ROOT / "examples/signals/signals.facts"))


def pixel(page: Any, x: float, place: int) -> bytes:
    """A picture of one pixel of a row of the timeline."""
    box = page.locator("canvas").bounding_box()
    at = {"x": box["x"] + x, "y": box["y"] + AXIS + ROW * place + ROW / 2, "width": 1, "height": 1}
    return bytes(page.screenshot(clip=at))


def click_row(page: Any, place: int, x: float) -> None:
    page.locator("canvas").click(position={"x": x, "y": AXIS + ROW * place + ROW / 2})


def test_a_report_shows_its_facts_and_draws_them(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    assert page.title() == "signals.dmtl: signals.facts"
    assert "9 atoms, 12 intervals, 7 given, 5 derived" in page.inner_text(".about")
    page.wait_for_timeout(200)
    # The bar of Flag(n1,z) is there, and is not as solid as that of Monit(n1,z), which was given.
    assert len({pixel(page, 700, 2), pixel(page, 700, 5), pixel(page, 300, 2)}) == 3


def test_a_click_shows_the_proof(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    click_row(page, 2, 760)
    details = page.locator(".details")
    assert details.locator("h2").inner_text() == "Flag(n1,z)@[4,6]"
    assert details.locator(".rule").first.inner_text() == (
        "Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z)."
    )
    assert details.locator(".fact").all_inner_texts() == [
        "Monit(n1,z)@[4,6]", "Signal(z)@0", "Signal(z)@2", "Signal(z)@3", "Signal(z)@5",
    ]  # fmt: skip
    details.locator(".fact").first.click()
    assert details.locator("h2").inner_text() == "Monit(n1,z)@[0,6]"
    assert "This is in the data." in details.inner_text()
    page.keyboard.press("Escape")
    assert not details.is_visible()
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"


def test_deep_proofs_open_step_by_step(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    click_row(page, 4, 700)
    details = page.locator(".details")
    assert details.locator("h2").inner_text() == "Flag(n3,z)@[4,7]"
    assert details.locator(".rule").count() == 2
    details.locator("details:not([open]) > summary").first.click()
    page.wait_for_selector(".details .rule >> nth=2")


def test_zooming_changes_what_is_drawn_and_all_comes_back(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    page.wait_for_timeout(100)

    def picture() -> str:
        page.wait_for_timeout(150)
        return str(page.evaluate("document.querySelector('canvas').toDataURL()"))

    first = picture()
    page.get_by_role("button", name="Zoom in").click()
    nearer = picture()
    assert nearer != first
    page.locator("canvas").hover(position={"x": 700, "y": 200})
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    assert picture() not in (first, nearer)
    page.mouse.down()
    page.mouse.move(500, 400, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Show all").click()
    page.mouse.move(5, 5)
    assert picture() == first


def test_search_and_filters_narrow_what_is_shown(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    summary = page.locator(".summary")
    page.get_by_label("Search atoms").fill("flag N2")
    assert summary.inner_text() == "1 interval of 12"
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("Constant").fill("n2")
    assert summary.inner_text() == "4 intervals of 12"
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name=re.compile("^Monit")).click()
    assert summary.inner_text() == "3 intervals of 12"
    page.get_by_label("given", exact=True).uncheck()
    assert summary.inner_text() == "2 intervals of 12"
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("Time from").fill("5")
    page.get_by_label("to", exact=True).fill("11/2")
    assert summary.inner_text() == "9 intervals of 12"
    page.get_by_label("Time from").fill("never")
    assert page.get_by_label("Time from").get_attribute("aria-invalid") == "true"


def test_keys_go_everywhere_and_say_where(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    page.focus("canvas")
    spoken = page.locator(".timeline [role=status]")
    page.keyboard.press("ArrowDown")
    assert spoken.inner_text() == "Connect(n2,n1) from the beginning of time for ever, given"
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    assert spoken.inner_text() == "Flag(n1,z) from 4 to 6, derived"
    page.keyboard.press("PageDown")
    assert spoken.inner_text() == "Signal(z) at 3, given"
    page.keyboard.press("ArrowRight")
    assert spoken.inner_text() == "Signal(z) at 5, given"
    page.keyboard.press("Home")
    assert spoken.inner_text() == "Signal(z) at 0, given"
    page.keyboard.press("+")
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    assert page.locator(".details h2").inner_text() == "Signal(z)@0"
    page.keyboard.press("Escape")
    page.focus("[role=tab]")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "Table"
    assert page.locator("tbody tr").count() == 12
    page.get_by_role("button", name="Proof of Flag(n1,z)@[4,6]").click()
    assert page.locator(".details h2").inner_text() == "Flag(n1,z)@[4,6]"


def test_roles_and_names_are_there_for_screen_readers(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    tree = page.locator("#app").aria_snapshot()
    for part in (
        'heading "signals.dmtl: signals.facts" [level=1]',
        "search",
        'group "Predicates"',
        'tablist "Views"',
        'tab "Timeline" [selected]',
        'toolbar "Zoom"',
    ):
        assert part in tree, tree
    assert page.evaluate("document.documentElement.lang") == "en"
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, canvas")].filter((element) =>
            !element.textContent && !element.getAttribute("aria-label") && !element.labels?.length).length"""
    )
    assert unnamed == 0


def test_nothing_in_the_data_becomes_markup(open_page: Open, tmp_path: Path) -> None:
    facts = tmp_path / "data.facts"
    facts.write_text(f"High({json.dumps(NASTY, ensure_ascii=False)})@[1,3)\n", encoding="utf-8")
    rules = tmp_path / "rules.dmtl"
    rules.write_text("Hot(X) :- High(X).\n", encoding="utf-8")
    page = open_page(written(tmp_path, str(rules), str(facts), "--title", NASTY))
    assert page.title() == NASTY
    assert page.locator("h1").inner_text() == NASTY
    page.focus("canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    shown = json.dumps(NASTY, ensure_ascii=False)
    assert page.locator(".details h2").inner_text() == f"Hot({shown})@[1,3)"
    assert page.locator("#app b, #app script").count() == 0


def test_possible_answers_say_what_they_wait_for(open_page: Open, tmp_path: Path) -> None:
    stream = str(ROOT / "examples/turbines/turbines.jsonl")
    arrivals = ["--arrivals", stream, "--hypothetical", "Malf(X,T)", "--delay", "Temp=1"]
    page = open_page(written(tmp_path, str(ROOT / "examples/turbines/turbines.tdl"), *arrivals))
    page.get_by_role("tab", name="Awaited").click()
    assert page.locator("tbody tr", has_text="Malf(wt4)@1").inner_text().split("\t") == [
        "Malf(wt4)@1", "Temp(wt4,high,2), Temp(wt4,high,3)", "Temp(wt4,high,1)", "4",
    ]  # fmt: skip
    page.get_by_role("button", name="Malf(wt4)@1").click()
    assert "WAITS FOR" in page.locator(".details").inner_text().upper()
    page.get_by_role("checkbox", name="awaited").uncheck()
    assert page.locator(".summary").inner_text() == "8 intervals of 11"


def test_what_repeats_goes_on_as_far_as_one_looks(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text("A(X) :- Diamondminus[3,3] A(X).\n", encoding="utf-8")
    (tmp_path / "data.facts").write_text("A(a)@[17,18)\n", encoding="utf-8")
    page = open_page(written(tmp_path, str(tmp_path / "rules.dmtl"), str(tmp_path / "data.facts")))
    page.get_by_label("given", exact=True).uncheck()
    page.focus("canvas")
    page.keyboard.press("ArrowDown")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator(".details h2").inner_text() == "A(a)@[23,24)"
    shown = page.locator(".details").inner_text()
    assert "every 3, from 17 on" in shown
    assert "The first time: A(a)@[17,18)" in shown


def test_a_stream_has_its_charts(open_page: Open, tmp_path: Path) -> None:
    stream = tmp_path / "stream.facts"
    stream.write_text("".join(f"Beat(a)@{t}\n" for t in range(0, 600, 7)), encoding="utf-8")
    args = ["--query", "Down", "--input", str(stream), "--report", str(tmp_path / "report.html")]
    assert run(["stream", str(ROOT / "examples/signals/heartbeat.dmtl"), *args]) == 0
    page = open_page(tmp_path / "report.html")
    page.get_by_role("tab", name="Stream").click()
    page.wait_for_selector(".chart canvas")
    assert page.locator(".chart canvas").count() == 4
    assert page.locator(".figures tr", has_text="Facts in").inner_text().split() == ["Facts", "in", "86"]


def test_dark_is_dark(open_page: Open, signals: Path) -> None:
    shades = []
    for scheme in ("light", "dark"):
        page = open_page(signals, color_scheme=scheme)
        page.wait_for_timeout(100)
        shades.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert shades == ["rgb(244, 246, 248)", "rgb(17, 22, 29)"]


def test_a_hundred_thousand_intervals_open_and_move(open_page: Open, tmp_path: Path) -> None:
    facts = "\n".join(f"High(m{n % 2000})@{n}" for n in range(50_000))
    program, data = tl.Program.parse("Hot(X) :- Diamondminus[0,2] High(X)."), tl.Dataset.parse(facts)
    file = tmp_path / "report.html"
    file.write_text(
        render_page(build_report(program, materialise_timeline(program, data), Heading("many"))), encoding="utf-8"
    )
    page = open_page(file)
    assert page.locator(".summary").inner_text() == "100,000 intervals of 100,000"
    for _ in range(6):
        page.get_by_role("button", name="Zoom in").click()
    page.locator("canvas").hover(position={"x": 700, "y": 200})
    page.mouse.wheel(0, 50_000)
    page.get_by_label("Search atoms").fill("hot m1999")
    assert page.locator(".summary").inner_text() == "25 intervals of 100,000"
    page.focus("canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.locator(".details h2").inner_text() == "Hot(m1999)@[49999,50001]"
    page.get_by_role("tab", name="Table").click()
    assert page.locator("tbody tr").count() == 25
    # Only what is visible is in the document: the page stays as light as a small one.
    assert page.evaluate("document.querySelectorAll('*').length") < 5000

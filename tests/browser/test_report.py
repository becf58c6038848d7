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
    assert len({pixel(page, 700, 0), pixel(page, 700, 5), pixel(page, 300, 0)}) == 3


def test_a_click_shows_the_proof(open_page: Open, signals: Path) -> None:
    page = open_page(signals)
    click_row(page, 0, 760)
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
    click_row(page, 2, 700)
    details = page.locator(".details")
    assert details.locator("h2").inner_text() == "Flag(n3,z)@[4,7]"
    assert details.locator(".rule").count() == 2
    details.locator("details:not([open]) > summary").first.click()
    page.wait_for_selector(".details .rule >> nth=2")


def test_facts_of_a_proof_stand_apart_from_what_they_are(open_page: Open, tmp_path: Path) -> None:
    turbines = ROOT / "examples" / "turbines"
    answers_only = ("--query", "Overheated")
    page = open_page(written(tmp_path, str(turbines / "overheated.dmtl"), str(turbines / "Reading.csv"), *answers_only))
    page.focus("canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".premises .badge")
    gaps = page.locator(".premises .badge").evaluate_all(
        """(all) => all.map((one) =>
            one.getBoundingClientRect().left - one.previousElementSibling.getBoundingClientRect().right)"""
    )
    beside = [gap for gap in gaps if gap >= 0]  # the others begin a line of their own
    assert beside
    assert min(beside) >= 7


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
    assert spoken.inner_text() == "Flag(n1,z) from 4 to 6, derived"
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    assert spoken.inner_text() == "Connect(n2,n1) from the beginning of time for ever, given"
    page.keyboard.press("PageUp")
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
    page.keyboard.press("Enter")
    shown = json.dumps(NASTY, ensure_ascii=False)
    assert page.locator(".details h2").inner_text() == f"Hot({shown})@[1,3)"
    assert page.locator("#app b, #app script").count() == 0


DOORS = """LeftOpen(D) :- Boxminus[0,10min] Open(D).
Boxplus[0,1h] Alarm(D) :- LeftOpen(D), not Diamondminus[0,5min] Guard(D).
"""
OPEN = """Open(north)@[2026-01-31T10:00:00Z,2026-01-31T10:30:00Z]
Open(south)@[2026-01-31T12:00:00Z,2026-01-31T12:40:00Z]
Guard(south)@2026-01-31T12:12:00Z
"""


@pytest.fixture
def doors(tmp_path: Path) -> Path:
    (tmp_path / "doors.dmtl").write_text(DOORS, encoding="utf-8")
    (tmp_path / "doors.facts").write_text(OPEN, encoding="utf-8")
    schema = '[schema.Open]\ncolumns = { door = "text", start = "time", end = "time" }\n'
    (tmp_path / "doors.schema.toml").write_text(schema, encoding="utf-8")
    files = [str(tmp_path / name) for name in ("doors.dmtl", "doors.facts")]
    return written(tmp_path, *files, "--schema", str(tmp_path / "doors.schema.toml"), "--title", "doors")


def test_query_predicates_come_first_and_helpers_are_folded(open_page: Open, doors: Path) -> None:
    page = open_page(doors)
    chips = page.locator(".chip:visible")
    assert [text.split("\n")[0] for text in chips.all_inner_texts()] == ["Alarm", "Guard", "Open", "▸ Show 1 helper"]
    assert page.locator(".summary").inner_text() == "5 intervals of 7"
    page.get_by_role("tab", name="Table").click()
    assert page.locator("tbody th").all_inner_texts() == [
        "Alarm(north)", "Alarm(south)", "Guard(south)", "Open(north)", "Open(south)",
    ]  # fmt: skip
    # Looking for a helper finds it, and so does a click in a proof, which unfolds it.
    page.get_by_label("Search atoms").fill("leftopen")
    assert page.locator(".summary").inner_text() == "2 intervals of 7"
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Proof of Alarm(north)").click()
    page.locator(".details .fact", has_text="LeftOpen").first.click()
    helpers = page.locator(".helpers")
    assert (helpers.inner_text(), helpers.get_attribute("aria-expanded")) == ("▾ Hide 1 helper", "true")
    assert page.locator(".summary").inner_text() == "7 intervals of 7"
    helpers.click()
    assert page.locator(".summary").inner_text() == "5 intervals of 7"


def test_rows_are_sorted_by_time_or_name(open_page: Open, doors: Path) -> None:
    page = open_page(doors)
    page.get_by_role("tab", name="Table").click()
    atoms = page.locator("tbody th")
    page.get_by_label("Order").select_option("latest first")
    assert atoms.all_inner_texts() == ["Alarm(south)", "Alarm(north)", "Open(south)", "Guard(south)", "Open(north)"]
    page.get_by_role("button", name="From").click()
    assert atoms.all_inner_texts() == ["Open(north)", "Alarm(north)", "Open(south)", "Alarm(south)", "Guard(south)"]
    assert page.get_by_role("columnheader", name="From").get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="From").click()
    assert atoms.first.inner_text() == "Guard(south)"
    page.get_by_role("button", name="From").click()
    assert atoms.first.inner_text() == "Alarm(south)"  # the chosen order again


def test_arguments_have_the_names_of_their_columns(open_page: Open, doors: Path) -> None:
    page = open_page(doors)
    page.get_by_role("button", name=re.compile("^Open")).click()
    page.get_by_role("tab", name="Table").click()
    assert [text.strip() for text in page.locator("thead th").all_inner_texts()][1:] == ["From", "To", "Kind", "Proof"]
    assert page.locator("thead .sort").first.inner_text() == "door"
    page.get_by_role("button", name="Proof of Open(north)").click()
    assert page.locator(".columns").inner_text().split() == ["door", "north"]


def test_values_behind_a_missing_interval_and_times_in_arguments(open_page: Open, tmp_path: Path) -> None:
    rules = "Many(X, S) :- count[0,1min]{ High(X) } >= 2, S = start{ Warm(X) }.\n"
    (tmp_path / "r.dmtl").write_text(rules, encoding="utf-8")
    facts = "Warm(a)@[2026-01-31T10:00:00Z,2026-01-31T11:00:00Z]\nHigh(a)@2026-01-31T10:20:00Z\n"
    (tmp_path / "d.facts").write_text(facts + "High(a)@2026-01-31T10:20:30Z\n", encoding="utf-8")
    page = open_page(written(tmp_path, str(tmp_path / "r.dmtl"), str(tmp_path / "d.facts")))
    click_row(page, 0, 1200)
    details = page.locator(".details")
    assert details.locator("h2").inner_text().startswith("Many(a,2026-01-31T10:00:00Z)@(2026-01-31T10:21:00Z,")
    assert "count[0,1min]{ High(a) } >= 2 fails throughout" in details.locator(".fails").inner_text()


def test_durations_are_written_as_in_the_rules(open_page: Open, doors: Path) -> None:
    page = open_page(doors)
    click_row(page, 0, 500)
    details = page.locator(".details")
    assert details.locator("h2").inner_text() == "Alarm(north)@[2026-01-31T10:10:00Z,2026-01-31T11:30:00Z]"
    said = details.inner_text()
    assert "Boxminus[0,10min] Open(north)" in said
    assert "600" not in said


def test_an_empty_spot_says_why_not(open_page: Open, doors: Path) -> None:
    page = open_page(doors)
    click_row(page, 0, 1200)
    details = page.locator(".details")
    assert details.locator("h2").inner_text().startswith("Alarm(north)@(2026-01-31T11:30:00Z,")
    assert details.locator(".badge").inner_text() == "does not hold"
    assert details.locator(".fails").inner_text().startswith("LeftOpen(north) fails throughout (2026-01-31T10:30:00Z,")
    # South, while the guard is there: another condition fails.
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    assert details.locator("h2").inner_text().startswith("Alarm(south)@(2026-01-31T13:")
    page.keyboard.press("Escape")
    click_row(page, 2, 1200)
    assert "No rule derives Guard: it holds only where the data says so." in details.inner_text()


def test_an_empty_spot_beyond_what_the_page_has_gives_the_command(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "r.dmtl").write_text("Hot(X) :- High(X).\n", encoding="utf-8")
    (tmp_path / "d.facts").write_text("High(a)@0\nHigh(a)@10\n", encoding="utf-8")
    files = [str(tmp_path / "r.dmtl"), str(tmp_path / "d.facts")]
    page = open_page(written(tmp_path, *files, "--proofs", "0"))
    click_row(page, 0, 700)
    said = page.locator(".details").inner_text()
    assert "Why it does not hold here is not on this page." in said
    assert re.search(r"tidelog explain .*r\.dmtl .*d\.facts 'Hot\(a\)@\d'", said)


def test_what_is_in_view_can_be_saved(open_page: Open, doors: Path, tmp_path: Path) -> None:
    page = open_page(doors, color_scheme="dark")

    def saved(name: str) -> Path:
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        path = tmp_path / str(download.value.suggested_filename)
        download.value.save_as(path)
        return path

    assert saved("as CSV").read_text(encoding="utf-8").splitlines() == [
        "predicate,arg1,start,end,closed,kind",
        "Alarm,north,2026-01-31T10:10:00Z,2026-01-31T11:30:00Z,both,derived",
        "Alarm,south,2026-01-31T12:10:00Z,2026-01-31T13:40:00Z,both,derived",
        "Guard,south,2026-01-31T12:12:00Z,2026-01-31T12:12:00Z,both,given",
        "Open,north,2026-01-31T10:00:00Z,2026-01-31T10:30:00Z,both,given",
        "Open,south,2026-01-31T12:00:00Z,2026-01-31T12:40:00Z,both,given",
    ]
    page.get_by_role("button", name=re.compile("^Open")).click()
    page.get_by_label("Search atoms").fill("north")
    assert saved("as CSV").read_text(encoding="utf-8").splitlines() == [
        "predicate,door,start,end,closed,kind",
        "Open,north,2026-01-31T10:00:00Z,2026-01-31T10:30:00Z,both,given",
    ]
    image = saved("as an image")
    assert image.name == "doors.png"
    head = image.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = (int.from_bytes(head[at : at + 4], "big") for at in (16, 20))
    assert width > 2000
    assert height == 2 * (34 + AXIS + ROW + 8)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_on_a_phone(open_page: Open, doors: Path, scheme: str) -> None:
    page = open_page(doors, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    click_row(page, 1, 150)
    page.wait_for_selector(".details .fails")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator(".details h2").bounding_box()
    assert 0 <= box["y"] < 844, "the proof is scrolled into view"
    page.get_by_role("tab", name="Table").click()
    assert page.locator(".time").evaluate_all("all => all.every((one) => one.clientHeight < 40)")
    for label in page.locator(".filters label:visible").all():
        assert label.bounding_box()["height"] < 30


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
    page.get_by_role("button", name="Show 3 helpers").click()
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

"""Draw the pictures in the README and the documentation that show what rules do: `make drawings`.

Every bar is an answer that `tidelog` computes for the rule beside it, so a picture cannot disagree with the program.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import escape

import tidelog as tl

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "img"

GIVEN, DERIVED, MIDDLE, LOOK = "#0072b2", "#d55e00", "#009e73", "#f0e442"
INK, PALE = "#24292f", "#d0d7de"
LEFT, TOP, ROW_HEIGHT = 268, 26, 34
STEP = 18  # the height of 1 in a plot


@dataclass(frozen=True)
class Row:
    """One row of a picture: its label, and the intervals in which it holds."""

    label: str
    intervals: tuple[tl.Interval, ...]
    colour: str


@dataclass(frozen=True)
class Look:
    """The range of times that an operator looks at from time `at`."""

    at: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Plot:
    """A number that changes over time: `predicate` holds for its value.

    If `sloped`, the predicate holds for every level that the number reaches, and whole times are joined by lines.
    """

    predicate: str
    label: str
    highest: int
    limit: int
    sloped: bool = False


@dataclass(frozen=True)
class Picture:
    """Rules over facts; `rows` are the predicates to draw, each with the label and the colour of its row."""

    name: str
    title: str
    rules: str
    facts: str
    rows: tuple[tuple[str, str, str], ...]
    look: Look | None
    until: int = 12
    plot: Plot | None = None


OPERATORS = [
    Picture(
        "diamondminus",
        "Diamondminus[1,3] P: P at some time from 3 to 1 ago",
        "A :- Diamondminus[1,3] P.",
        "P@[2,4]",
        (("P", "P", GIVEN), ("A", "Diamondminus[1,3] P", DERIVED)),
        Look(6, 3, 5),
    ),
    Picture(
        "boxminus",
        "Boxminus[1,3] P: P at every time from 3 to 1 ago",
        "A :- Boxminus[1,3] P.",
        "P@[2,8]",
        (("P", "P", GIVEN), ("A", "Boxminus[1,3] P", DERIVED)),
        Look(6, 3, 5),
    ),
    Picture(
        "diamondplus",
        "Diamondplus[1,3] P: P at some time from 1 to 3 later",
        "A :- Diamondplus[1,3] P.",
        "P@[8,10]",
        (("P", "P", GIVEN), ("A", "Diamondplus[1,3] P", DERIVED)),
        Look(6, 7, 9),
    ),
    Picture(
        "boxplus",
        "Boxplus[1,3] P: P at every time from 1 to 3 later",
        "A :- Boxplus[1,3] P.",
        "P@[4,10]",
        (("P", "P", GIVEN), ("A", "Boxplus[1,3] P", DERIVED)),
        Look(6, 7, 9),
    ),
    Picture(
        "since",
        "P Since[1,5] Q: Q from 5 to 1 ago, and P at all times in between",
        "A :- P Since[1,5] Q.",
        "P@[2,7]\nQ@3\nQ@9",
        (("P", "P", GIVEN), ("Q", "Q", GIVEN), ("A", "P Since[1,5] Q", DERIVED)),
        Look(6, 1, 5),
    ),
    Picture(
        "until",
        "P Until[1,5] Q: Q from 1 to 5 later, and P at all times in between",
        "A :- P Until[1,5] Q.",
        "P@[5,10]\nQ@9\nQ@3",
        (("P", "P", GIVEN), ("Q", "Q", GIVEN), ("A", "P Until[1,5] Q", DERIVED)),
        Look(6, 7, 11),
    ),
    Picture(
        "nested",
        "Boxminus[0,6] Diamondminus[0,5] H: often enough for long enough",
        "Lately :- Diamondminus[0,5] H.\nA :- Boxminus[0,6] Diamondminus[0,5] H.",
        "H@0\nH@4\nH@8",
        (
            ("H", "H", GIVEN),
            ("Lately", "Diamondminus[0,5] H", MIDDLE),
            ("A", "Boxminus[0,6] of that", DERIVED),
        ),
        Look(9, 3, 9),
        15,
    ),
    Picture(
        "head",
        "Boxplus[0,3] P :- Q: P for 3 after every Q",
        "Boxplus[0,3] P :- Q.",
        "Q@2\nQ@[4,5]\nQ@10",
        (("Q", "Q", GIVEN), ("P", "P", DERIVED)),
        None,
        14,
    ),
    Picture(
        "absence",
        "Q, not Diamondminus[0,3] P: nothing for 3",
        "A :- Q, not Diamondminus[0,3] P.",
        "P@1\nP@3\nP@9\nQ@[0,15]",
        (("P", "P", GIVEN), ("Q", "Q", GIVEN), ("A", "Q, not Diamondminus[0,3] P", DERIVED)),
        Look(8, 5, 8),
        15,
    ),
]

NUMBERS = [
    Picture(
        "count",
        "count{ Waiting(X) }: a number that changes where someone comes or goes",
        "Ann :- Waiting(ann).\nBob :- Waiting(bob).\nN(N) :- N = count{ Waiting(X) }.\nA :- count{ Waiting(X) } >= 2.",
        "Waiting(ann)@[1,7)\nWaiting(bob)@[4,10]",
        (
            ("Ann", "Waiting(ann)", GIVEN),
            ("Bob", "Waiting(bob)", GIVEN),
            ("A", "count{ Waiting(X) } >= 2", DERIVED),
        ),
        None,
        plot=Plot("N", "count{ Waiting(X) }", 2, 2),
    ),
    Picture(
        "occurrences",
        "count[0,5]{ Down }: events enter the window and leave it",
        "N(N) :- N = count[0,5]{ Down }.\nA :- count[0,5]{ Down } >= 2.",
        "Down@1\nDown@4\nDown@8",
        (("Down", "Down", GIVEN), ("A", "count[0,5]{ Down } >= 2", DERIVED)),
        Look(7, 2, 7),
        15,
        Plot("N", "count[0,5]{ Down }", 2, 2),
    ),
    Picture(
        "duration",
        "duration[0,8]{ Hot } >= 4: hot for at least 4 of the last 8",
        "Reached(K) :- Level(K), duration[0,8]{ Hot } >= K.\nA :- duration[0,8]{ Hot } >= 4.",
        "\n".join(["Hot@[1,3)", "Hot@[5,8)", *(f"Level({level})" for level in range(6))]),
        (("Hot", "Hot", GIVEN), ("A", "duration[0,8]{ Hot } >= 4", DERIVED)),
        Look(10, 2, 10),
        17,
        Plot("Reached", "duration[0,8]{ Hot }", 5, 4, sloped=True),
    ),
]


@dataclass(frozen=True)
class Condition:
    """A condition of the gallery: its axis (begin, end, minutes between ticks), its objects, and its predicates.

    For every object there is a row for each predicate, with the facts whose first argument it is.
    """

    name: str
    title: str
    axis: str
    objects: str
    given: str
    middle: str
    derived: str


GALLERY = [
    Condition("orders", "Late orders", "08:00 12:30 30", "o1 o2 o3", "Ordered Shipped", "", "Late"),
    Condition("heartbeats", "Silent devices", "10:00 10:24 2", "d1 d2", "Beat", "", "Silent"),
    Condition("flapping", "Flapping links", "10:00 10:24 2", "l1 l2", "Down", "", "Flapping"),
    Condition("velocity", "Suspicious cards", "14:00 14:14 1", "c1 c2", "Payment", "", "Suspicious"),
    Condition("sla", "Overdue tickets", "08:00 15:30 60", "t1 t2", "Open Waiting", "Ours", "Overdue"),
    Condition("maintenance", "Alarms", "08:30 11:00 15", "m1 m2", "Maintenance Fault", "", "Alarm"),
    Condition("geofences", "Trucks outside", "10:00 10:55 5", "k1 k2", "At", "Inside Outside", "Left"),
    Condition("intrusion", "Lost hosts", "01:00 06:30 30", "h1 h2", "Scan Exploit Leak", "Foothold", "Lost"),
    Condition("halts", "Halted shares", "15:00 15:30 2", "abc xyz", "Price", "Jump", "Halted"),
    Condition("rounds", "Patients without a visit", "06:00 20:00 60", "p1 p2", "Inpatient Visit", "", "Overdue"),
]


def draw_condition(condition: Condition) -> str:
    """Draw the answers of a condition of the gallery over its data."""
    folder = ROOT / "docs" / "gallery" / condition.name
    program, data = tl.Program.load(folder / "rules.dmtl"), tl.Dataset.load(*sorted(folder.glob("*.csv")))
    start, end, minutes = condition.axis.split()
    first, last = (int(datetime.fromisoformat(f"2026-03-02T{at}:00Z").timestamp()) for at in (start, end))
    kinds = ((condition.given, GIVEN), (condition.middle, MIDDLE), (condition.derived, DERIVED))
    colours = {name: colour for names, colour in kinds for name in names.split()}
    model = list(tl.materialise(program, data, query=list(colours), until=last))

    def x(t: float) -> float:
        return 190 + (t - first) / (last - first) * 536

    parts: list[str] = []
    y = 0.0
    for item in condition.objects.split():
        for name, colour in colours.items():
            y += 24
            parts.append(_text(176, y + 4, f"{name}({item})", "end", 12, mono=True))
            parts.append(_line(x(first), y, x(last), y, PALE))
            found = [fact.interval for fact in model if (fact.predicate, fact.args[0]) == (name, item)]
            parts += [_bar(x, y, interval, colour) for interval in found]
        y += 10
    y += 6
    parts.append(_line(x(first), y, x(last), y, INK))
    for t in range(first, last + 1, 60 * int(minutes)):
        parts.append(_line(x(t), y, x(t), y + 5, INK))
        parts.append(_text(x(t), y + 18, f"{datetime.fromtimestamp(t, UTC):%H:%M}", "middle", 10))
    return _svg(condition.title, 760, int(y) + 30, parts)


def draw_operator(picture: Picture) -> str:
    """Draw the answers of a picture's rules as rows of bars over one time axis.

    An open end is an empty circle, a closed end a filled one, as in textbooks.
    """
    rows, plot = compute_rows(picture), picture.plot
    bottom = TOP + ROW_HEIGHT * len(rows) + 4 + (STEP * plot.highest + 20 if plot else 0)
    width, height = 760, bottom + 42

    def x(t: float) -> float:
        return LEFT + t / picture.until * (width - LEFT - 30)

    parts = []
    look = picture.look
    if look is not None:
        band = f'x="{x(look.lo):.1f}" y="{TOP}" width="{x(look.hi) - x(look.lo):.1f}" height="{bottom - TOP}"'
        parts.append(f'<rect {band} fill="{LOOK}" fill-opacity="0.35"/>')
        parts.append(_line(x(look.at), TOP, x(look.at), bottom, INK, 'stroke-dasharray="3 3"'))
        parts.append(_text(x(look.at), TOP - 8, "seen from here", "middle", 11))
    for t in range(picture.until + 1):
        parts.append(_line(x(t), bottom, x(t), bottom + 5, INK))
        parts.append(_text(x(t), bottom + 18, str(t), "middle", 11))
    parts.append(_line(x(0), bottom, x(picture.until), bottom, INK))
    for number, row in enumerate(rows):
        y = TOP + ROW_HEIGHT * number + ROW_HEIGHT / 2
        parts.append(_text(LEFT - 18, y + 4, row.label, "end", 13, mono=True))
        parts.append(_line(x(0), y, x(picture.until), y, PALE))
        parts += [_bar(x, y, interval, row.colour) for interval in row.intervals]
    if plot is not None:
        parts += _draw_plot(picture, plot, x, bottom - 8)
    return _svg(picture.title, width, height, parts)


def _draw_plot(picture: Picture, plot: Plot, x: Callable[[float], float], zero: float) -> list[str]:
    """Draw a number over time; `zero` is the height at which it is 0."""
    parts = [_text(LEFT - 18, zero - STEP * plot.highest / 2 + 4, plot.label, "end", 13, mono=True)]
    for value in range(plot.highest + 1):
        y = zero - STEP * value
        style = (DERIVED, 'stroke-dasharray="5 4"') if value == plot.limit else (PALE, "")
        parts.append(_line(x(0), y, x(picture.until), y, *style))
        parts.append(_text(x(0) - 7, y + 4, str(value), "end", 10))
    values = [(int(fact.args[0]), fact.interval) for fact in compute_facts(picture, [plot.predicate])]
    if not plot.sloped:
        return parts + [_bar(x, zero - STEP * value, interval, MIDDLE) for value, interval in values]
    points = [
        (t, max(value for value, during in values if during.lo <= t <= during.hi)) for t in range(picture.until + 1)
    ]
    path = " ".join(f"{x(t):.1f},{zero - STEP * value:.1f}" for t, value in points)
    return [*parts, f'<polyline points="{path}" fill="none" stroke="{MIDDLE}" stroke-width="4"/>']


def compute_facts(picture: Picture, predicates: list[str]) -> Iterable[tl.Fact]:
    """Compute what holds of these predicates in a picture."""
    program, data = tl.Program.parse(picture.rules), tl.Dataset.parse(picture.facts)
    return tl.materialise(program, data, query=predicates, between=(0, picture.until))


def compute_rows(picture: Picture) -> tuple[Row, ...]:
    """Compute when each predicate of a picture holds."""
    intervals: dict[str, list[tl.Interval]] = {}
    for fact in compute_facts(picture, [predicate for predicate, _, _ in picture.rows]):
        intervals.setdefault(fact.predicate, []).append(fact.interval)
    return tuple(Row(label, tuple(intervals.get(predicate, ())), colour) for predicate, label, colour in picture.rows)


def _bar(x: Callable[[float], float], y: float, interval: tl.Interval, colour: str) -> str:
    lo, hi = x(float(interval.lo)), x(float(interval.hi))
    bar = f'<line x1="{lo:.1f}" y1="{y}" x2="{hi:.1f}" y2="{y}" stroke="{colour}" stroke-width="7"/>'
    style = f'stroke="{colour}" stroke-width="2"'
    ends = [
        f'<circle cx="{at:.1f}" cy="{y}" r="5" fill="{colour if closed else "#ffffff"}" {style}/>'
        for at, closed in ((lo, interval.lo_closed), (hi, interval.hi_closed))
    ]
    return bar + "".join(ends)


def draw_readings() -> str:
    """Draw the picture of the README: readings of two turbines, when each was hot lately, and the answer."""
    folder = ROOT / "examples" / "turbines"
    data, rules = tl.Dataset.load(folder / "Reading.csv"), (folder / "overheated.dmtl").read_text(encoding="utf-8")
    with (folder / "Reading.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["turbine"], float(row["celsius"]), row["time"]) for row in csv.DictReader(file)]
    seconds = {time: number * 10 for number, time in enumerate(sorted({time for _, _, time in rows}))}
    first = min(fact.interval.lo for fact in _readings(data))
    model = tl.materialise(tl.Program.parse(rules + "\nLately(T) :- Diamondminus[0,10s] Hot(T)."), data)
    width, plot, gap, left = 760, 96, 92, 150
    end = 70

    def x(t: float) -> float:
        return left + t / end * (width - left - 30)

    parts = []
    for number, turbine in enumerate(sorted({name for name, _, _ in rows})):
        top = 34 + number * (plot + gap)

        def y(celsius: float, top: float = top) -> float:
            return top + (92 - celsius) / 26 * plot

        parts.append(_text(18, top + 12, f"turbine {turbine}", "start", 14))
        parts.append(_line(x(0), y(80), x(end), y(80), DERIVED, 'stroke-dasharray="5 4"'))
        parts.append(_text(x(0) - 8, y(80) + 4, "80 °C", "end", 11))
        for name, celsius, time in rows:
            if name == turbine:
                colour = DERIVED if celsius > 80 else GIVEN
                parts.append(f'<circle cx="{x(seconds[time]):.1f}" cy="{y(celsius):.1f}" r="5" fill="{colour}"/>')
        for place, (predicate, label, colour) in enumerate(
            (("Lately", "hot within 10 s", MIDDLE), ("Overheated", "Overheated", DERIVED))
        ):
            row = top + plot + 14 + 24 * place
            parts.append(_text(x(0) - 8, row + 4, label, "end", 12))
            parts.append(_line(x(0), row, x(end), row, PALE))
            for fact in model:
                if fact.predicate == predicate and fact.args == (turbine,):
                    parts.append(_bar(x, row, _shift(fact.interval, -first), colour))
    bottom = 34 + 2 * plot + gap + 68
    parts.append(_line(x(0), bottom, x(end), bottom, INK))
    for time, second in seconds.items():
        parts.append(_line(x(second), bottom, x(second), bottom + 5, INK))
        parts.append(_text(x(second), bottom + 18, time[11:19], "middle", 11))
    return _svg(
        "Readings of two turbines; the first is overheated from 10:00:40 to 10:01:00", width, bottom + 30, parts
    )


def _shift(interval: tl.Interval, by: Fraction | float) -> tl.Interval:
    return tl.Interval(interval.lo + by, interval.hi + by, interval.lo_closed, interval.hi_closed)


def _readings(data: tl.Dataset) -> Iterable[tl.Fact]:
    return tl.materialise(tl.Program.parse("Any :- Reading(_, _)."), data, query="Reading")


def _svg(title: str, width: int, height: int, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    back = f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", back, *parts, "</svg>", ""])


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'.replace(
        " />", "/>"
    )


def _text(x: float, y: float, text: str, anchor: str, size: int, *, mono: bool = False) -> str:
    family = "ui-monospace, Menlo, Consolas, monospace" if mono else "system-ui, -apple-system, Segoe UI, sans-serif"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-family="{family}" font-size="{size}" fill="{INK}">{escape(text)}</text>'


def draw_all() -> dict[str, str]:
    """Return the text of every picture by its file name under `docs/img`."""
    drawn = {f"{picture.name}.svg": draw_operator(picture) for picture in [*OPERATORS, *NUMBERS]}
    gallery = {f"gallery-{condition.name}.svg": draw_condition(condition) for condition in GALLERY}
    return {"readings.svg": draw_readings(), **drawn, **gallery}


if __name__ == "__main__":
    for name, text in draw_all().items():
        (IMAGES / name).write_text(text, encoding="utf-8")
        print(f"docs/img/{name}")

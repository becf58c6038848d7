"""Draws the pictures of README and documentation that show what rules do: `make drawings`.

Every bar is what `tidelog` answers for the rule beside it, so that no picture says something else than the program.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import escape

import tidelog as tl

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "img"

GIVEN, DERIVED, MIDDLE, LOOK = "#0072b2", "#d55e00", "#009e73", "#f0e442"
INK, PALE = "#24292f", "#d0d7de"
LEFT, TOP, ROW = 268, 26, 34


@dataclass(frozen=True)
class Line:
    """One row of a picture: what is written before it, and when it holds."""

    label: str
    intervals: tuple[tl.Interval, ...]
    colour: str


@dataclass(frozen=True)
class Look:
    """The times that an operator looks at from time `at`."""

    at: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Picture:
    """A rule over facts; `shown` are the predicates to draw, each with what is written before its row."""

    name: str
    title: str
    rules: str
    facts: str
    shown: tuple[tuple[str, str, str], ...]
    look: Look | None
    until: int = 12


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


def operator(picture: Picture) -> str:
    lines = holding(picture.rules, tl.Dataset.parse(picture.facts), picture.shown, picture.until)
    return drawing(
        picture.title, lines, 0, picture.until, [(t, str(t)) for t in range(picture.until + 1)], picture.look
    )


def holding(
    rules: str, data: tl.Dataset, shown: Iterable[tuple[str, str, str]], until: Fraction | int
) -> tuple[Line, ...]:
    model = tl.materialise(
        tl.Program.parse(rules), data, query=[predicate for predicate, _, _ in shown], between=(0, until)
    )
    found: dict[str, list[tl.Interval]] = {}
    for fact in model:
        found.setdefault(fact.predicate, []).append(fact.interval)
    return tuple(Line(label, tuple(found.get(predicate, ())), colour) for predicate, label, colour in shown)


def drawing(
    title: str,
    lines: Sequence[Line],
    begin: float,
    end: float,
    ticks: Sequence[tuple[float, str]],
    look: Look | None = None,
) -> str:
    """Rows of bars over one time axis. An open end is an empty circle, a closed one a full one, as in textbooks."""
    width, height = 760, TOP + ROW * len(lines) + 46

    def x(t: float) -> float:
        return LEFT + (t - begin) / (end - begin) * (width - LEFT - 30)

    parts = []
    bottom = TOP + ROW * len(lines) + 4
    if look is not None:
        band = f'x="{x(look.lo):.1f}" y="{TOP}" width="{x(look.hi) - x(look.lo):.1f}" height="{bottom - TOP}"'
        parts.append(f'<rect {band} fill="{LOOK}" fill-opacity="0.35"/>')
        parts.append(_line(x(look.at), TOP, x(look.at), bottom, INK, 'stroke-dasharray="3 3"'))
        parts.append(_text(x(look.at), TOP - 8, "seen from here", "middle", 11))
    for t, label in ticks:
        parts.append(_line(x(t), bottom, x(t), bottom + 5, INK))
        parts.append(_text(x(t), bottom + 18, label, "middle", 11))
    parts.append(_line(x(begin), bottom, x(end), bottom, INK))
    for number, line in enumerate(lines):
        y = TOP + ROW * number + ROW / 2
        parts.append(_text(LEFT - 18, y + 4, line.label, "end", 13, mono=True))
        parts.append(_line(x(begin), y, x(end), y, PALE))
        parts += [_bar(x, y, interval, line.colour) for interval in line.intervals]
    return _svg(title, width, height, parts)


def _bar(x: Callable[[float], float], y: float, interval: tl.Interval, colour: str) -> str:
    lo, hi = x(float(interval.lo)), x(float(interval.hi))
    bar = f'<line x1="{lo:.1f}" y1="{y}" x2="{hi:.1f}" y2="{y}" stroke="{colour}" stroke-width="7"/>'
    style = f'stroke="{colour}" stroke-width="2"'
    ends = [
        f'<circle cx="{at:.1f}" cy="{y}" r="5" fill="{colour if closed else "#ffffff"}" {style}/>'
        for at, closed in ((lo, interval.lo_closed), (hi, interval.hi_closed))
    ]
    return bar + "".join(ends)


def readings() -> str:
    """The picture of the README: readings of two turbines, what they mean by the rules, and the answer."""
    folder = ROOT / "examples" / "turbines"
    data, rules = tl.Dataset.load(folder / "Reading.csv"), (folder / "overheated.dmtl").read_text(encoding="utf-8")
    with (folder / "Reading.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["turbine"], float(row["celsius"]), row["time"]) for row in csv.DictReader(file)]
    seconds = {time: number * 10 for number, time in enumerate(sorted({time for _, _, time in rows}))}
    first = min(fact.interval.lo for fact in _facts(data))
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
                    since = fact.interval
                    moved = tl.Interval(since.lo - first, since.hi - first, since.lo_closed, since.hi_closed)
                    parts.append(_bar(x, row, moved, colour))
    bottom = 34 + 2 * plot + gap + 68
    parts.append(_line(x(0), bottom, x(end), bottom, INK))
    for time, second in seconds.items():
        parts.append(_line(x(second), bottom, x(second), bottom + 5, INK))
        parts.append(_text(x(second), bottom + 18, time[11:19], "middle", 11))
    return _svg(
        "Readings of two turbines; the first is overheated from 10:00:40 to 10:01:00", width, bottom + 30, parts
    )


def _facts(data: tl.Dataset) -> Iterable[tl.Fact]:
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


def drawings() -> dict[str, str]:
    """File names under `docs/img`, and what belongs in them."""
    return {"readings.svg": readings(), **{f"{picture.name}.svg": operator(picture) for picture in OPERATORS}}


if __name__ == "__main__":
    for name, text in drawings().items():
        (IMAGES / name).write_text(text, encoding="utf-8")
        print(f"docs/img/{name}")

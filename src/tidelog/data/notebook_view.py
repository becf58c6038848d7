"""Facts in notebooks: a small timeline and a table, without scripts.

An interval is a bar with a filled dot at a closed end, a hollow dot at an open end, and an arrow where it goes on for
ever; a point is a diamond. If there are many facts, the first ones are shown, with a note how many follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from html import escape
from itertools import islice

from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.language.wording import plural
from tidelog.timeline.interval import INF, Interval, format_time

#: How many atoms the timeline shows, and how many facts the table.
_LINES, _FACTS = 20, 50
#: Pixels.
_ROW, _LEFT, _WIDTH, _LETTER = 20, 8, 720, 7
_COLORS = ("#3a78bd", "#c8602f", "#3f9159", "#8f63c4", "#a9761f", "#23929c", "#c24d8b", "#77818d")


def facts_to_html(facts: Iterable[Fact], count: int, *, iso: bool = False, more: Sequence[str] = ()) -> str:
    """Render the first of `count` facts as HTML, with the lines of `more` below them.

    >>> html = facts_to_html([Fact("P", ("<a>",), Interval.point(Fraction(3)))], 1)
    >>> "&lt;a&gt;" in html, "<a>" in html
    (True, False)
    """
    first = list(islice(facts, _FACTS))
    cells = [_format_row(fact, iso) for fact in first]
    heads = "".join(f"<th>{name}</th>" for name in ("atom", "from", "to"))
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    rest = [f"and {plural(count - len(first), 'more fact')}"] if count > len(first) else []
    notes = "".join(f"<div>{escape(line)}</div>" for line in (*rest, *more[:_FACTS]))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>" if first else ""
    empty = "" if first or more else "<div>no facts</div>"
    return f'<div class="tidelog">{_render_timeline(first, iso)}{table}{notes}{empty}</div>'


def _format_row(fact: Fact, iso: bool) -> tuple[str, str, str]:
    interval = fact.interval
    left = _format_time(interval.lo, iso) + ("" if interval.lo_closed or interval.lo == -INF else " (excluded)")
    right = _format_time(interval.hi, iso) + ("" if interval.hi_closed or interval.hi == INF else " (excluded)")
    return _format_atom(fact), left, right


def _format_atom(fact: Fact) -> str:
    return format_fact(fact).rpartition("@")[0]


def _format_time(time: Fraction | float, iso: bool) -> str:
    if isinstance(time, float):
        return format_time(time)
    return format_fact(Fact("", (), Interval.point(time)), iso)[1:]


def _render_timeline(facts: Sequence[Fact], iso: bool) -> str:
    ends = [end for fact in facts for end in (fact.interval.lo, fact.interval.hi) if isinstance(end, Fraction)]
    lines: dict[str, list[Fact]] = {}
    for fact in facts:
        lines.setdefault(_format_atom(fact), []).append(fact)
    if not ends:
        return ""
    names = list(lines)[:_LINES]
    room = min(max(map(len, names)), 32) * _LETTER + 3 * _LEFT
    first, last = min(ends), max(ends)
    length = last - first or Fraction(1)

    def x(time: Fraction) -> float:
        return round(room + 10 + float((time - first) / length) * (_WIDTH - room - 40), 1)

    hue_of = {name: number for number, name in enumerate(dict.fromkeys(fact.predicate for fact in facts))}
    parts = []
    for number, name in enumerate(names):
        y = number * _ROW + _ROW / 2
        short = name if len(name) <= 32 else name[:31] + "…"
        parts.append(f'<text x="{_LEFT}" y="{y + 4}" fill="currentColor">{escape(short)}</text>')
        color = _COLORS[hue_of[lines[name][0].predicate] % len(_COLORS)]
        parts += [_render_bar(fact, x, y, room, color, iso) for fact in lines[name]]
    y = len(names) * _ROW + 14
    for time, anchor in ((first, "start"), (last, "end"))[: 1 if first == last else 2]:
        label = escape(_format_time(time, iso))
        parts.append(f'<text x="{x(time)}" y="{y}" text-anchor="{anchor}" fill="currentColor">{label}</text>')
    style = "font:12px ui-monospace,Menlo,Consolas,monospace;max-width:100%"
    label = f"Timeline of {len(names)} atoms from {_format_time(first, iso)} to {_format_time(last, iso)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" width="{_WIDTH}" '
        f'height="{y + 8}" viewBox="0 0 {_WIDTH} {y + 8}" style="{style}">{"".join(parts)}</svg>'
    )


def _render_bar(fact: Fact, x: Callable[[Fraction], float], y: float, room: int, color: str, iso: bool) -> str:
    lo, hi = fact.interval.lo, fact.interval.hi
    title = f"<title>{escape(format_fact(fact, iso))}</title>"
    if isinstance(lo, Fraction) and lo == hi:
        at = x(lo)
        points = f"{at},{y - 6} {at + 6},{y} {at},{y + 6} {at - 6},{y}"
        return f'<polygon points="{points}" fill="{color}">{title}</polygon>'
    left = x(lo) if isinstance(lo, Fraction) else float(room)
    right = x(hi) if isinstance(hi, Fraction) else _WIDTH - 4.0
    width = round(max(right - left, 1), 1)
    shapes = [f'<rect x="{left}" y="{y - 4}" width="{width}" height="8" fill="{color}">{title}</rect>']
    for end, at, closed, way in ((lo, left, fact.interval.lo_closed, -1), (hi, right, fact.interval.hi_closed, 1)):
        if isinstance(end, float):
            points = f"{at + 4 * way},{y} {at - 6 * way},{y - 8} {at - 6 * way},{y + 8}"
            shapes.append(f'<polygon points="{points}" fill="{color}"/>')
        else:
            fill = color if closed else "#fff"
            shapes.append(f'<circle cx="{at}" cy="{y}" r="4" fill="{fill}" stroke="{color}" stroke-width="1.5"/>')
    return "".join(shapes)


class FactList(list[Fact]):
    """A list of facts that a notebook shows as a timeline and a table; `iso` prints times as dates."""

    def __init__(self, facts: Iterable[Fact] = (), iso: bool = False) -> None:
        super().__init__(facts)
        self._iso = iso

    def _repr_html_(self) -> str:
        return facts_to_html(self, len(self), iso=self._iso)

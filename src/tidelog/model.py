"""The answer of batch reasoning: what holds, once and for ever after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidelog.data.columns import Relation
from tidelog.engine.extent import Extent
from tidelog.engine.repeats import Repetition, divided
from tidelog.language.facts import format_fact
from tidelog.language.syntax import Fact
from tidelog.language.times import format_iso
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols
    from tidelog.engine.store import Rows


@dataclass(frozen=True, slots=True)
class Repeat:
    """A fact that comes again every so often: from `start` on, or (`before`) at all times before `start`."""

    fact: Fact
    every: Fraction
    start: Fraction
    before: bool = False

    def __str__(self) -> str:
        return self.text()

    def text(self, iso: bool = False) -> str:
        """The line that `tidelog materialise` prints."""
        start = format_iso(self.start) if iso else format_time(self.start)
        word = "before" if self.before else "from"
        return f"% repeats every {format_time(self.every)} {word} {start}: {format_fact(self.fact, iso)}"


class Model:
    """The facts that hold, as maximal intervals, sorted by predicate, arguments and time.

    Iterating gives what comes once; `repeats` what comes again for ever.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("A(X) :- Diamondminus[3,3] A(X).")
    >>> model = tl.materialise(program, tl.Dataset.parse("A(a)@[17,18]"))
    >>> [str(repeat) for repeat in model.repeats]
    ['% repeats every 3 from 17: A(a)@[17,18]']
    """

    def __init__(self, extents: dict[str, Extent], grid: Grid, symbols: Symbols, dates: bool) -> None:
        self._extents = extents
        self._grid = grid
        self._symbols = symbols
        self._dates = dates

    @cached_property
    def _divided(self) -> dict[str, tuple[Rows, list[Repetition]]]:
        return {name: divided(extent, self._grid.tick) for name, extent in sorted(self._extents.items())}

    def __len__(self) -> int:
        return sum(len(rows) for rows, _ in self._divided.values())

    def __iter__(self) -> Iterator[Fact]:
        ranks = self._symbols.ranks()
        for name, (rows, _) in self._divided.items():
            keys = [(*(int(ranks[a]) for a in args), int(lo)) for args, lo in zip(rows.args.T, rows.lo, strict=True)]
            for row in sorted(range(len(rows)), key=keys.__getitem__):
                args = tuple(self._symbols.value(int(a)) for a in rows.args[:, row])
                yield Fact(name, args, self._grid.interval(int(rows.lo[row]), int(rows.hi[row])))

    def relations(self) -> Iterator[tuple[Relation, int]]:
        """What comes once, as columns, each with the denominator of its ticks."""
        for name, (rows, _) in self._divided.items():
            yield relation_of(name, rows, self._grid), self._grid.denominator

    @property
    def symbols(self) -> Symbols:
        """The dictionary of the constants in `relations`."""
        return self._symbols

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """What repeats for ever, sorted by predicate, arguments and time."""
        ranks = self._symbols.ranks()
        found: list[Repeat] = []
        for name, (_, repetitions) in self._divided.items():
            for r in sorted(repetitions, key=lambda r: ([int(ranks[a]) for a in r.args], not r.before, r.part)):
                fact = Fact(name, tuple(self._symbols.value(a) for a in r.args), self._grid.interval(*r.part))
                found.append(Repeat(fact, self._grid.time(r.every), self._grid.time(r.at), r.before))
        return tuple(found)

    def render(self, fmt: str = "text", iso: bool | None = None) -> bytes:
        """All of it as text (`fmt="text"`, or `"jsonl"`); dates as the data had them unless told."""
        from tidelog.data.render import render_rows

        iso = self._dates if iso is None else iso
        parts = [
            render_rows(
                self._symbols, name, rows.args, rows.lo, rows.hi, self._grid.denominator, self._grid.timeline, iso, fmt
            )
            for name, (rows, _) in self._divided.items()
        ]
        for repeat in self.repeats:
            line = repeat.text(iso) if fmt == "text" else json.dumps(_as_object(repeat, iso), ensure_ascii=False)
            parts.append(line.encode() + b"\n")
        return b"".join(parts)

    def _repr_html_(self) -> str:
        from tidelog.data.notebook import facts_html

        again = [repeat.text(self._dates) for repeat in self.repeats]
        return facts_html(self, len(self), iso=self._dates, more=again)

    def __repr__(self) -> str:
        return f"<Model of {len(self)} facts, {len(self.repeats)} that repeat>"


def relation_of(predicate: str, rows: Rows, grid: Grid) -> Relation:
    """Rows of an engine as a relation, whose ends are on the doubled grid whatever the timeline."""
    lo, hi = rows.lo, rows.hi
    if not grid.dense:
        lo = np.where(lo == NEG_INF, NEG_INF, 2 * lo)
        hi = np.where(hi == POS_INF, POS_INF, 2 * hi)
    return Relation(predicate, len(rows.args), rows.args.astype(np.int32), lo, hi)


def _as_object(repeat: Repeat, iso: bool) -> dict[str, str]:
    interval = repeat.fact.interval
    atom, _, _ = format_fact(repeat.fact).rpartition("@")
    closed = {(True, True): "both", (True, False): "left", (False, True): "right", (False, False): "neither"}

    def shown(t: Fraction | float) -> str:
        return format_iso(t) if iso and isinstance(t, Fraction) else format_time(t)

    return {
        "fact": atom,
        "start": shown(interval.lo),
        "end": shown(interval.hi),
        "closed": closed[interval.lo_closed, interval.hi_closed],
        "every": format_time(repeat.every),
        "before" if repeat.before else "from": shown(repeat.start),
    }

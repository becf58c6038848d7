"""Why intervals are missing from a timeline, as columns: per gap of an atom, the condition at which each rule fails.

A gap is cut where the explanation changes, so that one explanation is right for every time of a part. The parts of
query predicates come first; beyond a limit of parts there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.language.fact_text import FactStyle
from tidelog.page.packed_columns import pack_column
from tidelog.page.timeline_data import Spans, Timeline, pack_spans
from tidelog.page.written_durations import find_written_durations, write_durations
from tidelog.page.written_rules import list_written_rules
from tidelog.proofs.why_not import explain_absence, split_absence
from tidelog.proofs.why_not_text import describe_blocked
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Time
from tidelog.timeline.time_sets import Pair

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.language.syntax import Value
    from tidelog.proofs.explained_model import ExplainedModel
    from tidelog.proofs.formula_evaluation import GroundAtom
    from tidelog.proofs.why_not import BlockedRule

#: The most parts of gaps on a page, and of one atom.
GAPS = 2_000
_MOST_PER_ATOM = 100
#: How far gaps are explained beyond the first and the last time of the timeline, as a share of the time between.
_BEYOND = Fraction(1, 20)


@dataclass
class _Columns:
    """The parts found so far: their atom and ends, and the rules that fail, with the numbers of their texts."""

    parts: list[tuple[int, int, int]] = field(default_factory=list)
    #: For each part, its rules; for each rule its number and the numbers of its lines.
    rules: list[list[tuple[int, list[int]]]] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)

    def number_text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def collect_gaps(
    program: Program,
    model: ExplainedModel,
    timeline: Timeline,
    query: Sequence[str],
    until: Time = INF,
    limit: int = GAPS,
) -> dict[str, Any]:
    """Collect why derived atoms do not hold where they do not, for at most `limit` parts of their gaps.

    Atoms of the predicates `query` come first. Nothing is known after `until`.
    """
    written = list_written_rules(program)
    spellings = [find_written_durations(text) for text in written.texts]
    every = {length: text for spelling in reversed(spellings) for length, text in spelling.items()}
    style = FactStyle(timeline.dates, program.time_arguments)
    columns = _Columns()
    for atom, ground, part in islice(_find_parts(model, timeline, query, until), limit):
        described = []
        for blocked in explain_absence(model, ground, part, depth=1).blocked:
            rule = written.numbers[blocked.rule]
            lines = _describe(blocked, style, spellings[rule], every)
            described.append((rule, [columns.number_text(line) for line in lines]))
        columns.parts.append((atom, *_to_page(model, timeline, part)))
        columns.rules.append(described)
    return _pack(columns)


def _find_parts(
    model: ExplainedModel, timeline: Timeline, query: Sequence[str], until: Time
) -> Iterator[tuple[int, GroundAtom, Pair]]:
    """Find the parts of the gaps of all derived atoms, with the number of the atom."""
    shown = _find_range(model, timeline, until)
    if shown is None:
        return
    firsts = timeline.first_args()
    derived = [number for number, (name, _) in enumerate(timeline.predicates) if name in model.rules]
    for predicate in sorted(derived, key=lambda number: timeline.predicates[number][0] not in query):
        for atom in np.flatnonzero(timeline.atoms == predicate):
            args: list[Value] = [timeline.values[c] for c in timeline.args[firsts[atom] : firsts[atom + 1]]]
            ground = timeline.predicates[predicate][0], tuple(map(model.decoder.symbols.intern, args))
            parts = (part for gap in model.missing_times(ground, shown) for part in split_absence(model, ground, gap))
            for part in islice(parts, _MOST_PER_ATOM):
                yield int(atom), ground, part


def _find_range(model: ExplainedModel, timeline: Timeline, until: Time) -> Pair | None:
    """Return the times that the timeline shows, and some beyond, on the grid of the model."""
    rows = timeline.rows
    ends = np.concatenate([rows.lo[rows.lo != NEG_INF], rows.hi[rows.hi != POS_INF]])
    if not len(ends):
        return None
    first, last = (Fraction(int(end), 2 * timeline.denominator) for end in (ends.min(), ends.max()))
    room = max((last - first) * _BEYOND, Fraction(1))
    tick = model.grid.denominator * model.grid.tick
    lo = max(floor((first - room) * tick), model.core[0])
    hi = min(ceil((last + room) * tick), floor(until * tick) if until != INF else POS_INF, model.core[1])
    return (lo, hi) if lo <= hi else None


def _describe(
    blocked: BlockedRule, style: FactStyle, written: dict[Fraction, str], every: dict[Fraction, str]
) -> Iterable[str]:
    """Yield the lines about a rule: the condition that fails, those that hold, and the lines below it."""
    failing, branches = describe_blocked(blocked, style)
    yield write_durations(failing, written)
    for text in blocked.satisfied:
        yield f"{write_durations(text, written)} holds"
    for first, *rest in branches:
        yield write_durations(first, written)
        yield from (write_durations(line, every) for line in rest)


def _to_page(model: ExplainedModel, timeline: Timeline, part: Pair) -> Pair:
    """Return a part of a gap on the doubled grid of the page. On the integers it reaches to its neighbours."""
    interval = model.grid.to_interval(*part)
    grid = Grid(True, timeline.denominator)
    lo, hi = (_to_position(end, timeline.denominator) for end in (interval.lo, interval.hi))
    if not model.grid.dense:
        return lo - 1, hi + 1
    pair = grid.to_pair(interval) if lo % 2 == hi % 2 == 0 else None
    return pair or (lo, hi)


def _to_position(time: Time, denominator: int) -> int:
    ticks = Fraction(time) * denominator
    return 2 * int(ticks) if ticks.denominator == 1 else 2 * floor(ticks) + 1


def _pack(columns: _Columns) -> dict[str, Any]:
    order = sorted(range(len(columns.parts)), key=columns.parts.__getitem__)
    of, lo, hi = (np.array([columns.parts[place][end] for place in order], np.int64) for end in range(3))
    rules = [columns.rules[place] for place in order]
    lines = [line for described in rules for line in described]
    return {
        "parts": pack_spans(Spans(of, lo, hi), np.zeros(len(of), np.int64)),
        "rules": pack_column(np.cumsum([0, *map(len, rules)])),
        "rule": pack_column([rule for rule, _ in lines]),
        "lines": pack_column(np.cumsum([0, *(len(numbers) for _, numbers in lines)])),
        "line": pack_column([number for _, numbers in lines for number in numbers]),
        "texts": list(columns.texts),
    }

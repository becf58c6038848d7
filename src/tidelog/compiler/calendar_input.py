"""Generate the facts of calendar predicates that a run can read: as many as its data and its questions reach.

What depends on data has a bounded extent, and so do the parts of the calendar that it reads. A predicate such as
`Weekend :- calendar:weekday("UTC", sunday).` holds for ever: a model is then cut to the range of the data, or to the
range that was asked for, and the calendar is generated as far as answers in that range depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING

from tidelog.compiler.calendar_demand import EVER, Span, find_demand, find_extents, intersect, join_spans
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import Pair
from tidelog.compiler.prepare_facts import to_timeline
from tidelog.data.calendar_facts import build_calendar
from tidelog.data.relation import Relation
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import is_calendar
from tidelog.language.hidden_predicates import is_hidden, is_violation
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Rule
from tidelog.language.validation import rule_atoms
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


@dataclass(frozen=True)
class CalendarInput:
    """The facts of the calendar that a run reads.

    The answers of the predicates in `endless` have to be cut to the range `cut`: nothing is known outside of it.
    """

    facts: Dataset
    endless: frozenset[str] = frozenset()
    cut: Pair = EVER


def add_calendar(compiled: CompiledProgram, data: Dataset, span: Pair | None, near: Span = None) -> CalendarInput:
    """Generate the calendar for data on the grid of a program, and answers in `span`, if given.

    `near` is a range that is of interest besides that of the data. Raise TL315 if no bounded part of the calendar is
    enough, or if times are not dates.
    """
    whole = join_spans([_find_range(relation) for relation in data.relations.values()])
    require_dates(data.dates or whole is None, compiled.source.rules)
    given = {
        relation.predicate: extent
        for key, relation in data.relations.items()
        if compiled.arities.get(key[0]) == key[1] and (extent := find_extent(relation, compiled.grid)) is not None
    }
    extents = find_extents(compiled, given)
    asked = dict.fromkeys((*compiled.target.queries, *filter(is_violation, compiled.names)), span or EVER)
    demand = _find_calendar_demand(compiled, extents, asked)
    if _is_finite(demand):
        return CalendarInput(generate(compiled, demand))
    if whole is not None and not compiled.grid.dense:
        whole = whole[0] // 2, whole[1] // 2
    cut = _bound(span, join_spans([whole, near]))
    if cut is None:
        raise _unbounded_error(compiled, extents, "there are no times in the data")
    endless = [
        name for name, pair in asked.items() if not _is_finite(_find_calendar_demand(compiled, extents, {name: pair}))
    ]
    demand = _find_calendar_demand(compiled, extents, {**asked, **dict.fromkeys(endless, cut)})
    if not _is_finite(demand):
        raise _unbounded_error(compiled, extents, "rules read it at all times, however short the range asked for is")
    return CalendarInput(generate(compiled, demand), frozenset(endless), cut)


def generate(compiled: CompiledProgram, demand: Span, after: int | None = None) -> Dataset:
    """Generate the facts of the calendar predicates of a program that hold in a range, on the grid of the program.

    With `after`, a time in seconds, only those that begin later.
    """
    from tidelog.data.dataset import Dataset

    calendars = {name: zones for name, zones in compiled.source.calendars.items() if name in compiled.arities}
    if demand is None or not calendars:
        return Dataset()
    first, last = floor(compiled.grid.to_time(demand[0])), ceil(compiled.grid.to_time(demand[1]))
    return build_calendar(calendars, first, last, after).with_denominator(compiled.grid.denominator)


def find_stream_start(compiled: CompiledProgram, first: int, endless: Mapping[str, Pair]) -> tuple[Span, bool]:
    """Return where the calendar of a stream begins, and whether answers before `first` have to be left out.

    No fact begins before `first` but those of the `endless` predicates. The range returned ends nowhere in particular;
    it is None if the query does not read the calendar.
    """
    streamed = {name: (first, POS_INF) for name in compiled.names if not is_hidden(name)}
    heads = {rule.predicate for rule in compiled.rules} | {step.head.predicate for step in compiled.steps}
    extents = find_extents(compiled, {**{n: s for n, s in streamed.items() if n not in heads}, **endless})
    names = [compiled.query, *filter(is_violation, compiled.names)]
    demand = _find_calendar_demand(compiled, extents, dict.fromkeys(names, EVER))
    if demand is None or demand[0] != NEG_INF:
        return demand, False
    demand = _find_calendar_demand(compiled, extents, dict.fromkeys(names, (first, POS_INF)))
    if demand is not None and demand[0] == NEG_INF:
        raise _unbounded_error(compiled, extents, "rules read it from the beginning of time, however late facts begin")
    return demand, True


def require_dates(dates: bool, rules: Iterable[Rule]) -> None:
    """Raise TL315 for the first rule that reads a calendar unless times are dates."""
    if not dates:
        rule, atom = next((rule, atom) for rule in rules for atom in rule_atoms(rule) if is_calendar(atom.predicate))
        raise TidelogError(
            Diagnostic(
                "TL315",
                "rules read a calendar, and the times of the facts are plain numbers",
                atom.place or rule.place,
                help="write times as dates (2026-01-31T10:00:00Z), pass datetimes, or name the unit of numbers "
                'in a schema (unit = "s")',
            )
        )


def find_extent(relation: Relation, grid: Grid) -> Span:
    """Return the times between which facts hold, on a grid."""
    if not len(relation):
        return None
    lo, hi = to_timeline(relation.lo, relation.hi, grid.dense)
    return int(lo.min()), int(hi.max())


def _find_range(relation: Relation) -> Span:
    """Return the first and the last finite end of facts, on the doubled grid, as points of time."""
    ends = [ends[(ends > NEG_INF) & (ends < POS_INF)] for ends in (relation.lo, relation.hi)]
    least, most = (e.min(initial=POS_INF) for e in ends), (e.max(initial=NEG_INF) for e in ends)
    first, last = int(min(least)), int(max(most))
    return (first - (first & 1), last + (last & 1)) if first <= last else None


def _find_calendar_demand(compiled: CompiledProgram, extents: Mapping[str, Span], asked: Mapping[str, Pair]) -> Span:
    demand = find_demand(compiled, extents, asked)
    return join_spans(demand[name] for name in compiled.names if is_calendar(name))


def _is_finite(pair: Span) -> bool:
    return pair is None or (pair[0] != NEG_INF and pair[1] != POS_INF)


def _bound(span: Pair | None, by: Span) -> Span:
    """Return a range, its infinite ends replaced by those of another."""
    if span is None or by is None:
        return by if span is None else span if _is_finite(span) else None
    lo = by[0] if span[0] == NEG_INF else span[0]
    hi = by[1] if span[1] == POS_INF else span[1]
    return (lo, hi) if lo <= hi else intersect(span, by)


def _unbounded_error(compiled: CompiledProgram, extents: Mapping[str, Span], reason: str) -> TidelogError:
    """Build the error for a calendar that is needed for all times, with a rule that reads it."""
    rule = next(
        rule
        for rule in compiled.source.rules
        if any(is_calendar(atom.predicate) for atom in rule_atoms(rule))
        and ((head := head_atom(rule)) is None or head.predicate not in extents or extents[head.predicate] is not None)
    )
    name = next(atom.predicate for atom in rule_atoms(rule) if is_calendar(atom.predicate))
    return TidelogError(
        Diagnostic(
            "TL315",
            f"{name} would be needed for all times: {reason}",
            rule.place,
            help="ask for a range of time with --between LO,HI, give operators over what reads the calendar finite "
            "ranges, or add a literal about data to the rule",
        )
    )

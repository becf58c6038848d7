"""Batch reasoning over a program and a dataset: everything that holds, and whether one fact does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.compiler.calendar_demand import intersect
from tidelog.compiler.calendar_input import CalendarInput, add_calendar
from tidelog.compiler.compiled_program import CompiledProgram, Target
from tidelog.compiler.passes import compile_program
from tidelog.compiler.prepare_facts import InputFormat, needed_denominator, to_timeline, with_program_facts
from tidelog.compiler.undecided import describe_undecided
from tidelog.compiler.validate import choose_timeline
from tidelog.compiler.violations import describe_violation
from tidelog.data.data_frames import DataLike, SchemaLike, find_column_names, to_dataset, to_schema
from tidelog.data.input_warnings import warn_of_tables
from tidelog.engine.batch_problem import Problem, Unsettled
from tidelog.engine.bucket_threads import solve_in_buckets
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.engine.fixpoint import solve
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.goals.focused_problem import focus, select_answers
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program, require_program
from tidelog.language.queries import Query, parse_query
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact
from tidelog.language.time_like import TimeLike, to_finite_time, to_time
from tidelog.model import Answer, Model
from tidelog.numeric.refinement import FinerGridNeeded
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import INF, Interval, TimelineName

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.data.relation import Relation


T = TypeVar("T")

_ONE_OF_BOTH = "use `between` to cut answers, and `until` to stop time as at the end of a stream"


def materialise(
    program: Program,
    data: DataLike,
    *,
    query: str | Iterable[str] | None = None,
    between: tuple[TimeLike, TimeLike] | None = None,
    until: TimeLike | None = None,
    timeline: TimelineName | None = None,
    schema: SchemaLike | None = None,
) -> Model:
    """Return all facts that hold, given or derived: of every predicate in a head, or of the queries.

    A query is a predicate, or an atom as in rules: `Hot(t1, X)` asks for the facts that fit it, and only what can
    matter for these is computed.

    Without `between`, a model goes beyond the last fact. With `until`, time stops there, as it does for a stream: facts
    that begin later are ignored, and facts that still hold then end there.

    `data` is a dataset, or a dataframe for each predicate, `{"Reading": frame}`; `schema`, or the path of one, says
    what the columns of dataframes mean, and names the columns of the model's tables.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> print(tl.materialise(program, tl.Dataset.parse("High(t1)@3")), end="")
    Hot(t1)@[3,8]
    >>> len(tl.materialise(program, tl.Dataset.parse("High(t1)@3"), query="Hot(t2)"))
    0
    """
    require_program(program)
    schema, given = to_schema(schema), data
    data = to_dataset(data, schema)
    columns = find_column_names(data, schema)
    queries = read_queries(program, data, query)
    names = tuple(dict.fromkeys(query.predicate for query in queries))
    if data is not given:
        warn_of_tables(program, data, None if query is None else names)
    if until is not None:
        if between is not None:
            raise TidelogError(Diagnostic("TL305", "give either a range of time or its end", help=_ONE_OF_BOTH))
        data, between = data.until(to_finite_time(until)), (-INF, until)
    span = parse_span(between)
    run, extents = solve_run(
        lambda finer: prepare_run(program, data, names, timeline=timeline, span=span, goals=queries, denominator=finer),
        lambda run: run.solve_in_parts(stops=until is not None),
    )
    answers = {
        name: [
            select_answers(extent, [query for query in queries if query.predicate == name], run.data.symbols)
            for extent in extents[name]
        ]
        for name in names
    }
    if run.span is not None:
        lo, hi = run.span
        answers = {name: [extent.within(lo, hi) for extent in parts] for name, parts in answers.items()}
    times = program.time_arguments if run.data.dates else None
    model = Model(answers, run.compiled.grid, run.data.symbols, run.data.dates, times, columns)
    calendar = run.calendar
    if calendar is not None and calendar.cut != run.span:
        model.cut = {name: run.compiled.grid.to_interval(*calendar.cut) for name in names if name in calendar.endless}
    return model


def entails(
    program: Program,
    data: DataLike,
    fact: str | Fact,
    *,
    timeline: TimelineName | None = None,
    schema: SchemaLike | None = None,
) -> Answer:
    """Decide whether a fact holds at every point of its interval; `data` and `schema` are those of `materialise`.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("A :- Diamondminus[2,2] A.")
    >>> tl.entails(program, tl.Dataset.parse("A@0"), "A@1000000")
    <Answer.YES: 'yes'>
    """
    return decide(program, data, fact, timeline=timeline, schema=schema)[0]


def decide(
    program: Program,
    data: DataLike,
    fact: str | Fact,
    *,
    timeline: TimelineName | None = None,
    schema: SchemaLike | None = None,
) -> tuple[Answer, Diagnostic | None]:
    """Decide a fact as `entails` does; where the answer is unknown, say why."""
    require_program(program)
    fact, given = program.to_fact(fact), data
    data = to_dataset(data, schema)
    choose_queries(program, data, fact.predicate)
    if data is not given:
        warn_of_tables(program, data, [fact.predicate], level=4)
    asked, names = fact, (fact.predicate,)
    run, answer = solve_run(
        lambda finer: prepare_run(
            program, data, names, timeline=timeline, span=asked.interval, goals=(asked,), denominator=finer
        ),
        lambda run: _answer(run, asked),
    )
    if isinstance(answer, Answer):
        return answer, None
    if run.calendar is not None and fact.predicate in run.calendar.endless:
        message = f"{fact.predicate} follows from a calendar, which is not known for all times"
        return Answer.UNKNOWN, Diagnostic("TL315", message, help="ask about a finite range of time")
    return Answer.UNKNOWN, describe_undecided(run.compiled, answer.predicates).diagnostics[0]


def _answer(run: BatchRun, fact: Fact) -> Answer | Unsettled:
    """Return the answer, or what could not be settled where that is unknown."""
    try:
        extents = solve(run.problem, run.span)
    except Unsettled as unsettled:
        if run.whole is not None:
            raise
        known = unsettled.known.get(fact.predicate)
        if known is not None and _is_covered(run, Extent(known), fact):
            return Answer.YES
        return Answer.NO if _fails_near(run, fact) else unsettled
    run.require_consistent(extents)
    calendar = run.calendar
    if calendar is not None and fact.predicate in calendar.endless and calendar.cut != run.span:
        # A question about all times, of what follows from a calendar: only a part of the answer is known.
        part = replace(run, span=intersect(run.span, calendar.cut) or (0, -1))
        return Unsettled((fact.predicate,), {}) if _is_covered(part, extents[fact.predicate], fact) else Answer.NO
    return Answer.YES if _is_covered(run, extents[fact.predicate], fact) else Answer.NO


def _fails_near(run: BatchRun, fact: Fact) -> bool:
    """Return whether a fact with a long interval does not even hold for a short time, which is easier to decide."""
    assert run.span is not None
    lo, hi = run.span
    length = 2 * sum(part.reach for part in run.compiled.components)
    if hi - lo <= length:
        return False
    start = lo if lo > NEG_INF else min(hi, length) - length
    part = replace(run, span=(start, start + length))
    try:
        return not _is_covered(part, solve(part.problem, part.span)[fact.predicate], fact)
    except Unsettled:
        return False


class _DependsOnAllFacts(Exception):
    """The form of an answer depends on all facts: an atom that repeats at both ends of time has no first repetition."""


@dataclass(frozen=True)
class BatchRun:
    """A compiled program and its data on one grid; `span` is the part of time that is asked for.

    If rules read a `calendar`, what follows from it without data is only known in a range. The problem may have only
    what the question needs. Then `whole` is the problem with everything.
    """

    data: Dataset
    problem: Problem
    span: tuple[int, int] | None
    calendar: CalendarInput | None = None
    whole: Problem | None = None

    @property
    def compiled(self) -> CompiledProgram:
        """The program as the engine takes it."""
        return self.problem.compiled

    def solve(self, stops: bool = False) -> dict[str, Extent]:
        """Return the extents of the queries; raise if they cannot be settled or a constraint is violated.

        If time `stops` at the end of the span, constraints that are violated only later do not count.
        """
        try:
            extents = solve(self.problem, self.span)
        except Unsettled as unsettled:
            raise describe_undecided(self.compiled, unsettled.predicates) from None
        if stops and self.span is not None:
            extents = {name: extent.within(*self.span) for name, extent in extents.items()}
        if self.calendar is not None:
            extents |= {name: extents[name].within(*self.calendar.cut) for name in self.calendar.endless}
        self.require_consistent(extents)
        return extents

    def solve_in_parts(self, stops: bool = False) -> dict[str, Sequence[Extent]]:
        """Do what `solve` does, in several threads if that is worthwhile; each may give an extent of a predicate."""
        # Buckets are made of the rules as written, without the guards that keep a question selective.
        guarded = self.whole is not None and self.whole.compiled is not self.compiled
        endless = self.calendar is not None and bool(self.calendar.endless)
        parts = None if guarded or endless else solve_in_buckets(self.problem, self.span)
        if parts is not None:
            return dict(parts)
        extents = self.solve(stops)
        if self.whole is not None and any(extent.left and extent.right for extent in extents.values()):
            raise _DependsOnAllFacts
        return {name: (extent,) for name, extent in extents.items()}

    def require_consistent(self, extents: dict[str, Extent]) -> None:
        """Raise if a constraint is violated, with the rule, the binding and the time."""
        violated: list[Diagnostic] = []
        for name in self.problem.violations:
            rows = extents[name].rows
            for row in range(min(len(rows), 3)):
                values = [self.data.symbols.value(int(a)) for a in rows.args[:, row]]
                when = self.compiled.grid.to_interval(int(rows.lo[row]), int(rows.hi[row]))
                violated.append(describe_violation(self.compiled, name, values, when))
        if violated:
            raise Inconsistent(violated)


def prepare_run(
    program: Program,
    data: Dataset,
    queries: tuple[str, ...],
    *,
    timeline: TimelineName | None = None,
    span: Interval | None = None,
    goals: Sequence[Fact | Query] = (),
    denominator: int = 1,
    near: Interval | None = None,
) -> BatchRun:
    """Compile a program and bring its data onto the grid, ready for the engine to find the queries.

    With `goals`, the run has only what these need within the span, unless rules read a calendar. Times are multiples of
    `1/denominator`, or finer. `near` is a range of interest besides that of the data.
    """
    expected = InputFormat.of(program, choose_timeline(program, timeline), "batch")
    data = expected.prepare(with_program_facts(program, data), goals)
    asked = [] if span is None else [Fraction(end).denominator for end in (span.lo, span.hi) if abs(end) != INF]
    arities = dict(data.relations.keys())
    asked_for = [Query.of(goal) if isinstance(goal, Fact) else goal for goal in goals]
    for goal in asked_for:
        if goal.terms is not None:
            arities.setdefault(goal.predicate, len(goal.terms))
    denominator = lcm(denominator, needed_denominator(program, data), *asked)
    compiled = compile_program(program, Target("batch", queries, timeline, denominator, arities))
    grid = compiled.grid
    data = data.with_denominator(grid.denominator) if grid.denominator != data.denominator else data
    pair = None if span is None else grid.to_pair(span) or (0, -1)
    calendar = None
    if program.calendars:
        calendar = add_calendar(compiled, data, pair, None if near is None else grid.to_pair(near))
        data = data | calendar.facts
    given = {
        name: _to_rows(data.relations[name, arity], grid.dense)
        for name, arity in compiled.arities.items()
        if (name, arity) in data.relations
    }
    problem = Problem(compiled, given, data.symbols)
    # How far a calendar has to be generated, and where answers are cut for it, depends on all facts.
    focused = focus(problem, asked_for, pair) if goals and calendar is None else problem
    return BatchRun(data, focused, pair, calendar, None if focused is problem else problem)


def solve_run(prepare: Callable[[int], BatchRun], ask: Callable[[BatchRun], T]) -> tuple[BatchRun, T]:
    """Prepare a run and ask it for a result, again on a finer grid as long as computed values need one.

    `prepare` gets the denominator of the grid. Return the run that gave the result, and the result. A run that has only
    what a question needs may fail where the whole does not, and a violated constraint is reported as the whole has it:
    so the whole is asked then.
    """
    denominator = 1
    while True:
        run = prepare(denominator)
        try:
            if run.whole is None:
                return run, ask(run)
            try:
                return run, ask(run)
            except (Unsettled, TidelogError, _DependsOnAllFacts):
                run = replace(run, problem=run.whole, whole=None)
                return run, ask(run)
        except FinerGridNeeded as needed:
            denominator = lcm(denominator, needed.denominator)


def read_queries(program: Program, data: Dataset, query: str | Iterable[str] | None) -> tuple[Query, ...]:
    """Return what is asked for: the queries, or the predicates of all heads where there is none."""
    if query is None:
        return tuple(map(Query, choose_queries(program, data, None)))
    texts = (query,) if isinstance(query, str) else tuple(query)
    queries = tuple(parse_query(program, text) for text in texts)
    choose_queries(program, data, [query.predicate for query in queries])
    return queries


def choose_queries(program: Program, data: Dataset, query: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the queries, or the predicates of all heads where there is none."""
    heads = {head.predicate for rule in program.rules if (head := head_atom(rule)) is not None}
    if query is None:
        return tuple(sorted(name for name in heads if not is_hidden(name)))
    names = (query,) if isinstance(query, str) else tuple(query)
    # The stage of a job may ask for hidden predicates, which it derives for other stages.
    written = [name for name in names if not (is_hidden(name) and name in heads)]
    require_known_predicates(written, known_predicates(program, (predicate for predicate, _ in data.relations)))
    return tuple(dict.fromkeys(names))


def parse_span(between: tuple[TimeLike, TimeLike] | None) -> Interval | None:
    """Return a range of time as an interval; raise if it is empty."""
    if between is None:
        return None
    given: Any = between
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise TidelogError(Diagnostic("TL305", f"{between!r} is not a range of time", help="pass a pair: (0, 10)"))
    lo, hi = (to_time(end) for end in between)
    if lo > hi or lo == INF or hi == -INF:
        raise TidelogError(Diagnostic("TL305", "the range asked for is empty"))
    return Interval(lo, hi, lo != -INF, hi != INF)


def _to_rows(relation: Relation, dense: bool) -> Rows:
    lo, hi = to_timeline(relation.lo, relation.hi, dense)
    rows = Rows(relation.args, lo, hi)
    return rows if dense else rows.where(lo <= hi)


def _is_covered(run: BatchRun, extent: Extent, fact: Fact) -> bool:
    """Return whether the fact's atom holds on all of its interval."""
    assert run.span is not None
    lo, hi = run.span
    if lo > hi:
        return True
    before = len(run.data.symbols)
    ids = [run.data.symbols.intern(value) for value in fact.args]
    if any(number >= before for number in ids):
        return False
    lo, hi = extent.widen(lo, hi)
    rows = extent.within(lo, hi).rows
    mine = np.ones(len(rows), bool)
    for column, number in zip(rows.args, ids, strict=True):
        mine &= column == number
    rows = rows.where(mine)
    return bool(((rows.lo <= lo) & (rows.hi >= hi)).any())

"""Batch reasoning over a program and a dataset: all that holds, and whether a fact does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tidelog.analysis.components import dependencies, head_atom, strata
from tidelog.analysis.flatten import VIOLATION, FlatRule, flatten
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.engine.extent import Extent
from tidelog.engine.fixpoint import Problem, Unsettled, solve
from tidelog.engine.store import Int64s, Rows
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import parse_fact
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Binary, Fact, Formula, Literal, Rule, Unary, Variable
from tidelog.language.times import parse_time
from tidelog.model import Model
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Interval, Time

if TYPE_CHECKING:
    from tidelog.data.columns import Relation
    from tidelog.data.dataset import Dataset
    from tidelog.streaming.answers import Step

#: A time as the Python calls take it.
AnyTime = Fraction | int | float | str


class Answer(Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Inconsistent(TidelogError):
    """Facts violate a constraint, so that nothing can be concluded from them.

    On a stream, `step` is the step that found it, with its answers, where it was not shown before.
    """

    step: Step | None = None


class Undecided(TidelogError):
    """The question was not decided within the bounds of the search."""


def materialise(
    program: Program,
    data: Dataset,
    *,
    query: str | Iterable[str] | None = None,
    between: tuple[AnyTime, AnyTime] | None = None,
    timeline: str | None = None,
) -> Model:
    """All facts that hold, given or derived: of every predicate in a head, or of those asked for.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> print(tl.materialise(program, tl.Dataset.parse("High(t1)@3")).render().decode(), end="")
    Hot(t1)@[3,8]
    """
    names = _predicates(program, data, query)
    stretch = _stretch(between)
    setting = prepared(program, data, names, timeline, stretch)
    try:
        extents = solve(setting.problem, setting.until)
    except Unsettled as unsettled:
        raise undecided(unsettled) from None
    refuse_violations(setting, extents)
    found = {name: extents[name] for name in names}
    if setting.until is not None:
        found = {name: extent.within(*setting.until) for name, extent in found.items()}
    return Model(found, setting.grid, setting.data.symbols, setting.data.dates)


def entails(program: Program, data: Dataset, fact: str | Fact, *, timeline: str | None = None) -> Answer:
    """Whether a fact holds at every point of its interval.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("A :- Diamondminus[2,2] A.")
    >>> tl.entails(program, tl.Dataset.parse("A@0"), "A@1000000")
    <Answer.YES: 'yes'>
    """
    if isinstance(fact, str):
        temporal = program.temporal.temporal if program.temporal else frozenset()
        fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
    _predicates(program, data, fact.predicate)
    setting = prepared(program, data, (fact.predicate,), timeline, fact.interval, fact)
    assert setting.until is not None
    try:
        extents = solve(setting.problem, setting.until)
    except Unsettled as unsettled:
        known = unsettled.known.get(fact.predicate)
        if known is not None and _covers(setting, Extent(known), fact):
            return Answer.YES
        return Answer.UNKNOWN
    refuse_violations(setting, extents)
    return Answer.YES if _covers(setting, extents[fact.predicate], fact) else Answer.NO


@dataclass(frozen=True)
class Setting:
    """A program and its data on one grid, ready for the engine; `until` is the stretch that is asked for."""

    program: Program
    data: Dataset
    grid: Grid
    problem: Problem
    until: tuple[int, int] | None


def _predicates(program: Program, data: Dataset, query: str | Iterable[str] | None) -> tuple[str, ...]:
    """The predicates that are asked for; those of the heads unless told."""
    if query is None:
        heads = (head_atom(rule) for rule in program.rules)
        return tuple(sorted({head.predicate for head in heads if head and not head.predicate.startswith("$")}))
    names = (query,) if isinstance(query, str) else tuple(query)
    require_known(names, known_predicates(program, (predicate for predicate, _ in data.relations)))
    return tuple(dict.fromkeys(names))


def _stretch(between: tuple[AnyTime, AnyTime] | None) -> Interval | None:
    if between is None:
        return None
    lo, hi = (time_of(end) for end in between)
    if lo > hi or lo == INF or hi == -INF:
        raise TidelogError(Diagnostic("TL305", "the stretch asked for is empty", help="write the earlier time first"))
    return Interval(lo, hi, lo != -INF, hi != INF)


def time_of(end: AnyTime) -> Time:
    if isinstance(end, str):
        return parse_time(end)[0]
    return end if isinstance(end, float) and end in (INF, -INF) else Fraction(end)


def prepared(
    program: Program,
    data: Dataset,
    names: tuple[str, ...],
    timeline: str | None,
    stretch: Interval | None,
    fact: Fact | None = None,
) -> Setting:
    """Everything that the engine needs to find the predicates of these names."""
    from tidelog.data.dataset import Dataset

    strata(program.rules)
    dense = timeline_of(program, timeline) == "rational"
    if program.temporal is not None:
        data = data.timed(program.temporal.temporal)
    if program.facts:
        data = data | Dataset.from_facts(program.facts)
    arities = dict(arities_of(program))
    refuse_arities(arities, data, fact)
    fine = [Fraction(end).denominator for end in ends_of(program)]
    asked = [] if stretch is None else [Fraction(e).denominator for e in (stretch.lo, stretch.hi) if abs(e) != INF]
    if not dense:
        refuse_fractions(program, data)
        asked = []
    grid = Grid(dense, lcm(data.denominator, *fine, *asked))
    data = data.rescaled(grid.denominator) if grid.denominator != data.denominator else data
    rules = flatten(program.rules, grid)
    for rule in rules:
        for name, args in ((rule.predicate, rule.args), *((b.predicate, b.args) for b in rule.body)):
            arities.setdefault(name, len(args))
    for (name, arity), _ in data.relations.items():
        arities.setdefault(name, arity)
    for name in names:
        arities.setdefault(name, len(fact.args) if fact is not None else 0)
    arities.setdefault("$true", 0)
    given = {
        name: _on_grid(data.relations[name, arity], dense)
        for name, arity in arities.items()
        if (name, arity) in data.relations
    }
    problem = Problem(rules, grid, given, arities, names, data.symbols.intern, data.symbols.ranks)
    until = None if stretch is None else grid.pair(stretch) or (0, -1)
    return Setting(program, data, grid, problem, until)


def timeline_of(program: Program, timeline: str | None) -> str:
    if timeline is None or timeline == program.timeline:
        return program.timeline
    if timeline not in ("rational", "integer"):
        raise TidelogError(Diagnostic("TL306", f"there is no timeline `{timeline}`", help="choose rational or integer"))
    if program.temporal is not None:
        raise TidelogError(
            Diagnostic(
                "TL306",
                "a temporal Datalog program cannot run on the rational timeline",
                law="the timeline of temporal Datalog (.tdl) is the integers",
                help="leave --timeline out, or write the rules in DatalogMTL (.dmtl)",
            )
        )
    return timeline


def arities_of(program: Program) -> Iterable[tuple[str, int]]:
    for rule in program.rules:
        head = head_atom(rule)
        for atom in ([head] if head else []) + [atom for atom, _ in dependencies(rule)]:
            yield atom.predicate, len(atom.args)


def refuse_arities(arities: dict[str, int], data: Dataset, fact: Fact | None) -> None:
    """One number of arguments for each predicate, in rules, data and question together."""
    known = {name: (arity, "the rules") for name, arity in arities.items()}
    counted = [(name, arity, "the data") for name, arity in data.relations]
    if fact is not None:
        counted.append((fact.predicate, len(fact.args), "the fact asked for"))
    wrong: list[Diagnostic] = []
    for name, arity, where in counted:
        expected, there = known.setdefault(name, (arity, where))
        if arity != expected:
            also = "elsewhere in the data" if there == where else f"in {there}"
            wrong.append(
                Diagnostic(
                    "TL102",
                    f"{name} has {_arguments(arity)} in {where}, but {_arguments(expected)} {also}",
                    law="a predicate has one number of arguments",
                    help="correct the facts, or give one of the two predicates another name; in a table every column "
                    "is an argument but `time`, or `start`, `end` and `closed`",
                )
            )
    if wrong:
        raise TidelogError(wrong)


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _ranges(formula: Formula) -> Iterable[Interval]:
    match formula:
        case Unary():
            yield formula.range
            yield from _ranges(formula.arg)
        case Binary():
            yield formula.range
            yield from _ranges(formula.left)
            yield from _ranges(formula.right)


def rule_ranges(rule: Rule) -> Iterable[Interval]:
    """The ranges of all operators of a rule."""
    yield from _ranges(rule.head)
    for literal in rule.body:
        if isinstance(literal, Literal):
            yield from _ranges(literal.formula)


def ends_of(program: Program) -> Iterable[Fraction]:
    for rule in program.rules:
        for interval in rule_ranges(rule):
            for end in (interval.lo, interval.hi):
                if isinstance(end, Fraction):
                    yield end


def refuse_fractions(program: Program, data: Dataset) -> None:
    """On the integer timeline every time is an integer."""
    law = "on the integer timeline all times and ranges are integers"
    wrong = [
        Diagnostic(
            "TL306",
            f"the range {interval.bracketed()} has an end that is no integer",
            rule.place,
            law=law,
            help="use integers, or the rational timeline",
        )
        for rule in program.rules
        for interval in rule_ranges(rule)
        if any(isinstance(end, Fraction) and end.denominator != 1 for end in (interval.lo, interval.hi))
    ]
    if data.denominator != 1:
        wrong.append(
            Diagnostic(
                "TL306",
                f"the data has times that are multiples of 1/{data.denominator}",
                law=law,
                help="use integers, or the rational timeline",
            )
        )
    if wrong:
        raise TidelogError(wrong)


def on_timeline(lo: Int64s, hi: Int64s, dense: bool) -> tuple[Int64s, Int64s]:
    """Ends on the doubled grid as ends on the timeline; on the integers an interval may be empty (lo > hi)."""
    if dense:
        return lo, hi
    return np.where(lo == NEG_INF, NEG_INF, (lo + 1) >> 1), np.where(hi == POS_INF, POS_INF, hi >> 1)


def _on_grid(relation: Relation, dense: bool) -> Rows:
    lo, hi = on_timeline(relation.lo, relation.hi, dense)
    rows = Rows(relation.args, lo, hi)
    return rows if dense else rows.where(lo <= hi)


def _covers(setting: Setting, extent: Extent, fact: Fact) -> bool:
    """Whether the fact's atom holds on all of its interval."""
    assert setting.until is not None
    lo, hi = setting.until
    if lo > hi:
        return True
    before = len(setting.data.symbols)
    ids = [setting.data.symbols.intern(value) for value in fact.args]
    if any(number >= before for number in ids):
        return False
    # What holds throughout a period of a tail holds for ever, so longer questions are questions about all time.
    if extent.right and hi - max(lo, extent.right.at) >= extent.right.every:
        hi = POS_INF
    if extent.left and min(hi, extent.left.at) - lo >= extent.left.every:
        lo = NEG_INF
    rows = extent.within(lo, hi).rows
    mine = np.ones(len(rows), bool)
    for column, number in zip(rows.args, ids, strict=True):
        mine &= column == number
    rows = rows.where(mine)
    return bool(((rows.lo <= lo) & (rows.hi >= hi)).any())


def refuse_violations(setting: Setting, extents: dict[str, Extent]) -> None:
    """Raises if a constraint is violated, with the rule, the binding and when."""
    symbols = setting.data.symbols
    found: list[Diagnostic] = []
    for rule in setting.problem.rules:
        if not rule.predicate.startswith(VIOLATION):
            continue
        rows = extents[rule.predicate].rows
        user_rule = setting.program.rules[rule.origin]
        for row in range(min(len(rows), 3)):
            values = [symbols.value(int(a)) for a in rows.args[:, row]]
            when = setting.grid.interval(int(rows.lo[row]), int(rows.hi[row]))
            found.append(violation(user_rule, rule, values, when))
    if found:
        raise Inconsistent(found)


def violation(user_rule: Rule, rule: FlatRule, values: list[str | Fraction], when: Interval) -> Diagnostic:
    binding = ", ".join(
        f"{v.name} = {value}"
        for v, value in zip(rule.args, values, strict=True)
        if isinstance(v, Variable) and not v.anonymous
    )
    with_binding = f" with {binding}" if binding else ""
    return Diagnostic(
        "TL303",
        f"a constraint is violated at {when}{with_binding}: {user_rule.text or format_rule(user_rule)}",
        user_rule.place,
        law="where the body of a rule with head Bottom holds, program and data contradict each other",
        help="correct the facts, or the constraint",
    )


def undecided(unsettled: Unsettled) -> Undecided:
    """The error for predicates that were not settled."""
    names = [name for name in unsettled.predicates if not name.startswith("$")] or list(unsettled.predicates)
    return Undecided(
        Diagnostic(
            "TL304",
            f"it could not be decided how {', '.join(names)} goes on for ever",
            law="a model is printed once its infinite parts are proved to repeat, and the search for that is bounded",
            help="ask for a stretch of time with --between LO,HI, or simplify the recursion through these predicates",
        )
    )

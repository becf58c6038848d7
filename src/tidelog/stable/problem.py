"""A program and its data on the integer timeline, ready for the search for stable models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil, floor

import numpy as np

from tidelog.analysis.predicate_graph import find_denied_recursions, find_needed_rules
from tidelog.compiler.compiled_program import CompiledProgram, Target
from tidelog.compiler.flat_rules import FlatRule, Pair
from tidelog.compiler.passes import compile_program
from tidelog.compiler.prepare_facts import InputFormat, to_timeline, with_program_facts
from tidelog.data.data_frames import DataLike
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import require_no_calendar
from tidelog.language.fact_text import format_fact
from tidelog.language.hidden_predicates import ALWAYS
from tidelog.language.program import Program, require_program
from tidelog.language.syntax import Condition, Fact
from tidelog.stable.grounding import GroundAtom, Grounding
from tidelog.stable.normal_form import NormalRule
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Interval, Time, TimelineName
from tidelog.timeline.time_sets import coalesce

GRID = Grid(dense=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """A compiled program, and when each atom of the data holds: maximal intervals in order of time."""

    compiled: CompiledProgram
    data: Dataset
    facts: dict[GroundAtom, tuple[Pair, ...]]
    _groundings: dict[tuple[NormalRule, ...], Grounding] = field(default_factory=dict)

    def ground(self, rules: Iterable[NormalRule]) -> Grounding:
        """Return the instances of rules over the data, which are computed once."""
        rules = tuple(rules)
        if rules not in self._groundings:
            self._groundings[rules] = Grounding(rules, self.data.symbols)
            self._groundings[rules].add(self.facts)
        return self._groundings[rules]

    @property
    def program(self) -> Program:
        """The program as the user wrote it."""
        return self.compiled.source

    @property
    def rules(self) -> tuple[FlatRule, ...]:
        """The rules in normal form."""
        return self.compiled.rules

    def range(self) -> Pair:
        """Return the span from the least to the greatest time in the data; 0 to 0 where there is none."""
        ends = [end for pairs in self.facts.values() for pair in pairs for end in pair if end not in (NEG_INF, POS_INF)]
        return (min(ends), max(ends)) if ends else (0, 0)


def prepare_problem(program: Program, data: DataLike, fact: Fact | None = None, query: str | None = None) -> Problem:
    """Compile a program and prepare its data; raise where times or ranges are not integers.

    With a query, rules with numbers are left out if they cannot matter for it.
    """
    require_program(program)
    if query is not None:
        program = _leave_out_numbers(program, query)
    require_no_numbers(program)
    compiled = compile_program(program, Target("stable"))
    data = prepare_data(program, with_program_facts(program, data), fact)
    return Problem(compiled, data, collect_fact_intervals(data))


def prepare_data(program: Program, data: Dataset, fact: Fact | None = None) -> Dataset:
    """Return data as the program reads it; raise where it does not fit, or has times that are not integers."""
    return InputFormat.of(program, "integer", "stable").prepare(data, () if fact is None else (fact,))


def _leave_out_numbers(program: Program, query: str) -> Program:
    """Return a program with numbers without the rules that change nothing about a query.

    Constraints, and recursions through negation, can leave a program without a model, so they and all that they depend
    on stay. The rules above them have exactly one model, whatever the model below.
    """
    if not any(isinstance(literal, Condition) for rule in program.rules for literal in rule.body):
        return program
    needed = find_needed_rules(program.rules, {query, *find_denied_recursions(program.rules)})
    return replace(program, rules=tuple(program.rules[number] for number in needed))


def require_no_numbers(program: Program) -> None:
    """Raise if a rule computes or reads a calendar: stable models are about atoms that grounding can list."""
    require_no_calendar(program.rules, "the search for stable models")
    problems = []
    for rule in program.rules:
        condition = next((literal for literal in rule.body if isinstance(literal, Condition)), None)
        if condition is not None:
            message = f"stable models do not support the arithmetic, aggregates and tests of text in `{rule.text}`"
            problems.append(Diagnostic("TL329", message, condition.place or rule.place))
    if problems:
        raise TidelogError(problems)


def require_integer_timeline(timeline: TimelineName | None) -> None:
    """Raise unless the timeline is left out or is that of the integers."""
    if timeline not in (None, "integer"):
        raise TidelogError(Diagnostic("TL321", "stable models cannot be computed over the rational timeline"))


def collect_fact_intervals(data: Dataset) -> dict[GroundAtom, tuple[Pair, ...]]:
    """Return the maximal intervals in which each atom of the data holds, on the integers."""
    intervals: dict[GroundAtom, list[Pair]] = {(ALWAYS, ()): [(NEG_INF, POS_INF)]}
    for (predicate, _), relation in data.relations.items():
        lo, hi = to_timeline(relation.lo, relation.hi, dense=False)
        kept = lo <= hi
        order = np.argsort(lo[kept], kind="stable")
        columns = [column[kept][order].tolist() for column in relation.args]
        rows = zip(*columns, strict=True) if columns else ((),) * len(order)
        pairs = zip(lo[kept][order].tolist(), hi[kept][order].tolist(), strict=True)
        for args, pair in zip(rows, pairs, strict=True):
            intervals.setdefault((predicate, args), []).append(pair)
    return {atom: tuple(coalesce(pairs)) for atom, pairs in intervals.items()}


def require_beginnings(problem: Problem) -> None:
    """Raise unless all timed facts begin at some time, as a stream needs."""
    problems = []
    for (predicate, args), pairs in problem.facts.items():
        for lo, hi in pairs:
            if lo == NEG_INF and hi != POS_INF:
                values = tuple(problem.data.symbols.value(a) for a in args)
                text = format_fact(Fact(predicate, values, GRID.to_interval(lo, hi)), problem.data.dates)
                problems.append(
                    Diagnostic(
                        "TL322",
                        f"the timed fact {text} holds from -inf on",
                        law="in a stream, timed facts begin at some time; facts without a time hold always",
                        help="give it a beginning, or leave out --input: without it, such facts are accepted",
                    )
                )
    if problems:
        raise TidelogError(problems[:20])


def require_finite_range(lo: Time, hi: Time) -> Pair:
    """Return a closed range on the integers; raise unless it is finite and contains one."""
    if isinstance(lo, float) or isinstance(hi, float):
        raise TidelogError(
            Diagnostic(
                "TL305",
                "models are shown in a finite range of times",
                help="give --between two finite times; what repeats before and after them is printed in any case",
            )
        )
    if ceil(lo) > floor(hi):
        raise TidelogError(Diagnostic("TL305", "the range of times is empty"))
    return ceil(lo), floor(hi)


def to_integer_pair(interval: Interval) -> Pair | None:
    """Return an interval as a pair of integers; None where it contains none."""
    return GRID.to_pair(interval)

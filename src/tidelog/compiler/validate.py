"""Check that rules, data and question fit together: the timeline, arities, and integer times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tidelog.analysis.predicate_graph import body_atoms
from tidelog.analysis.rule_ranges import rule_ranges
from tidelog.compiler.compiled_program import CompiledProgram, EngineName
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.left_operands import find_dense_bindings
from tidelog.language.printer import format_formula
from tidelog.language.program import Program
from tidelog.language.queries import Query
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact, Rule
from tidelog.language.wording import join_words, plural
from tidelog.timeline.interval import Time, TimelineName

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


def validate(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: choose the timeline, and raise where ranges do not lie on it, or where temporal Datalog has no times."""
    program, target = compiled.source, compiled.target
    program.require_times()
    if target.engine == "stable" or choose_timeline(program, target.timeline) == "integer":
        _raise_all(find_fractional_ranges(program.rules, target.engine))
        _raise_all(_dense_bindings(program))
    return compiled


def choose_timeline(program: Program, timeline: TimelineName | None) -> TimelineName:
    """Return the timeline that a program runs on: the one asked for, or its own."""
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


@lru_cache(maxsize=16)
def program_arities(program: Program) -> Mapping[str, int]:
    """Return the number of arguments of every predicate of the rules, hidden ones included."""
    atoms = ((head_atom(rule), *(atom for atom, _ in body_atoms(rule))) for rule in program.rules)
    return {atom.predicate: len(atom.args) for group in atoms for atom in group if atom is not None}


def require_arities(arities: Mapping[str, int], data: Dataset, asked: Iterable[Fact | Query] = ()) -> None:
    """Raise unless each predicate has one number of arguments in rules (`arities`), data and questions together."""
    known = {name: (arity, "the rules") for name, arity in arities.items()}
    used = [(name, arity, "the data") for name, arity in data.relations]
    for question in asked:
        if isinstance(question, Fact):
            used.append((question.predicate, len(question.args), "the fact asked for"))
        elif question.terms is not None:
            used.append((question.predicate, len(question.terms), "the query"))
    wrong: list[Diagnostic] = []
    for name, arity, where in used:
        expected, there = known.setdefault(name, (arity, where))
        if arity != expected:
            also = "elsewhere in the data" if there == where else f"in {there}"
            wrong.append(
                Diagnostic(
                    "TL102",
                    f"{name} has {plural(arity, 'argument')} in {where}, but {plural(expected, 'argument')} {also}",
                    help="correct the facts, or give one of the two predicates another name; in a table every column "
                    f"is an argument but `time`, or `start`, `end` and `closed`{_list_columns(data, name, arity)}",
                )
            )
    _raise_all(wrong)


def _list_columns(data: Dataset, predicate: str, arity: int) -> str:
    """List the columns of a table that are arguments, as the end of a sentence."""
    columns = {source.position: source.column for source in data.sources if source.predicate == predicate}
    names = [columns.get(position) for position in range(arity)]
    return f": its arguments are the columns {join_words(filter(None, names))}" if names and all(names) else ""


def require_integer_times(data: Dataset, engine: EngineName) -> None:
    """Raise if a time in the data is not an integer."""
    if data.denominator == 1:
        return
    fractional = (fact for fact in data if _is_fraction(fact.interval.lo) or _is_fraction(fact.interval.hi))
    first = next(fractional, None)
    named = "the data" if first is None else f"the fact {format_fact(first)}"
    raise TidelogError(_integer_error(engine, f"{named} has a time that is not an integer"))


def _dense_bindings(program: Program) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each rule that binds a variable between two times that have no integer between them."""
    for rule in program.rules:
        for near in find_dense_bindings(rule):
            name = format_formula(near.arg)
            message = f"{name} need not hold at any integer for this Since or Until, so it binds no variable"
            help = f"use a range from 2 on or the rational timeline, or add a positive literal beside {name}"
            yield Diagnostic("TL101", message, rule.place, help=help)


def find_fractional_ranges(rules: Iterable[Rule], engine: EngineName) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each range of the rules with an end that is not an integer."""
    for rule in rules:
        for interval in rule_ranges(rule):
            if _is_fraction(interval.lo) or _is_fraction(interval.hi):
                message = f"the range {interval.with_brackets()} has an end that is not an integer"
                yield _integer_error(engine, message, rule.place)


def _integer_error(engine: EngineName, message: str, place: Place | None = None) -> Diagnostic:
    if engine == "stable":
        law = "stable models are over the integer timeline: all times and ranges are integers"
        return Diagnostic("TL325", message, place, law=law)
    law = "on the integer timeline all times and ranges are integers"
    return Diagnostic("TL306", message, place, law=law, help="use integers, or the rational timeline")


def _is_fraction(end: Time) -> bool:
    return isinstance(end, Fraction) and end.denominator != 1


def _raise_all(errors: Iterator[Diagnostic] | list[Diagnostic]) -> None:
    found = list(errors)
    if found:
        raise TidelogError(found)

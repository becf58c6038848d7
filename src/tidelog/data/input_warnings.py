"""Find what is allowed in a program with its facts but probably a mistake."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from tidelog.analysis.program_warnings import find_data_warnings, find_program_warnings, select_rules
from tidelog.analysis.value_columns import ValueColumn, find_padded_columns, find_repeated_columns
from tidelog.analysis.value_types import find_type_conflicts
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import strip_mark
from tidelog.data.relation import Relation
from tidelog.data.symbol_table import Symbols
from tidelog.data.time_units import find_unit_warnings, find_zone_warnings
from tidelog.data.unknown_constants import UnknownConstants
from tidelog.errors import Diagnostic, TidelogWarning
from tidelog.language.program import Program
from tidelog.language.syntax import Rule
from tidelog.timeline.grid import NEG_INF, POS_INF

#: How many different last arguments of a predicate are looked at.
_MAX_VALUES = 1000
#: How many values of a column are looked at to find out whether it holds dates.
_MAX_DATES = 100
_TIME_NAME = re.compile("timestamp|ts|datetime|event_?time|(created|updated)_at", re.IGNORECASE)
_OFTEN_TIME = re.compile("t|at|when|date|epoch|.*_(at|on|time|ts|ms)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]|$)")


def find_warnings(
    program: Program, data: Dataset, queries: Iterable[str] | None = None, complete: bool = True
) -> tuple[Diagnostic, ...]:
    """Find all warnings for a program and its facts; with queries, about the rules that they need.

    While more facts may follow (`complete` is false), predicates without facts are not reported.

    >>> found = find_warnings(Program.parse("Done(X) :- Payed(X, Card)."), Dataset.parse("Paid(o1, card)@3"))
    >>> print(*(warning.code for warning in found))
    TL111 TL112
    """
    return (*find_program_warnings(program), *find_fact_warnings(program, data, queries, complete))


def warn_of_tables(program: Program, data: Dataset, queries: Iterable[str] | None, level: int = 3) -> None:
    """Give a Python warning for what is probably a mistake in the tables that a user has passed to a function.

    `level` is how many calls up the user's code is, as in `warnings.warn`.
    """
    for warning in find_fact_warnings(program, data, queries):
        warnings.warn(warning.render(), TidelogWarning, stacklevel=level)


def find_fact_warnings(
    program: Program, data: Dataset, queries: Iterable[str] | None = None, complete: bool = True
) -> tuple[Diagnostic, ...]:
    """Find the warnings of `find_warnings` that are about facts, also about those that are deleted."""
    predicates = {strip_mark(name) for name, _ in data.relations}
    queries = None if queries is None else list(queries)
    return (
        *find_data_warnings(program, predicates, queries, complete),
        *find_sort_warnings(program, data),
        *(find_unknown_constants(program, select_rules(program.rules, queries), data) if complete else ()),
        *find_type_conflicts(select_rules(program.rules, queries), data.sources),
        *find_untimed_tables(program, data),
        *find_padded_columns(program.predicates, data.sources),
        *find_repeated_columns(data.sources),
        *find_unit_warnings(select_rules(program.rules, queries), data),
        *find_zone_warnings(data.zones),
    )


def find_unknown_constants(program: Program, rules: Iterable[Rule], data: Dataset) -> Iterator[Diagnostic]:
    """Yield a warning for each constant of some rules that no fact has, although it seems to be meant to be in one."""
    unknown = UnknownConstants(program, rules)
    unknown.note(data)
    return unknown.find()


def find_untimed_tables(program: Program, data: Dataset) -> Iterator[Diagnostic]:
    """Yield a warning for each table whose facts hold at all times although a column seems to hold times.

    That is a column with the name of a time or, if the rules expect one argument less, one that holds dates.
    """
    for (name, arity), relation in data.relations.items():
        # Most often the first fact decides.
        if not len(relation) or any(_has_time(rows) for rows in (relation.cut(0, 1), relation)):
            continue
        columns = [source for source in data.sources if source.predicate == name and source.column]
        named = [column for column in columns if _TIME_NAME.fullmatch(column.column or "")]
        if not named and program.predicates.get(name) == arity - 1:
            named = [column for column in columns if _looks_like_time(data.symbols, relation, column)]
        for column in named[:1]:
            message = f"the facts of {column.source} hold at all times, because {column} is an argument"
            help = f'rename it to `time`, or write time = "{column.column}" into a schema; `tidelog infer` prints one'
            yield Diagnostic("TL210", message, help=help, severity="warning")


def _has_time(relation: Relation) -> bool:
    """Whether some facts do not hold at all times."""
    return bool(((relation.lo > NEG_INF) | (relation.hi < POS_INF)).any())


def _looks_like_time(symbols: Symbols, relation: Relation, column: ValueColumn) -> bool:
    """Whether a column holds dates, or numbers under a name that times often have."""
    if column.type == "number":
        return _OFTEN_TIME.fullmatch(column.column or "") is not None
    values = [symbols.value(int(number)) for number in relation.args[column.position][:_MAX_DATES]]
    return all(isinstance(value, str) and _DATE.match(value) for value in values)


def find_sort_warnings(program: Program, data: Dataset) -> Iterator[Diagnostic]:
    """Yield a warning for each rigid predicate of temporal Datalog whose facts all end with a whole number."""
    if program.temporal is None:
        return
    facts = data | Dataset.from_facts(program.facts) if program.facts else data
    for name, arity in sorted(program.temporal.rigid - program.temporal.declared_rigid):
        relation = facts.relations.get((name, arity))
        if relation is None or not arity or not len(relation):
            continue
        untimed = (relation.lo == NEG_INF) & (relation.hi == POS_INF)
        last = np.unique(relation.args[-1][untimed])[:_MAX_VALUES]
        if len(last) and all(_is_natural(facts.symbols, int(number)) for number in last):
            message = f"the facts of {name} end with numbers, but no rule shows that {name} is temporal"
            help = f"write `#temporal {name}/{arity}.` if these numbers are times, and `#rigid {name}/{arity}.` if not"
            yield Diagnostic("TL114", message, help=help, severity="warning")


def _is_natural(symbols: Symbols, number: int) -> bool:
    value = symbols.value(number)
    return isinstance(value, Fraction) and value.denominator == 1 and value >= 0

"""A program: rules that passed all checks, on a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import find_calendars
from tidelog.language.core_rules import CoreProgram
from tidelog.language.desugar import desugar
from tidelog.language.fact_text import format_fact, has_time, parse_fact
from tidelog.language.file_errors import check_utf8, read_input
from tidelog.language.groups import expand_groups
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.parser import parse_rules
from tidelog.language.printer import format_program, format_temporal
from tidelog.language.rule_checks import diagnose_rules
from tidelog.language.syntax import Fact, Rule, TemporalProgram
from tidelog.language.time_arguments import find_time_arguments, read_dates
from tidelog.language.validation import diagnose_temporal, rule_atoms
from tidelog.language.value_like import read_fact_object
from tidelog.timeline.interval import Interval, TimelineName

#: Suffixes of tables of facts; no rule file has one of them.
_TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")


@dataclass(frozen=True)
class Program:
    """Rules in the DatalogMTL core, with the temporal Datalog program that they were translated from, if any.

    >>> program = Program.parse("Hot(X) :- Boxminus[0,2] Temp(X, high)")
    >>> print(program, end="")
    Hot(X) :- Boxminus[0,2] Temp(X, high).
    """

    rules: tuple[Rule, ...]
    timeline: TimelineName
    facts: tuple[Fact, ...] = ()
    temporal: TemporalProgram | None = None
    source: str = "<text>"
    #: The rules as written, if some of them have groups or several heads: `rules` are what they stand for.
    written: tuple[Rule, ...] | None = None

    @staticmethod
    def parse(text: str, *, syntax: str = "dmtl", source: str = "<text>") -> Program:
        """Parse rules. Raises `TidelogError` with all problems, in the order of the text."""
        if text.endswith((".dmtl", ".tdl")) and not set(text) & set(" \n("):
            help = "tl.Program.load(path) reads a file"
            raise TidelogError(Diagnostic("TL127", f"`{text}` is the path of a file, which is no program", help=help))
        if syntax == "tdl":
            return _parse_temporal(text, source)
        if syntax != "dmtl":
            raise TidelogError(Diagnostic("TL010", f"there is no syntax `{syntax}`", help="choose dmtl or tdl"))
        return _parse_rules(text, source)

    @staticmethod
    def load(path: str | Path) -> Program:
        """Read a rule file: temporal Datalog if its name ends with .tdl, else DatalogMTL. `-` is standard input."""
        name = str(path)
        if Path(name).suffix.lower() in _TABLE_SUFFIXES:
            help = "rules come first, then data: tidelog materialise rules.dmtl " + name
            raise TidelogError(Diagnostic("TL010", f"{name} is a table of facts, where rules are expected", help=help))
        syntax = "tdl" if name.endswith(".tdl") else "dmtl"
        return Program.parse(read_text(name), syntax=syntax, source="<stdin>" if name == "-" else name)

    @property
    def written_rules(self) -> tuple[Rule, ...]:
        """The rules as written, with their groups."""
        return self.rules if self.written is None else self.written

    @cached_property
    def core(self) -> CoreProgram:
        """The rules in core form: without numbers, they are as they are written."""
        return desugar(self.rules)

    def __hash__(self) -> int:
        """Return the hash, which is computed once: programs are the keys under which their compiled forms are kept."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the hash out: another process has others for the same texts."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    @property
    def predicates(self) -> dict[str, int]:
        """The arity of every predicate, without time, in the order of the program."""
        used = {atom.predicate: len(atom.args) for rule in self.rules for atom in rule_atoms(rule)}
        used |= {fact.predicate: len(fact.args) for fact in self.facts}
        return {name: arity for name, arity in used.items() if not is_hidden(name)}

    @cached_property
    def calendars(self) -> dict[str, tuple[str, ...]]:
        """The calendar predicates that rules read, whose facts tidelog generates, each with its time zones."""
        return {} if self.temporal else find_calendars(self.rules)

    def to_fact(self, fact: str | Fact) -> Fact:
        """Return a fact, parsed if it is text; a temporal predicate of the program may have its time as last argument.

        Arguments that are times, such as the result of `start`, may be dates.

        >>> Program.parse("P(X, T+1) :- Q(X, T).", syntax="tdl").to_fact("Q(a, 3)").interval
        Interval(lo=Fraction(3, 1), hi=Fraction(3, 1), lo_closed=True, hi_closed=True)
        """
        if isinstance(fact, Fact):
            return read_fact_object(fact)[0]
        parsed, _ = parse_fact(fact, "<fact>", temporal=self.temporal.temporal if self.temporal else frozenset())
        return read_dates(parsed, self.time_arguments.get(parsed.predicate, ()))

    @cached_property
    def time_arguments(self) -> dict[str, tuple[int, ...]]:
        """The positions of the arguments that are times, by predicate."""
        return find_time_arguments(self.rules)

    def find_question_warnings(self, fact: str) -> list[Diagnostic]:
        """Return a warning for a question without a time, which is read as one about all times.

        In data such a fact holds at all times; in a question the time may have been forgotten. Rigid predicates of
        temporal Datalog have no time.
        """
        parsed = self.to_fact(fact)
        if parsed.interval != Interval.always() or has_time(fact):
            return []
        if self.temporal and (parsed.predicate, len(parsed.args)) not in self.temporal.temporal:
            return []
        return [_build_timeless_warning(parsed)]

    def with_temporal_query(self, predicate: str) -> Program:
        """Return the program with the query predicate as a temporal one, if it is temporal Datalog.

        Windows and hypothetical answers ask about times, so their query predicate and everything that shares its time
        variable are temporal, unless a directive says `#rigid`.

        >>> program = Program.parse("Alarm(X, T) :- Hot(X, T).", syntax="tdl").with_temporal_query("Alarm")
        >>> sorted(program.temporal.temporal)
        [('Alarm', 1), ('Hot', 1)]
        """
        if self.temporal is None:
            return self
        from tidelog.language.tdl_time_arguments import with_temporal_query
        from tidelog.language.tdl_translation import translate_to_mtl

        temporal, problems = with_temporal_query(self.temporal, predicate)
        if temporal is self.temporal:
            return self
        _raise_all(problems or diagnose_temporal(temporal))
        rules, facts = translate_to_mtl(temporal)
        return replace(self, rules=rules, facts=facts, temporal=temporal)

    def require_times(self) -> None:
        """Raise TL115 if this is temporal Datalog in which no predicate is temporal."""
        temporal = self.temporal
        if temporal is None or temporal.temporal or not temporal.rules:
            return
        heads = sorted({(rule.head.predicate, len(rule.head.args)) for rule in temporal.rules if rule.head})
        name, arity = next(((name, arity) for name, arity in heads if arity), ("P", 2))
        place = temporal.rules[0].place
        help = f"say which predicates have their time last: `#temporal {name}/{arity}.`, or use a .dmtl file"
        raise TidelogError(Diagnostic("TL115", "no predicate of these rules is temporal", place, help=help))

    def __str__(self) -> str:
        return format_temporal(self.temporal) if self.temporal else format_program(self.written_rules)


def _build_timeless_warning(fact: Fact) -> Diagnostic:
    atom = format_fact(fact).rpartition("@")[0]
    return Diagnostic(
        "TL310",
        f"{atom} has no time, so it is read as {atom}@(-inf,inf): does it always hold?",
        help=f"write a point, {atom}@7, an interval, {atom}@[0,3], or all times, {atom}@(-inf,inf)",
        severity="warning",
    )


def require_program(program: object) -> None:
    """Raise TL127 for rules that are text, a path or anything else but a program."""
    if isinstance(program, Program):
        return
    problem = f"the rules are an object of type {type(program).__name__}, which is no program"
    raise TidelogError(Diagnostic("TL127", problem))


@lru_cache(maxsize=16)
def _parse_rules(text: str, source: str) -> Program:
    """Parse rules. A process that answers the same query many times, over small streams, parses its rules once."""
    rules, errors = parse_rules(text, source)
    expanded = expand_groups(rules)
    _raise_all(errors + diagnose_rules(expanded))
    core = tuple(rule for one in expanded for rule in one.rules)
    return Program(core, "rational", source=source, written=None if core == tuple(rules) else tuple(rules))


def _parse_temporal(text: str, source: str) -> Program:
    # Most programs are not temporal Datalog, and need nothing of it.
    from tidelog.language.tdl_parser import parse_temporal
    from tidelog.language.tdl_translation import translate_to_mtl

    temporal, errors = parse_temporal(text, source)
    _raise_all(errors + (diagnose_temporal(temporal) if temporal else []))
    assert temporal is not None
    rules, facts = translate_to_mtl(temporal)
    return Program(rules, "integer", facts, temporal, source)


def read_text(name: str) -> str:
    """Read the text of a file, or of standard input for `-`."""
    data = read_input(name)
    check_utf8(data, name)
    return data.decode("utf-8-sig")


def _raise_all(errors: Iterable[Diagnostic]) -> None:
    ordered = sorted(errors, key=lambda error: (error.place.line, error.place.column) if error.place else (0, 0))
    if ordered:
        raise TidelogError(ordered)

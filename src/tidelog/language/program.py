"""A program: rules that were read and found sound, on a timeline."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.opening import unreadable
from tidelog.language.parser import parse_rules
from tidelog.language.printer import format_program, format_temporal
from tidelog.language.safety import check_rules, check_temporal, rule_atoms
from tidelog.language.syntax import Fact, Rule, TemporalProgram
from tidelog.language.temporal import parse_temporal
from tidelog.language.translation import to_mtl

#: What tables of facts end with; no file of rules does.
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")


@dataclass(frozen=True)
class Program:
    """Rules in the DatalogMTL core, with the temporal Datalog that they came from, if they did.

    >>> program = Program.parse("Hot(X) :- Boxminus[0,2] Temp(X, high)")
    >>> print(program, end="")
    Hot(X) :- Boxminus[0,2] Temp(X, high).
    """

    rules: tuple[Rule, ...]
    timeline: str
    facts: tuple[Fact, ...] = ()
    temporal: TemporalProgram | None = None
    source: str = "<text>"

    @staticmethod
    def parse(text: str, *, syntax: str = "dmtl", source: str = "<text>") -> Program:
        """Read rules; raises a `TidelogError` with everything that is wrong with them, in the order of the text."""
        if syntax == "tdl":
            return _parse_temporal(text, source)
        if syntax != "dmtl":
            raise TidelogError(Diagnostic("TL010", f"there is no syntax `{syntax}`", help="choose dmtl or tdl"))
        rules, errors = parse_rules(text, source)
        _raise(errors + check_rules(rules))
        return Program(tuple(rules), "rational", source=source)

    @staticmethod
    def load(path: str | Path) -> Program:
        """Read a rule file: temporal Datalog if its name ends with .tdl, else DatalogMTL; `-` is standard input."""
        name = str(path)
        if Path(name).suffix.lower() in _TABLES:
            help = "rules come first, then data: tidelog materialise rules.dmtl " + name
            raise TidelogError(Diagnostic("TL010", f"{name} is a table of facts, where rules are expected", help=help))
        syntax = "tdl" if name.endswith(".tdl") else "dmtl"
        return Program.parse(read_text(name), syntax=syntax, source="<stdin>" if name == "-" else name)

    @property
    def predicates(self) -> dict[str, int]:
        """The arity of every predicate, in the order of the program; time is not counted."""
        used = {atom.predicate: len(atom.args) for rule in self.rules for atom in rule_atoms(rule)}
        used |= {fact.predicate: len(fact.args) for fact in self.facts}
        return {name: arity for name, arity in used.items() if not name.startswith("$")}

    def __str__(self) -> str:
        return format_temporal(self.temporal) if self.temporal else format_program(self.rules)


def _parse_temporal(text: str, source: str) -> Program:
    temporal, errors = parse_temporal(text, source)
    _raise(errors + (check_temporal(temporal) if temporal else []))
    assert temporal is not None
    rules, facts = to_mtl(temporal)
    return Program(rules, "integer", facts, temporal, source)


def read_text(name: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise TidelogError(unreadable(name, error)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        place = Place(name, line, column)
        raise TidelogError(Diagnostic("TL010", "this file is not UTF-8 text", place, help="save it as UTF-8")) from None


def _raise(errors: Iterable[Diagnostic]) -> None:
    found = sorted(errors, key=lambda error: (error.place.line, error.place.column) if error.place else (0, 0))
    if found:
        raise TidelogError(found)

"""What a column of data holds, numbers or text, and how a conflict between two of them is described."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from tidelog.errors import Diagnostic, Place
from tidelog.language.printer import format_term
from tidelog.language.syntax import Constant
from tidelog.language.time_text import read_number

ValueType = Literal["number", "text", "mixed"]
#: A predicate and the number of one of its arguments, from 0.
Position = tuple[str, int]


@dataclass(frozen=True)
class ValueColumn:
    """One argument of a predicate in one source of data: the type of its values, and where they are for a reader.

    Without a predicate, it is an expression or a constant of a rule, with its text in `column`.
    """

    predicate: str
    position: int
    type: ValueType
    source: str
    column: str | None = None
    #: Whether some of the texts look like numbers.
    numeric_text: bool = False
    #: A text with a space at one of its ends, if there is one.
    padded_text: str | None = None

    @property
    def holds_numbers(self) -> bool:
        return self.type != "text"

    def __str__(self) -> str:
        if not self.predicate:
            return f"the {self.source} {self.column}"
        where = f"column `{self.column}`" if self.column else f"argument {self.position + 1} of {self.predicate}"
        return f"{where} of {self.source}" if self.source else where


def merge_columns(columns: Iterable[ValueColumn]) -> list[ValueColumn]:
    """Merge the descriptions of parts of the same source."""
    merged: dict[tuple[str, int, str], ValueColumn] = {}
    for column in columns:
        key = (column.predicate, column.position, column.source)
        known = merged.get(key)
        merged[key] = column if known is None else merge_types(known, column)
    return list(merged.values())


def merge_types(known: ValueColumn, more: ValueColumn) -> ValueColumn:
    """Return the first column with the types of both."""
    numeric_text = known.numeric_text or more.numeric_text
    padded_text = known.padded_text or more.padded_text
    type = known.type if known.type == more.type else "mixed"
    return replace(known, type=type, numeric_text=numeric_text, padded_text=padded_text)


def find_padded_columns(predicates: Container[str], columns: Iterable[ValueColumn]) -> Iterator[Diagnostic]:
    """Yield a warning for each column of a table that has texts with spaces at their ends, and that rules read."""
    for column in merge_columns(columns):
        if column.padded_text is not None and column.column and column.predicate in predicates:
            text, trimmed = (
                json.dumps(text, ensure_ascii=False) for text in (column.padded_text, column.padded_text.strip())
            )
            help = f"correct the data if {text} should be {trimmed}"
            message = f"{column} has text with spaces at its ends"
            yield Diagnostic("TL212", message, help=help, severity="warning")


def find_repeated_columns(columns: Iterable[ValueColumn]) -> Iterator[Diagnostic]:
    """Yield a warning for each name that two arguments of a table share."""
    named = [(column.source, column.predicate, column.column) for column in merge_columns(columns) if column.column]
    for (source, _, name), count in Counter(named).items():
        if count > 1:
            yield Diagnostic("TL214", f"{source} has {count} columns `{name}`", severity="warning")


def describe_constant(term: Constant) -> ValueColumn:
    """Describe a constant of a rule as a column that holds nothing else."""
    number = isinstance(term.value, Fraction)
    looks = isinstance(term.value, str) and read_number(term.value) is not None
    return ValueColumn("", 0, "number" if number else "text", "constant", format_term(term), looks)


def describe_conflict(left: ValueColumn, right: ValueColumn, place: Place | None, reason: str) -> Diagnostic:
    """Build the warning for two columns of different types that meet for a reason."""
    number, text = (left, right) if right.type == "text" or left.type == "number" else (right, left)
    message = f"{describe_values(number)}, and {describe_values(text, number)}, but {reason}"
    return Diagnostic("TL208", message, place, help=_suggest_constant(text), severity="warning")


def _suggest_constant(text: ValueColumn) -> str | None:
    """Suggest what to write instead of a constant of a rule that is text: a number without quotes, or a variable."""
    if text.predicate or text.source != "constant" or text.column is None:
        return None
    if text.numeric_text:
        return f"write {json.loads(text.column)} if a number is meant"
    return f"write {text.column[0].upper()}{text.column[1:]} if a variable is meant" if text.column[0] != '"' else None


def describe_values(column: ValueColumn, beside: ValueColumn | None = None) -> str:
    """Say what a column holds; `beside` a column of numbers, without repeating the verb."""
    if not column.predicate:
        return f"{column} is a {column.type}"
    if column.type == "mixed" or (beside and beside.type == "mixed" and column.numeric_text):
        kind = "numbers and text" if column.type == "mixed" else "text that looks like numbers"
        return f"{column} holds {kind}"
    verb = "" if beside and beside.predicate and beside.type == "number" else " holds"
    return f"{column}{verb} only {'numbers' if column.type == 'number' else 'text'}"

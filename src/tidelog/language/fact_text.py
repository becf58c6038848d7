"""Read and print single facts: `P(a,b)@[0,3)`, `P(a)@7`, `Alarm@(-inf,2]`, background facts without `@`.

In facts every argument is a constant, however it is spelt. With temporal Datalog the time may also be the last
argument: `Brst(a,b,3)`. This module reads one fact at a time, with precise errors; whole files go through the byte
scanner (`tidelog.data.fact_scanner`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from tidelog.diagnostics.catalogue import CATALOGUE
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Fact, Value
from tidelog.language.time_text import format_iso, parse_time, read_number
from tidelog.timeline.interval import INF, Interval, Time

__all__ = [
    "FactFormat",
    "FactStyle",
    "format_atom",
    "format_fact",
    "format_iso",
    "format_value",
    "parse_fact",
    "parse_time",
    "quote",
    "unquote",
]

#: The forms in which facts are printed as lines, and as text in any form.
LineFormat = Literal["text", "jsonl"]
FactFormat = Literal["text", "jsonl", "csv"]

_PREDICATE = re.compile(r"\s*([^\W\d]\w*(?::[^\W\d]\w*)*)\s*")
_DELETION = re.compile(r"\s*(-?)")
_ARGUMENT = re.compile(r'\s*("(?:\\.|[^"\\])*"|[^\s",()@%#]+)\s*')
_SPAN = re.compile(r"\s*([\[(])\s*([^,\[\]()%#]+?)\s*(?:,\s*([^,\[\]()%#]+?)\s*)?([\])])\s*")
_POINT = re.compile(r"\s*([^\s\[\]()%#,@]+(?: \d\d:[^\s\[\]()%#,@]+)?)\s*")
_END = re.compile(r"\s*\.?\s*(?:[%#].*)?", re.DOTALL)
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
#: Shown with every mistake in a fact, in its time or interval as well.
_BETWEEN_CELLS = (",", ";", "|", "\t")
_TABLE_HELP = "the name of a table ends with .csv, .tsv, .jsonl, .ndjson, .json or .parquet"
_FACT_LAW = CATALOGUE["TL201"].law


def quote(text: str) -> str:
    r"""Put a string constant in quotes; newline, return, tab, quote and backslash are escaped.

    >>> print(quote('a "b"'))
    "a \"b\""
    """
    return '"' + "".join(_ESCAPED.get(char, char) for char in text) + '"'


def unquote(text: str) -> str:
    """Return the string that a quoted constant stands for. A backslash before any other character gives that one."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


def format_value(value: Value) -> str:
    """Format a constant as it appears in facts.

    >>> format_value("ID0"), format_value("1"), format_value(Fraction(1, 2)), format_value(Fraction(1, 3))
    ('ID0', '"1"', '0.5', '1/3')
    """
    if isinstance(value, Fraction):
        return format_number(value)
    return value if _BARE.fullmatch(value) else quote(value)


def format_number(value: Fraction) -> str:
    """Format a number as an integer, as a decimal if that is finite and has at most 18 digits, or as a fraction."""
    decimals, scale = 0, value.denominator
    for factor in (2, 5):
        count = 0
        while scale % factor == 0:
            scale //= factor
            count += 1
        decimals = max(decimals, count)
    digits = abs(value.numerator) * 10**decimals // value.denominator
    if scale != 1 or decimals == 0 or decimals > 18 or digits >= 10**18:
        return str(value)
    text = f"{digits:0{decimals + 1}d}"
    return f"{'-' if value < 0 else ''}{text[:-decimals]}.{text[-decimals:]}"


def json_value(value: Value) -> str | int:
    """Return a constant as JSON output shows it: integers as numbers, other numbers as exact texts.

    >>> json_value("a"), json_value(Fraction(7)), json_value(Fraction(1, 3))
    ('a', 7, '1/3')
    """
    if isinstance(value, str):
        return value
    return value.numerator if value.denominator == 1 else format_value(value)


def format_atom(predicate: str, args: Sequence[Value], iso: bool = False, times: Collection[int] = ()) -> str:
    """Format a predicate with its arguments; if `iso`, those at the positions `times` are dates.

    >>> format_atom("Since", ("a", Fraction(0)), iso=True, times=(1,))
    'Since(a,1970-01-01T00:00:00Z)'
    """
    texts = [
        format_iso(value) if iso and place in times and isinstance(value, Fraction) else format_value(value)
        for place, value in enumerate(args)
    ]
    return f"{predicate}({','.join(texts)})" if texts else predicate


def format_fact(fact: Fact, iso: bool = False, times: Collection[int] = ()) -> str:
    """Format a fact as one line, with dates for times if `iso`: the interval, and arguments at the positions `times`.

    >>> format_fact(Fact("P", ("a",), Interval(Fraction(0), Fraction(3), True, False)))
    'P(a)@[0,3)'
    """
    atom = format_atom(fact.predicate, fact.args, iso, times)
    interval = fact.interval
    if not iso:
        return f"{atom}@{interval}"
    if interval.is_point():
        return f"{atom}@{format_iso(interval.lo)}"
    left, right = "[" if interval.lo_closed else "(", "]" if interval.hi_closed else ")"
    return f"{atom}@{left}{format_iso(interval.lo)},{format_iso(interval.hi)}{right}"


@dataclass(frozen=True)
class FactStyle:
    """How facts are written: with dates for times if `dates`, also for arguments at the positions `times` by predicate.

    >>> FactStyle(dates=True).fact(Fact("P", (), Interval.point(Fraction(60))))
    'P@1970-01-01T00:01:00Z'
    """

    dates: bool = False
    times: Mapping[str, Collection[int]] = field(default_factory=dict)

    def fact(self, fact: Fact) -> str:
        """Write a fact."""
        return format_fact(fact, self.dates, self.times.get(fact.predicate, ()))

    def interval(self, interval: Interval) -> str:
        """Write an interval as in facts."""
        return format_fact(Fact("", (), interval), self.dates)[1:]


def parse_fact(
    text: str,
    source: str = "<text>",
    line: int = 1,
    temporal: frozenset[tuple[str, int]] = frozenset(),
    *,
    deletions: bool = False,
) -> tuple[Fact, bool]:
    """Parse one fact, and tell whether its times were dates.

    `temporal` contains the predicates, with their arity without time, whose last argument may be the time. With
    `deletions`, the text may be a deletion, whose predicate is then marked (see `tidelog.data.deletions`).

    >>> parse_fact("P(a)@[0,3)")[0].interval
    Interval(lo=Fraction(0, 1), hi=Fraction(3, 1), lo_closed=True, hi_closed=False)
    >>> parse_fact("-P(a)@3", deletions=True)[0].predicate
    '-P'
    """
    if not isinstance(text, str):
        problem = f"the fact is an object of type {type(text).__name__}"
        raise TidelogError(Diagnostic("TL201", problem, help='write it as text, "Reading(t1,90)@3", or as a `tl.Fact`'))
    reader = _FactReader(text, source, line)
    mark = reader.take(_DELETION, "a deletion").group(1) if deletions else ""
    name = reader.take(_PREDICATE, "a predicate").group(1)
    predicate = mark + name
    values, columns = reader.arguments()
    if reader.skip("@"):
        interval, dated = reader.interval()
    elif values and (name, len(values) - 1) in temporal:
        interval, dated = reader.last_argument(values.pop(), columns.pop()), False
    else:
        interval, dated = Interval.always(), False
    reader.end()
    return Fact(predicate, tuple(values), interval), dated


def has_time(text: str) -> bool:
    """Return whether the text of a fact states its time with `@`; an `@` inside quotes does not count.

    >>> has_time("P(a)@3"), has_time('P("a@b")')
    (True, False)
    """
    return "@" in re.sub(r'"(?:\\.|[^"\\])*"', "", text)


class _FactReader:
    """A position in the text of one fact, with errors that point at it."""

    def __init__(self, text: str, source: str, line: int) -> None:
        self.text, self.source, self.line, self.at = text, source, line, 0

    def error(self, code: str, message: str, at: int, help: str | None = None, length: int = 1) -> TidelogError:
        before = self.text[:at]
        start = before.rfind("\n") + 1
        shown = self.text[start:].split("\n", 1)[0]
        place = Place(self.source, self.line + before.count("\n"), at - start + 1, length, shown)
        return TidelogError(Diagnostic(code, message, place, _FACT_LAW, help))

    def skip(self, char: str) -> bool:
        matches = self.text.startswith(char, self.at)
        self.at += matches
        return matches

    def take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if not match:
            raise self.unexpected_input(wanted)
        self.at = match.end()
        return match

    def unexpected_input(self, wanted: str) -> TidelogError:
        at = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        found = f"`{self.text[at]}`" if at < len(self.text) else "the end"
        help = _suggest_help(self.text[at : at + 2])
        if "(" not in self.text and self.text[self.at : at + 1].strip(" ")[:1] in _BETWEEN_CELLS:
            help = _TABLE_HELP
        return self.error("TL201", f"expected {wanted}, found {found}", at, help)

    def arguments(self) -> tuple[list[Value], list[int]]:
        """Read the values, with the position at which each begins."""
        values: list[Value] = []
        columns: list[int] = []
        if not self.skip("("):
            return values, columns
        if re.compile(r"\s*\)\s*").match(self.text, self.at):
            self.take(re.compile(r"\s*\)\s*"), "`)`")
            return values, columns
        while True:
            match = self.take(_ARGUMENT, "a constant")
            columns.append(match.start(1))
            values.append(self.value(match.group(1), match.start(1)))
            if not self.skip(","):
                break
        self.take(re.compile(r"\)\s*"), "`,` or `)`")
        return values, columns

    def value(self, text: str, at: int) -> Value:
        if text.startswith('"'):
            return unquote(text)
        number = read_number(text)
        if number is None and re.fullmatch(r"[+-]?[0-9]+([./][0-9]+)?", text):
            raise self.error("TL201", "a number that is too long, or divided by zero", at, length=len(text))
        return text if number is None else number

    def interval(self) -> tuple[Interval, bool]:
        start = self.at
        span = _SPAN.match(self.text, start)
        if not span:
            point = self.take(_POINT, "a time or an interval")
            # A dot after a point ends the fact: no time ends with one.
            written = point.group(1).rstrip(".")
            self.at = point.start(1) + len(written)
            time, dated = self.time(written, point.start(1))
            if isinstance(time, float):
                raise self.error("TL202", "infinity is not a time point", point.start(1), "write (-inf,inf)")
            return Interval.point(time), dated
        self.at = span.end()
        left, first, second, right = span.groups()
        lo, lo_dated = self.time(first, span.start(2))
        hi, hi_dated = (lo, lo_dated) if second is None else self.time(second, span.start(3))
        interval = Interval(lo, hi, left == "[" and lo != -INF, right == "]" and hi != INF)
        if interval.is_empty() or lo == INF or hi == -INF:
            at = span.start(1)
            message = f"the interval `{self.text[at : span.end(4)]}` is empty"
            raise self.error("TL203", message, at, "the first end comes before the second", span.end(4) - at)
        return interval, lo_dated or hi_dated

    def time(self, text: str, at: int) -> tuple[Time, bool]:
        try:
            return parse_time(text)
        except TidelogError as error:
            problem = error.diagnostics[0]
            raise self.error(problem.code, problem.message, at, problem.law, len(text)) from None

    def last_argument(self, value: Value, at: int) -> Interval:
        if not isinstance(value, Fraction) or value.denominator != 1 or value < 0:
            message = f"the time of a temporal fact is a natural number, not `{format_value(value)}`"
            raise self.error("TL202", message, at, "write the time with @ instead: P(a)@7")
        return Interval.point(value)

    def end(self) -> None:
        match = _END.match(self.text, self.at)
        if not match or match.end() != len(self.text):
            raise self.unexpected_input("the end of the fact")


def _suggest_help(text: str) -> str | None:
    if text.startswith('"'):
        return 'a quoted constant ends with a quote; inside it, write \\" for a quote'
    if text == ":-":
        return "this is a rule; rules belong in the rule file"
    if text[:1] in ("%", "#"):
        return f"`{text[0]}` starts a comment; put a constant that contains it in quotes"
    return None

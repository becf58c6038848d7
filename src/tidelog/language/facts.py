"""Single facts as text: `P(a,b)@[0,3)`, `P(a)@7`, `Alarm@(-inf,2]`, background facts without `@`.

In facts every argument is a constant, however it is spelt. With temporal Datalog the time may also be the last
argument: `Brst(a,b,3)`. This reads one fact with care for its errors; whole files go through the byte scanner.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Fact, Value
from tidelog.language.times import format_iso, parse_time, read_number
from tidelog.timeline.interval import INF, Interval, Time

__all__ = ["format_fact", "format_iso", "format_value", "parse_fact", "parse_time", "quote", "unquote"]

_PREDICATE = re.compile(r"\s*([^\W\d]\w*(?::[^\W\d]\w*)*)\s*")
_ARGUMENT = re.compile(r'\s*("(?:\\.|[^"\\])*"|[^\s",()@%#]+)\s*')
_SPAN = re.compile(r"\s*([\[(])\s*([^,\[\]()%#]+?)\s*(?:,\s*([^,\[\]()%#]+?)\s*)?([\])])\s*")
_POINT = re.compile(r"\s*([^\s\[\]()%#,@]+(?: \d\d:[^\s\[\]()%#,@]+)?)\s*")
_END = re.compile(r"\s*\.?\s*(?:[%#].*)?", re.DOTALL)
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_LAW = "a fact is P(a,b)@[0,3), P(a)@7, Alarm@(-inf,2], or without @ where it holds at all times"


def quote(text: str) -> str:
    r"""A string constant in quotes; newline, return, tab, quote and backslash are escaped.

    >>> print(quote('a "b"'))
    "a \"b\""
    """
    return '"' + "".join(_ESCAPED.get(char, char) for char in text) + '"'


def unquote(text: str) -> str:
    """The string that a quoted constant stands for; a backslash before any other character gives that character."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


def format_value(value: Value) -> str:
    """A constant as facts show it.

    >>> format_value("ID0"), format_value("1"), format_value(Fraction(1, 2))
    ('ID0', '"1"', '1/2')
    """
    if isinstance(value, Fraction):
        return str(value)
    return value if _BARE.fullmatch(value) else quote(value)


def format_fact(fact: Fact, iso: bool = False) -> str:
    """A fact as one line; with `iso` its times are dates.

    >>> format_fact(Fact("P", ("a",), Interval(Fraction(0), Fraction(3), True, False)))
    'P(a)@[0,3)'
    """
    args = f"({','.join(map(format_value, fact.args))})" if fact.args else ""
    interval = fact.interval
    if not iso:
        return f"{fact.predicate}{args}@{interval}"
    if interval.is_point():
        return f"{fact.predicate}{args}@{format_iso(interval.lo)}"
    left, right = "[" if interval.lo_closed else "(", "]" if interval.hi_closed else ")"
    return f"{fact.predicate}{args}@{left}{format_iso(interval.lo)},{format_iso(interval.hi)}{right}"


def parse_fact(
    text: str, source: str = "<text>", line: int = 1, temporal: frozenset[tuple[str, int]] = frozenset()
) -> tuple[Fact, bool]:
    """One fact, and whether its times were dates. `temporal` names predicates, with their arity without time, whose
    last argument may be the time.

    >>> parse_fact("P(a)@[0,3)")[0].interval
    Interval(lo=Fraction(0, 1), hi=Fraction(3, 1), lo_closed=True, hi_closed=False)
    """
    reader = _FactReader(text, source, line)
    predicate = reader.take(_PREDICATE, "a predicate").group(1)
    values, columns = reader.arguments()
    if reader.skip("@"):
        interval, dated = reader.interval()
    elif values and (predicate, len(values) - 1) in temporal:
        interval, dated = reader.last_argument(values.pop(), columns.pop()), False
    else:
        interval, dated = Interval.always(), False
    reader.end()
    return Fact(predicate, tuple(values), interval), dated


class _FactReader:
    """A position in the text of one fact, and the errors that point at it."""

    def __init__(self, text: str, source: str, line: int) -> None:
        self.text, self.source, self.line, self.at = text, source, line, 0

    def error(self, code: str, message: str, at: int, help: str | None = None, length: int = 1) -> TidelogError:
        before = self.text[:at]
        start = before.rfind("\n") + 1
        shown = self.text[start:].split("\n", 1)[0]
        place = Place(self.source, self.line + before.count("\n"), at - start + 1, length, shown)
        return TidelogError(Diagnostic(code, message, place, _LAW, help))

    def skip(self, char: str) -> bool:
        found = self.text.startswith(char, self.at)
        self.at += found
        return found

    def take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if not match:
            raise self.unexpected(wanted)
        self.at = match.end()
        return match

    def unexpected(self, wanted: str) -> TidelogError:
        at = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        found = f"`{self.text[at]}`" if at < len(self.text) else "the end"
        return self.error("TL201", f"expected {wanted}, found {found}", at, _help_for(self.text[at : at + 2]))

    def arguments(self) -> tuple[list[Value], list[int]]:
        """The values and where each begins."""
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
            # A dot behind a point is the end of the fact: no time ends with one.
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
            found = error.diagnostics[0]
            raise self.error(found.code, found.message, at, found.law, len(text)) from None

    def last_argument(self, value: Value, at: int) -> Interval:
        if not isinstance(value, Fraction) or value.denominator != 1 or value < 0:
            message = f"the time of a temporal fact is a natural number, not `{format_value(value)}`"
            raise self.error("TL202", message, at, "write the time with @ instead: P(a)@7")
        return Interval.point(value)

    def end(self) -> None:
        match = _END.match(self.text, self.at)
        if not match or match.end() != len(self.text):
            raise self.unexpected("the end of the fact")


def _help_for(found: str) -> str | None:
    if found.startswith('"'):
        return 'a quoted constant ends with a quote; inside it, write \\" for a quote'
    if found == ":-":
        return "this is a rule; rules belong into the rule file"
    if found[:1] in ("%", "#"):
        return f"`{found[0]}` starts a comment; put a constant that contains it in quotes"
    return None

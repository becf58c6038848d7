"""Errors as values: a code, a message, a place, the law that was broken and how to fix it.

Everything that a user can do wrong ends in a `TidelogError` that carries one or several `Diagnostic`s. A diagnostic
renders like a compiler's: the message, `file:line:column`, the line with a caret, the law, the help. The codes, with
their titles, laws and examples, are declared in `tidelog.diagnostics`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tidelog.diagnostics.catalogue import CATALOGUE

if TYPE_CHECKING:
    from tidelog.streaming.answers import StreamStep

#: The most characters of a source line that an error shows.
MAX_LINE_WIDTH = 160
#: From this number on, diagnostics that differ only in their places are rendered as one with a count.
MIN_REPETITIONS = 3
#: The most further places that such a diagnostic lists.
_MAX_PLACES = 5


@dataclass(frozen=True, slots=True)
class Place:
    """A span of one line of a source; lines and columns count from 1."""

    source: str
    line: int
    column: int
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: `law` states the rule of the language that was broken, `help` the way out.

    Unless given, both are those of the code's entry in the catalogue. A warning does not stop the command, unless the
    user asks for strictness.
    """

    code: str
    message: str
    place: Place | None = None
    law: str | None = None
    help: str | None = None
    severity: Literal["error", "warning"] = "error"

    def __post_init__(self) -> None:
        entry = CATALOGUE.get(self.code)
        if entry is not None:
            object.__setattr__(self, "law", self.law or entry.law)
            object.__setattr__(self, "help", self.help or entry.help)

    def render(self) -> str:
        """Render the diagnostic over several lines: message, source line with a caret, law, help."""
        place = f"{self.place}: " if self.place else ""
        lines = [f"{place}{self.severity}[{self.code}]: {self.message}"]
        if self.place and self.place.text:
            number = str(self.place.line)
            margin = " " * len(number)
            excerpt, column = _excerpt(self.place.text.rstrip("\r\n").replace("\t", " "), self.place.column)
            caret = " " * (column - 1) + "^" * max(1, min(self.place.length, MAX_LINE_WIDTH - column))
            lines += [f" {number} | {excerpt}", f" {margin} | {caret}"]
        if self.law:
            lines.append(f"  law: {self.law}")
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


def render_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    """Render diagnostics in order; those that differ only in their places appear once, with a count.

    >>> places = [Place("rules.dmtl", line, 5) for line in (2, 4, 9)]
    >>> print(render_diagnostics(Diagnostic("TL102", "Hot has 1 argument here but 2 at 1:1", p) for p in places))
    rules.dmtl:2:5: error[TL102]: Hot has 1 argument here but 2 at 1:1
      law: a predicate has the same number of arguments everywhere
      and 2 more times, at rules.dmtl:4:5, rules.dmtl:9:5
    """
    groups: dict[Diagnostic, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        groups.setdefault(replace(diagnostic, place=None), []).append(diagnostic)
    blocks: list[str] = []
    for same in groups.values():
        if len(same) < MIN_REPETITIONS:
            blocks += [diagnostic.render() for diagnostic in same]
            continue
        places = [str(diagnostic.place) for diagnostic in same[1:] if diagnostic.place]
        listed = ", ".join(places[:_MAX_PLACES]) + (", ..." if len(places) > _MAX_PLACES else "")
        where = f", at {listed}" if listed else ""
        blocks.append(f"{same[0].render()}\n  and {len(same) - 1:,} more times{where}")
    return "\n".join(blocks)


def _excerpt(line: str, column: int) -> tuple[str, int]:
    """Return the part of a long line around a column, and the column within that part."""
    if len(line) <= MAX_LINE_WIDTH:
        return line, column
    start = max(0, column - MAX_LINE_WIDTH // 2)
    head, tail = "..." if start else "", "..." if start + MAX_LINE_WIDTH < len(line) else ""
    return head + line[start : start + MAX_LINE_WIDTH] + tail, column - start + len(head)


class TidelogError(Exception):
    """Bad input. `diagnostics` holds every problem that was found, in the order of the source."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        super().__init__(render_diagnostics(self.diagnostics))


class TidelogWarning(UserWarning):
    """What is allowed in data but probably a mistake, for Python's `warnings`."""


class Inconsistent(TidelogError):
    """Facts violate a constraint, so that nothing can be concluded from them.

    On a stream, `step` is the step that found the violation, with its answers, unless they were returned before.
    """

    step: StreamStep | None = None


class Undecided(TidelogError):
    """The question was not decided within the bounds of the search."""

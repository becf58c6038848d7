"""What goes wrong, as values: a code, a place, the law that was broken and a way out.

Everything that a user can do wrong ends in a `TidelogError` that carries one or several `Diagnostic`s. A diagnostic
renders like a compiler's: the message, `file:line:column`, the line with a caret, the law, the help.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: The most characters of a source line that an error shows.
WIDTH = 160


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of one line of a source; lines and columns count from 1."""

    source: str
    line: int
    column: int
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong. `law` states the rule of the language that was broken, `help` the way out."""

    code: str
    message: str
    place: Place | None = None
    law: str | None = None
    help: str | None = None

    def render(self) -> str:
        place = f"{self.place}: " if self.place else ""
        lines = [f"{place}error[{self.code}]: {self.message}"]
        if self.place and self.place.text:
            number = str(self.place.line)
            margin = " " * len(number)
            shown, column = _window(self.place.text.rstrip("\r\n").replace("\t", " "), self.place.column)
            caret = " " * (column - 1) + "^" * max(1, min(self.place.length, WIDTH - column))
            lines += [f" {number} | {shown}", f" {margin} | {caret}"]
        if self.law:
            lines.append(f"  law: {self.law}")
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a long line around a column, and the column in it."""
    if len(line) <= WIDTH:
        return line, column
    start = max(0, column - WIDTH // 2)
    head, tail = "..." if start else "", "..." if start + WIDTH < len(line) else ""
    return head + line[start : start + WIDTH] + tail, column - start + len(head)


class TidelogError(Exception):
    """Bad input. `diagnostics` holds everything that was found, in the order of the source."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__("\n".join(d.render() for d in found))

"""Read TOML with the place of every key and value, so that errors can name the line.

`tomllib` reads the values and refuses what is not TOML; a scanner over the same text, which is TOML by then, notes
where things are. A path is the keys that lead to a value, with numbers for the items of arrays; () is the file.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.errors import Diagnostic, Place, TidelogError

KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SEPARATORS = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*')[ \t]*""")
_SCALAR = re.compile(
    r"""
    \"{3}(?:\\.|(?!\"{3})[^\\])*\"{3,5}  # the last quotes of the text may stand before the closing three
    | '{3}(?:(?!'{3}).)*'{3,5}
    | "(?:\\.|[^"\\])*"
    | '[^']*'
    | \d{4}-\d\d-\d\d\ \d\d:[^,\]}\s#]*  # a date and a time with a blank between them
    | [^,\]}\s#]+
    """,
    re.DOTALL | re.VERBOSE,
)
_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class Entry:
    """The places of a key and of its value."""

    key: Place
    value: Place


def read_toml(text: str, source: str) -> tuple[dict[str, Any], Mapping[KeyPath, Entry]]:
    """Return the values of a TOML text, and their places."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TidelogError(_syntax_error(str(error), text, source)) from None
    scan = _Scanner(text, source)
    scan.document()
    return values, scan.found


def _syntax_error(message: str, text: str, source: str) -> Diagnostic:
    where = _WHERE.search(message)
    lines = text.splitlines() or [""]
    line, column = (int(where[1]), int(where[2])) if where and where[1] else (len(lines), len(lines[-1]) + 1)
    shown = lines[line - 1] if line <= len(lines) else ""
    said = _WHERE.sub("", message)
    return Diagnostic("TL802", f"this is not TOML: {said[:1].lower()}{said[1:]}", Place(source, line, column, 1, shown))


class _Scanner:
    """Scans a text that is known to be TOML."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        whole = Place(source, 1, 1)
        self.found: dict[KeyPath, Entry] = {(): Entry(whole, whole)}
        #: The number of the last table in every array of tables.
        self.last: dict[KeyPath, int] = {}

    def document(self) -> None:
        prefix: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            prefix = self._header() if self.text[self.at] == "[" else self._pair(prefix)

    def _header(self) -> KeyPath:
        array = self.text.startswith("[[", self.at)
        self.at += 1 + array
        path: KeyPath = ()
        for name, place in self._names():
            if path in self.last:
                path = (*path, self.last[path])
            path = (*path, name)
            self.found.setdefault(path, Entry(place, place))
        if array:
            self.last[path] = self.last.get(path, -1) + 1
            path = (*path, self.last[path])
            self.found[path] = Entry(place, place)
        self.at += 1 + array
        return path

    def _pair(self, prefix: KeyPath) -> KeyPath:
        path = prefix
        places: list[tuple[KeyPath, Place]] = []
        for name, place in self._names():
            path = (*path, name)
            places.append((path, place))
        self.at += 1  # the sign =
        begin = self._skip(_BLANK)
        self._value(path)
        value = self._place(begin, self.at)
        for known, place in places:
            self.found.setdefault(known, Entry(place, value))
        return prefix

    def _names(self) -> list[tuple[str, Place]]:
        """Scan a dotted key; return its parts with their places."""
        names: list[tuple[str, Place]] = []
        while True:
            match = _KEY.match(self.text, self.at)
            assert match is not None
            name = tomllib.loads(f"key = {match[1]}")["key"] if match[1][0] in "\"'" else match[1]
            names.append((name, self._place(match.start(1), match.end(1))))
            self.at = match.end()
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        opening = self.text[self.at]
        if opening not in "[{":
            match = _SCALAR.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            return
        self.at += 1
        number = 0
        while self.text[self._skip(_SEPARATORS)] not in "]}":
            if opening == "{":
                self._pair(path)
            else:
                begin = self.at
                self._value((*path, number))
                place = self._place(begin, self.at)
                self.found[(*path, number)] = Entry(place, place)
                number += 1
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.at

    def _place(self, begin: int, end: int) -> Place:
        line = bisect_right(self.starts, begin)
        column = begin - self.starts[line - 1] + 1
        text = self.lines[line - 1]
        return Place(self.source, line, column, max(1, min(end - begin, len(text.rstrip()) - column + 1)), text)

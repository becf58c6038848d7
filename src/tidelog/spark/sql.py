"""SQL of pipeline files: what Spark says about it in a few words, with the place, and the column that is time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.errors import Place

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_QUERY = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:SELECT|WITH|FROM|TABLE|VALUES|\()", re.IGNORECASE | re.DOTALL
)
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|\w+|.""", re.DOTALL | re.IGNORECASE
)
#: With these at its top, a query's rows are not those of its source, and have no time of their own.
_NOT_ROWS = {"DISTINCT", "GROUP", "HAVING", "UNION", "INTERSECT", "EXCEPT", "MINUS"}
_POSITION = re.compile(r"line (\d+),? pos (\d+)")
#: The last line of a Python traceback.
_RAISED = re.compile(r"^((?:[\w.]+\.)?\w+(?:Error|Exception): .+)$", re.MULTILINE)
_MOST = 300


def is_query(sql: str) -> bool:
    """Whether this asks for rows, and changes nothing."""
    return _QUERY.match(sql) is not None


def selecting(sql: str, column: str) -> str | None:
    """A SELECT over rows with one more column, or None where that cannot be done.

    >>> selecting("SELECT turbine FROM readings WHERE celsius > 80", "at")
    'SELECT turbine , `at` FROM readings WHERE celsius > 80'
    """
    depth, source = 0, None
    words = list(_TOKEN.finditer(sql))
    first = next((word[0].upper() for word in words if word[0].strip() and word[0][:2] not in ("--", "/*")), "")
    if first != "SELECT":
        return None
    for word in words:
        depth += (word[0] == "(") - (word[0] == ")")
        if depth == 0 and word[0].upper() in _NOT_ROWS:
            return None
        if depth == 0 and source is None and word[0].upper() == "FROM":
            source = word.start()
    return None if source is None else f"{sql[:source]}, `{column}` {sql[source:]}"


def said(problem: PySparkException) -> str:
    """What Spark says, without its codes, its plans and its stack."""
    message = (problem.getMessage() or str(problem)).strip()
    message = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", message)
    before, traceback, _ = message.partition(" Traceback (most recent call last)")
    raised = _RAISED.findall(message) if traceback else []
    message = f"{before} {raised[-1]}" if raised else message
    message = re.split(r"\s*SQLSTATE:|\n\s*== |;\s*line \d+|\n\s*\n|\n\s*at ", message)[0]
    message = " ".join(message.split()).rstrip(".;")
    return message if len(message) <= _MOST else message[: _MOST - 3] + "..."


def within(place: Place | None, sql: str, problem: PySparkException) -> Place | None:
    """The place of what Spark complains about: the word itself, where the text stands on one line of the file."""
    position = _POSITION.search(str(problem))
    if place is None or position is None or "\n" in sql:
        return place
    begin = place.text.find(sql, place.column - 1)
    if begin < 0 or position[1] != "1":
        return place
    at = int(position[2])
    word = re.compile(r"`[^`]*`|[\w.]+|.").match(sql, at)
    return replace(place, column=begin + at + 1, length=len(word[0]) if word else 1)

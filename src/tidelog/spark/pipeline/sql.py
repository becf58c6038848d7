"""The SQL of pipeline files: is it a query, add the time column, and locate the errors that Spark reports."""

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
#: With one of these at the top level, the rows of a query are not those of its source, and have no time of their own.
_NOT_ROWS = {"DISTINCT", "GROUP", "HAVING", "UNION", "INTERSECT", "EXCEPT", "MINUS"}
_POSITION = re.compile(r"line (\d+),? pos (\d+)")


def is_query(sql: str) -> bool:
    """Return whether this is a query: it selects rows, and changes nothing."""
    return _QUERY.match(sql) is not None


def add_column(sql: str, column: str) -> str | None:
    """Add a column to a SELECT over rows; None if that is impossible.

    >>> add_column("SELECT turbine FROM readings WHERE celsius > 80", "at")
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


def locate_error(place: Place | None, sql: str, problem: PySparkException) -> Place | None:
    """Return the place of an error that Spark reports: the word itself, if the SQL is on one line of the file."""
    position = _POSITION.search(str(problem))
    if place is None or position is None or "\n" in sql:
        return place
    begin = place.text.find(sql, place.column - 1)
    if begin < 0 or position[1] != "1":
        return place
    at = int(position[2])
    word = re.compile(r"`[^`]*`|[\w.]+|.").match(sql, at)
    return replace(place, column=begin + at + 1, length=len(word[0]) if word else 1)

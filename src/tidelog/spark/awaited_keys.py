"""The table `[awaited]` of a pipeline file: how to say what is awaited, and what stands in the way of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.program import Program
from tidelog.spark.plan import Awaiting
from tidelog.spark.reading import Table

#: Options of `tidelog hypothesise`, and the keys that a file has for them.
_KEYS = {"--timeline integer": 'timeline = "integer"', "--depth N": "depth = N", "--horizon H": "horizon = H"}


def read_awaiting(table: Table, wanted: bool) -> Awaiting:
    """The keys of the table; it is of no use where what is awaited is not `wanted`."""
    found = Awaiting(
        depth=table.number("depth", 0),
        horizon=_points(table, "horizon"),
        probability=table.shares("probability"),
        chances=table.options("chances") or None,
        min_confidence=table.share("min_confidence"),
        max_open=table.number("max_open", 0),
    )
    table.finish()
    if table.values and not wanted:
        table.refuse("TL804", "there is no [sinks.awaited] for what is awaited")
    return found


def obstacles(
    program: Program,
    query: str,
    asked: Awaiting,
    timeline: str | None,
    delays: Mapping[str | None, Fraction],
    place: Place | None,
) -> list[Diagnostic]:
    """Everything in the rules, the delays and the options that stands in the way, in the words of a file."""
    from tidelog.spark.awaiting import checked

    try:
        checked(program, query, asked, timeline, delays)
    except TidelogError as problem:
        return [_of_file(error, place) for error in problem.diagnostics]
    return []


def _points(table: Table, key: str) -> int | None:
    value = table.duration(key)
    if value is not None and value.denominator != 1:
        table.refuse("TL805", f"`{key}` is not a whole number of time points", key)
        return None
    return None if value is None else int(value)


def _of_file(error: Diagnostic, place: Place | None) -> Diagnostic:
    help = error.help
    for option, key in _KEYS.items():
        help = help and help.replace(option, key)
    return replace(error, place=error.place or place, help=help)

"""The table `[awaited]` of a pipeline file: the options of hypothetical answers, and what they do not support."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.program import Program
from tidelog.language.toml_tables import TomlTable
from tidelog.spark.plan.job_plan import Awaiting
from tidelog.timeline.interval import TimelineName

#: Options of `tidelog hypothesise`, and the keys of a pipeline file for them.
_KEYS = {"--timeline integer": 'timeline = "integer"', "--depth N": "depth = N", "--horizon H": "horizon = H"}


def read_awaiting(table: TomlTable, wanted: bool) -> Awaiting:
    """Read the keys of the table; refuse it if hypothetical answers are not `wanted`."""
    found = Awaiting(
        depth=table.number("depth", 0),
        horizon=_read_horizon(table, "horizon"),
        probability=table.probabilities("probability"),
        chances=table.options("chances") or None,
        min_confidence=table.probability("min_confidence"),
        max_open=table.number("max_open", 0),
    )
    table.finish()
    if table.values and not wanted:
        table.refuse("TL804", "there is no [sinks.awaited] for the options in [awaited]")
    return found


def find_awaited_errors(
    program: Program,
    query: str,
    asked: Awaiting,
    timeline: TimelineName | None,
    delays: Mapping[str | None, Fraction],
    place: Place | None,
) -> list[Diagnostic]:
    """Find everything that hypothetical answers do not support, in the terms of a pipeline file."""
    from tidelog.spark.awaiting.awaited_plan import check_awaited

    try:
        check_awaited(program, query, asked, timeline, delays)
    except TidelogError as problem:
        return [_in_file_terms(error, place) for error in problem.diagnostics]
    return []


def _read_horizon(table: TomlTable, key: str) -> int | None:
    value = table.duration(key)
    if value is not None and value.denominator != 1:
        table.refuse("TL805", f"`{key}` is not a whole number of time points", key)
        return None
    return None if value is None else int(value)


def _in_file_terms(error: Diagnostic, place: Place | None) -> Diagnostic:
    help = error.help
    for option, key in _KEYS.items():
        help = help and help.replace(option, key)
    return replace(error, place=error.place or place, help=help)

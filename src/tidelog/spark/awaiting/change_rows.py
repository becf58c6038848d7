"""Changes of hypothetical answers as rows: packed by buckets, typed columns for sinks, lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from tidelog.hypothetical.answer_changes import AWAITED, AnswerChange
from tidelog.hypothetical.ground_facts import Scalar
from tidelog.hypothetical.supported_answers import format_atom
from tidelog.language.fact_text import format_value
from tidelog.language.printer import format_time_term
from tidelog.language.syntax import TemporalAtom
from tidelog.language.syntax_json import value_from_json
from tidelog.language.time_text import format_iso
from tidelog.spark.worker import answer_columns
from tidelog.timeline.interval import Time

#: The variables of the query: its arguments are `Arg1`, `Arg2`, ..., and its time is `Time`.
TIME_VARIABLE = "Time"
_LISTS = ("evidence", "hypotheses", "conditions")


@dataclass(frozen=True)
class ChangeColumns:
    """The Spark types of the arguments of the query and of times."""

    args: tuple[str, ...]
    time: str

    @property
    def schema(self) -> str:
        args = "".join(f"arg{i + 1} {kind}, " for i, kind in enumerate(self.args))
        return (
            f"id string, step bigint, change string, {args}time {self.time}, watermark {self.time}, "
            "evidence array<string>, hypotheses array<string>, "
            f"decided_by {self.time}, confidence double, conditions array<string>"
        )


def build_query_atom(predicate: str, arity: int, temporal: bool) -> str:
    """Build the query for all hypothetical answers of a predicate.

    >>> build_query_atom("Malf", 1, temporal=True)
    'Malf(Arg1,Time)'
    """
    names = [f"Arg{i + 1}" for i in range(arity)] + [TIME_VARIABLE] * temporal
    return f"{predicate}({','.join(names)})" if names else predicate


def format_awaited_atom(atom: TemporalAtom, dates: bool) -> str:
    """Format an atom as pipelines write facts: with its time behind `@`.

    >>> from tidelog.language.syntax import Constant, TimeTerm
    >>> format_awaited_atom(TemporalAtom("Temp", (Constant("wt2"),), TimeTerm(None, 60)), dates=True)
    'Temp(wt2)@1970-01-01T00:01:00Z'
    >>> format_awaited_atom(TemporalAtom("Alarm", (), TimeTerm("T", 1)), dates=False)
    'Alarm@T+1'
    """
    text = format_atom(atom)
    if atom.time is None:
        return text
    time = format_time_term(atom.time)
    before = text[: -len(f"{time})")]
    name = before[:-1] + ("" if before.endswith("(") else ")")
    return f"{name}@{format_iso(Fraction(atom.time.offset)) if dates and not atom.time.variable else time}"


def pack_changes(changes: Sequence[AnswerChange], clock: Time, step: int) -> bytes:
    """Pack the changes at one time of the clock into a payload; `step` numbers them within their bucket."""
    found = [
        {
            "id": change.id,
            "change": change.change,
            "bindings": {name: _encode_value(value) for name, value in change.answer.bindings.items()},
            "evidence": change.answer.evidence,
            "hypotheses": change.answer.hypotheses,
            "decided_by": change.answer.decided_by if change.change == AWAITED else None,
            "confidence": change.answer.confidence,
            "conditions": change.answer.conditions,
        }
        for change in changes
    ]
    at = None if isinstance(clock, float) else ceil(clock)
    return json.dumps({"step": step, "clock": at, "changes": found}).encode()


def make_change_unpacker(columns: ChangeColumns) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `mapInArrow` that unpacks changes into rows."""

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for payload in batch["payload"]:
                yield changes_to_arrow(payload.as_py(), columns)

    return unpack


def changes_to_arrow(payload: bytes, columns: ChangeColumns) -> Any:
    """Return packed changes as an Arrow batch with typed columns."""
    import pyarrow as pa

    found = json.loads(payload)
    changes = found["changes"]

    def times(values: list[int | None]) -> Any:
        unknown = np.array([value is None for value in values], bool)
        ticks = np.array([value or 0 for value in values], np.int64)
        return answer_columns.times_to_arrow(ticks, unknown, 1, columns.time)

    arrays = {name: pa.array([change[name] for change in changes], pa.string()) for name in ("id", "change")}
    arrays["step"] = pa.array([found["step"]] * len(changes), pa.int64())
    for i, kind in enumerate(columns.args, 1):
        known = (change["bindings"].get(f"Arg{i}") for change in changes)
        values = [None if value is None else value_from_json(value) for value in known]
        arrays[f"arg{i}"] = answer_columns.constants_to_arrow(values, kind)
    arrays["time"] = times([change["bindings"].get(TIME_VARIABLE, [None])[0] for change in changes])
    arrays["watermark"] = times([found["clock"]] * len(changes))
    for name in _LISTS:
        arrays[name] = pa.array([change[name] for change in changes], pa.list_(pa.string()))
    arrays["decided_by"] = times([change["decided_by"] for change in changes])
    arrays["confidence"] = pa.array([change["confidence"] for change in changes], pa.float64())
    names = [part.strip().split(" ")[0] for part in columns.schema.split(", ")]
    return pa.RecordBatch.from_arrays([arrays[name] for name in names], names)


def _encode_value(value: Scalar) -> Any:
    """Encode a value as JSON: names as strings, numbers in a list, fractions as strings in a list.

    `value_from_json` decodes it.
    """
    return value if isinstance(value, str) else [value if isinstance(value, int) else str(value)]


def make_line_writer(predicate: str, columns: ChangeColumns) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `mapInArrow` that unpacks changes into lines of text, one per row."""

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for payload in batch["payload"]:
                yield pa.RecordBatch.from_arrays(
                    [pa.array(format_changes(payload.as_py(), predicate, columns))], ["line"]
                )

    return write


def format_changes(payload: bytes, predicate: str, columns: ChangeColumns) -> list[str]:
    """Format changes as lines: `2: awaited P(a)@1 since Q(a)@1 awaits R(a)@2; decided by 3`."""
    found = json.loads(payload)
    dates = columns.time.startswith("timestamp")

    def at(time: int) -> str:
        return format_iso(Fraction(time)) if dates else str(time)

    moment = "" if found["clock"] is None else f"{at(found['clock'])}: "
    names = [f"Arg{i + 1}" for i in range(len(columns.args))]
    written = []
    for change in found["changes"]:
        known = change["bindings"]
        args = ",".join(format_value(value_from_json(known[name])) if name in known else name for name in names)
        answer = (
            predicate
            + (f"({args})" if args else "")
            + (f"@{at(known[TIME_VARIABLE][0])}" if TIME_VARIABLE in known else "")
        )
        parts = {"since": change["evidence"], "awaits": change["hypotheses"], "where": change["conditions"]}
        line = f"{moment}{change['change']} {answer}"
        line += "".join(f" {word} {', '.join(texts)}" for word, texts in parts.items() if texts)
        if change["decided_by"] is not None:
            line += f"; decided by {at(change['decided_by'])}"
        if change["confidence"] is not None:
            line += f"; confidence {change['confidence']:.3g}"
        written.append(line)
    return written

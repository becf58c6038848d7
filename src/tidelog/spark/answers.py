"""Answers as DataFrames: packed answers to typed columns, and which types these are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.components import dependencies, head_atom
from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.data.pieces import Piece
from tidelog.data.symbols import NAME_KIND
from tidelog.language.facts import format_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Constant, Value
from tidelog.spark.facts import Shape
from tidelog.timeline.grid import NEG_INF, POS_INF

_CLOSED = ("both", "left", "right", "neither")


@dataclass(frozen=True)
class Columns:
    """The types of an answer's arguments and of its times, by Spark's names."""

    args: tuple[str, ...]
    time: str
    #: Whether starts and ends are told instead of intervals.
    changes: bool = False

    @property
    def schema(self) -> str:
        args = [f"arg{i + 1} {kind}" for i, kind in enumerate(self.args)]
        if self.changes:
            return ", ".join([*args, "event string", f"time {self.time}", "closed boolean"])
        return ", ".join([*args, f"start {self.time}", f"end {self.time}", "closed string"])


def argument_types(
    program: Program, query: str, arity: int, shapes: Iterable[Shape], background: Dataset
) -> tuple[str, ...]:
    """The type of each argument of the query: that of the columns, constants and facts that can get there."""
    types: dict[tuple[str, int], set[str]] = {}
    for shape in shapes:
        for position, (_, kind) in enumerate(shape.args):
            types.setdefault((shape.predicate, position), set()).add(_argument_type(kind))
    for relation in background.relations.values():
        for position, ids in enumerate(relation.args):
            kinds = {_value_type(background.symbols.value(int(i))) for i in np.unique(ids)}
            types.setdefault((relation.predicate, position), set()).update(kinds)
    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            head = head_atom(rule)
            for position, term in enumerate(head.args if head else ()):
                assert head is not None
                here = types.setdefault((head.predicate, position), set())
                before = len(here)
                if isinstance(term, Constant):
                    here.add(_value_type(term.value))
                else:
                    for atom, _ in dependencies(rule):
                        for i, other in enumerate(atom.args):
                            if other == term:
                                here |= types.get((atom.predicate, i), set())
                changed |= len(here) > before
    return tuple(_common(types.get((query, position), set())) for position in range(arity))


def _argument_type(kind: str) -> str:
    """The type in which constants of a column come back."""
    if kind in ("tinyint", "smallint", "int", "bigint", "float", "double", "string") or kind.startswith("decimal"):
        return kind
    return "string"


def _value_type(value: Value) -> str:
    if isinstance(value, str):
        return "string"
    return "bigint" if value.denominator == 1 and abs(value) < 1 << 63 else "double"


def _common(types: set[str]) -> str:
    if len(types) == 1:
        return next(iter(types))
    if types and types <= {"tinyint", "smallint", "int", "bigint"}:
        return "bigint"
    return "string" if not types or "string" in types else "double"


def unpacker(columns: Columns) -> Any:
    """A function for `mapInArrow`: packed answers to rows."""

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for payload in batch["payload"]:
                yield as_arrow(pieces.unpacked(payload.as_py()), columns)

    return unpack


def as_arrow(piece: Piece, columns: Columns) -> Any:
    """The facts of a piece as an Arrow batch with typed columns."""
    import pyarrow as pa

    arrays = []
    for ids, kind in zip(piece.args[: len(columns.args)], columns.args, strict=True):
        arrays.append(_constants(piece, kind).take(pa.array(ids)))
    lo, hi = piece.lo, piece.hi
    endless_lo, endless_hi = lo == NEG_INF, hi == POS_INF
    names = [f"arg{i + 1}" for i in range(len(columns.args))]
    open_lo, open_hi = endless_lo | (lo & 1 == 1), endless_hi | (hi & 1 == 1)
    if columns.changes:
        # A start is told as all time after it, an end as all time before it.
        events = _constants(piece, "string").take(pa.array(piece.args[-1]))
        start = np.array(events.to_pylist()) == "start"
        ticks, endless = np.where(start, lo >> 1, (hi + 1) >> 1), np.where(start, endless_lo, endless_hi)
        arrays += [events, times(ticks, endless, piece.denominator, columns.time)]
        arrays.append(pa.array(~np.where(start, open_lo, open_hi), pa.bool_()))
        return pa.RecordBatch.from_arrays(arrays, [*names, "event", "time", "closed"])
    arrays.append(times(lo >> 1, endless_lo, piece.denominator, columns.time))
    arrays.append(times((hi + 1) >> 1, endless_hi, piece.denominator, columns.time))
    arrays.append(pa.array(_CLOSED, pa.string()).take(pa.array(open_hi + 2 * open_lo)))
    return pa.RecordBatch.from_arrays(arrays, [*names, "start", "end", "closed"])


def _constants(piece: Piece, kind: str) -> Any:
    """The constants of a piece as an Arrow array of one type; those that have another type are left empty."""
    import pyarrow as pa

    first = piece.offsets[:-1]
    text = np.ones(len(piece.pool), bool)
    text[first] = False
    offsets = piece.offsets - np.arange(len(piece.offsets))
    texts = pa.LargeStringArray.from_buffers(
        len(first), pa.py_buffer(offsets.astype(np.int64).tobytes()), pa.py_buffer(piece.pool[text].tobytes())
    )
    if kind == "string":
        return texts.cast(pa.string())
    numbers = piece.pool[first] != NAME_KIND
    return typed([Fraction(t) if n else t for t, n in zip(texts.to_pylist(), numbers, strict=True)], kind)


def typed(constants: Sequence[Value | None], kind: str) -> Any:
    """Constants as an Arrow array of one type; those that have another type are left empty."""
    import pyarrow as pa

    if kind == "string":
        return pa.array([None if c is None else str(c) for c in constants], pa.string())
    values = [c if isinstance(c, Fraction) else None for c in constants]
    if kind in _INTEGERS:
        return pa.array([int(v) if v is not None and v.denominator == 1 else None for v in values], _INTEGERS[kind]())
    if kind.startswith("decimal"):
        precision, scale = (int(n) for n in kind[8:-1].split(","))
        exact = [None if v is None else Decimal(v.numerator) / Decimal(v.denominator) for v in values]
        return pa.array([None if v is None else round(v, scale) for v in exact], pa.decimal128(precision, scale))
    return pa.array(
        [None if v is None else float(v) for v in values], pa.float32() if kind == "float" else pa.float64()
    )


def _arrow_integers() -> Mapping[str, Any]:
    import pyarrow as pa

    return {"tinyint": pa.int8, "smallint": pa.int16, "int": pa.int32, "bigint": pa.int64}


_INTEGERS = _arrow_integers()


def times(ticks: NDArray[np.int64], endless: NDArray[np.bool_], denominator: int, kind: str) -> Any:
    """Times as an Arrow array of a type; the endless ones are left empty."""
    import pyarrow as pa

    if kind == "double":
        return pa.array(ticks / denominator, pa.float64(), mask=endless)
    if kind == "bigint":
        return pa.array(ticks // denominator, pa.int64(), mask=endless)
    micro = ticks * (10**6 // denominator) if 10**6 % denominator == 0 else _scaled(ticks, denominator)
    zone = None if kind == "timestamp_ntz" else "UTC"
    return pa.array(np.where(endless, 0, micro), pa.timestamp("us", tz=zone), mask=endless)


def _scaled(ticks: NDArray[np.int64], denominator: int) -> NDArray[np.int64]:
    """Microseconds, downwards where a time is between two of them."""
    whole, rest = np.divmod(ticks, denominator)
    return whole * 10**6 + np.array([int(r) * 10**6 // denominator for r in rest], np.int64)


def as_text(batches: Iterator[Any]) -> Iterator[Any]:
    """For `mapInArrow`: packed facts to their text, one a row."""
    import pyarrow as pa

    for batch in batches:
        for payload in batch["payload"]:
            data = pieces.dataset([pieces.unpacked(payload.as_py())])
            yield pa.RecordBatch.from_arrays([pa.array([format_fact(fact, data.dates) for fact in data])], ["fact"])


def lines(batches: Iterator[Any]) -> Iterator[Any]:
    """For `mapInArrow`: payloads of text to their lines, one a row."""
    import pyarrow as pa

    for batch in batches:
        for payload in batch["payload"]:
            yield pa.RecordBatch.from_arrays([pa.array(payload.as_py().decode().split("\n"))], ["row"])


def states(batches: Iterator[Any]) -> Iterator[Any]:
    """For `mapInArrow`: chunks of saved buckets with their addresses and clocks."""
    import pyarrow as pa

    for batch in batches:
        for bucket, payload in zip(batch["bucket"], batch["payload"], strict=True):
            address, _, chunk = payload.as_py().partition(b"\n")
            row = [bucket.as_py(), *json.loads(address), chunk]
            kinds = [pa.int32(), pa.int32(), pa.string(), pa.int32(), pa.binary()]
            columns = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, ["bucket", "stage", "t", "number", "chunk"])

"""Unpack answers, late facts, rows set aside and saved states into typed columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.data import wire_format
from tidelog.data.symbol_kernels import NAME_KIND
from tidelog.data.wire_format import FactBlock
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Value
from tidelog.spark.worker.change_log import unpack_changes
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import CLOSED_ENDS

#: The columns of answers that are no arguments.
_OTHER_COLUMNS = {"start", "end", "closed", "event", "time", "change", "known", "batch"}


def _quote(name: str) -> str:
    """Quote a column name for Spark where it needs it."""
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class AnswerColumns:
    """The Spark types of the arguments and times of answers."""

    args: tuple[str, ...]
    time: str
    #: Whether rows are starts and ends instead of intervals.
    changes: bool = False
    #: The names of the arguments; empty for arg1, arg2, ...
    given_names: tuple[str, ...] = ()
    #: Whether rows are changes of answers, with the columns `change` and `known`.
    corrections: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the arguments, which differ from those of the other columns."""
        taken = {name.lower() for name in self.given_names} & _OTHER_COLUMNS
        if len(self.given_names) == len(self.args) and not taken:
            return list(self.given_names)
        return [f"arg{i + 1}" for i in range(len(self.args))]

    @property
    def schema(self) -> str:
        args = [f"{_quote(name)} {kind}" for name, kind in zip(self.names, self.args, strict=True)]
        more = ["change string", f"known {self.time}"] if self.corrections else []
        if self.changes:
            return ", ".join([*args, "event string", f"time {self.time}", "closed boolean", *more])
        return ", ".join([*args, f"start {self.time}", f"end {self.time}", "closed string", *more])


def make_answer_unpacker(columns: AnswerColumns) -> Any:
    """Make a function for `mapInArrow` that unpacks answers into rows."""

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for payload in batch["payload"]:
                yield unpack_answers(payload.as_py(), columns)

    return unpack


def unpack_answers(payload: bytes, columns: AnswerColumns) -> Any:
    """Return packed answers, or changes of answers, as an Arrow batch."""
    if columns.corrections:
        return changes_to_arrow(payload, columns)
    return answers_to_arrow(wire_format.unpack(payload), columns)


def changes_to_arrow(payload: bytes, columns: AnswerColumns) -> Any:
    """Return packed changes of answers as an Arrow batch: the columns of answers, `change` and `known`."""
    import pyarrow as pa

    sign, known, block = unpack_changes(payload)
    answers, count = answers_to_arrow(block, columns), len(block)
    assert isinstance(known, Fraction)
    ticks = np.full(count, known.numerator)
    times = times_to_arrow(ticks, np.zeros(count, np.bool_), known.denominator, columns.time)
    arrays = [*answers.columns, pa.array([sign] * count, pa.string()), times]
    return pa.RecordBatch.from_arrays(arrays, [*answers.schema.names, "change", "known"])


def answers_to_arrow(piece: FactBlock, columns: AnswerColumns) -> Any:
    """Return the facts of a block as an Arrow batch with typed columns."""
    import pyarrow as pa

    arrays = []
    for ids, kind in zip(piece.args[: len(columns.args)], columns.args, strict=True):
        arrays.append(_constants(piece, kind, ids))
    lo, hi = piece.lo, piece.hi
    endless_lo, endless_hi = lo == NEG_INF, hi == POS_INF
    names = columns.names
    open_lo, open_hi = endless_lo | (lo & 1 == 1), endless_hi | (hi & 1 == 1)
    if columns.changes:
        # A start was packed as all time after it, an end as all time before it.
        events = _constants(piece, "string", piece.args[-1])
        start = np.array(events.to_pylist()) == "start"
        ticks, endless = np.where(start, lo >> 1, (hi + 1) >> 1), np.where(start, endless_lo, endless_hi)
        arrays += [events, times_to_arrow(ticks, endless, piece.denominator, columns.time)]
        arrays.append(pa.array(~np.where(start, open_lo, open_hi), pa.bool_()))
        return pa.RecordBatch.from_arrays(arrays, [*names, "event", "time", "closed"])
    arrays.append(times_to_arrow(lo >> 1, endless_lo, piece.denominator, columns.time))
    arrays.append(times_to_arrow((hi + 1) >> 1, endless_hi, piece.denominator, columns.time))
    arrays.append(pa.array(list(CLOSED_ENDS), pa.string()).take(pa.array(open_hi + 2 * open_lo)))
    return pa.RecordBatch.from_arrays(arrays, [*names, "start", "end", "closed"])


def _constants(piece: FactBlock, kind: str, ids: NDArray[np.int32]) -> Any:
    """Return a column of a block as an Arrow array of one type, with nulls for constants of other types."""
    import pyarrow as pa

    first = piece.offsets[:-1]
    text = np.ones(len(piece.pool), bool)
    text[first] = False
    offsets = piece.offsets - np.arange(len(piece.offsets))
    texts = pa.LargeStringArray.from_buffers(
        len(first), pa.py_buffer(offsets.astype(np.int64).tobytes()), pa.py_buffer(piece.pool[text].tobytes())
    )
    if kind == "string":
        return texts.cast(pa.string()).take(pa.array(ids))
    # A constant of another column may not fit into this type.
    used, places = np.unique(ids, return_inverse=True)
    numbers = piece.pool[first[used]] != NAME_KIND
    values = zip(texts.take(pa.array(used)).to_pylist(), numbers, strict=True)
    return constants_to_arrow([Fraction(t) if n else t for t, n in values], kind).take(pa.array(places))


def constants_to_arrow(constants: Sequence[Value | None], kind: str) -> Any:
    """Return constants as an Arrow array of one type, with nulls for constants of other types."""
    import pyarrow as pa

    if kind == "string":
        return pa.array([None if c is None else str(c) for c in constants], pa.string())
    values = [c if isinstance(c, Fraction) else None for c in constants]
    if kind in _INTEGERS:
        return _to_integers([int(v) if v is not None and v.denominator == 1 else None for v in values], kind)
    if kind.startswith("timestamp"):
        micro = [None if v is None else v.numerator * 10**6 // v.denominator for v in values]
        return pa.array(micro, pa.timestamp("us", tz=None if kind == "timestamp_ntz" else "UTC"))
    if kind.startswith("decimal"):
        precision, scale = (int(n) for n in kind[8:-1].split(","))
        exact = [None if v is None else Decimal(v.numerator) / Decimal(v.denominator) for v in values]
        return pa.array([None if v is None else round(v, scale) for v in exact], pa.decimal128(precision, scale))
    return pa.array(
        [None if v is None else float(v) for v in values], pa.float32() if kind == "float" else pa.float64()
    )


def _to_integers(values: list[int | None], kind: str) -> Any:
    """Return whole numbers as an Arrow array; refuse those that the type cannot hold."""
    import pyarrow as pa

    try:
        return pa.array(values, _INTEGERS[kind]())
    except (OverflowError, pa.ArrowInvalid):
        bits = 63 if kind == "bigint" else _INTEGERS[kind]().bit_width - 1
        number = next(value for value in values if value is not None and not -(1 << bits) <= value < 1 << bits)
        raise TidelogError(
            Diagnostic(
                "TL312",
                f"the answer {number} leaves the {bits} bits of a column of type {kind}",
                law="whole numbers in a DataFrame are exact, in 63 bits",
                help="use a larger unit, or divide: V / 1 is a double",
            )
        ) from None


def _arrow_integers() -> Mapping[str, Any]:
    import pyarrow as pa

    return {"tinyint": pa.int8, "smallint": pa.int16, "int": pa.int32, "bigint": pa.int64}


_INTEGERS = _arrow_integers()


def times_to_arrow(ticks: NDArray[np.int64], endless: NDArray[np.bool_], denominator: int, kind: str) -> Any:
    """Return times as an Arrow array of a type, with nulls for infinite times."""
    import pyarrow as pa

    if kind == "double":
        return pa.array(ticks / denominator, pa.float64(), mask=endless)
    if kind == "bigint":
        return pa.array(ticks // denominator, pa.int64(), mask=endless)
    micro = ticks * (10**6 // denominator) if 10**6 % denominator == 0 else _to_microseconds(ticks, denominator)
    zone = None if kind == "timestamp_ntz" else "UTC"
    return pa.array(np.where(endless, 0, micro), pa.timestamp("us", tz=zone), mask=endless)


def _to_microseconds(ticks: NDArray[np.int64], denominator: int) -> NDArray[np.int64]:
    """Convert ticks to microseconds, rounded down."""
    whole, rest = np.divmod(ticks, denominator)
    return whole * 10**6 + np.array([int(r) * 10**6 // denominator for r in rest], np.int64)


def unpack_fact_text(batches: Iterator[Any]) -> Iterator[Any]:
    """Unpack facts into text, one fact per row; for `mapInArrow`."""
    import pyarrow as pa

    for batch in batches:
        for payload in batch["payload"]:
            data = wire_format.to_dataset([wire_format.unpack(payload.as_py())])
            yield pa.RecordBatch.from_arrays([pa.array([format_fact(fact, data.dates) for fact in data])], ["fact"])


def unpack_lines(batches: Iterator[Any]) -> Iterator[Any]:
    """Unpack text into lines, one line per row; for `mapInArrow`."""
    import pyarrow as pa

    for batch in batches:
        for payload in batch["payload"]:
            yield pa.RecordBatch.from_arrays([pa.array(payload.as_py().decode().split("\n"))], ["row"])


def unpack_saved_states(batches: Iterator[Any]) -> Iterator[Any]:
    """Unpack chunks of saved buckets with their addresses and clocks; for `mapInArrow`."""
    import pyarrow as pa

    for batch in batches:
        for bucket, payload in zip(batch["bucket"], batch["payload"], strict=True):
            address, _, chunk = payload.as_py().partition(b"\n")
            row = [bucket.as_py(), *json.loads(address), chunk]
            kinds = [pa.int32(), pa.int32(), pa.string(), pa.int32(), pa.binary()]
            columns = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, ["bucket", "stage", "t", "number", "chunk"])

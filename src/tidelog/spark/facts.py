"""Fact DataFrames: which columns are arguments and which are times, and how their rows become packed rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.data import pieces
from tidelog.data.columns import Relation
from tidelog.data.symbols import Symbols
from tidelog.data.tables import from_arrow
from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.plan import TIMES, Job
from tidelog.spark.rows import BAD, OUT, STATS, WAKE, Row, addressed, as_arrow, on_clock
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMES = ("time", "start", "end", "closed")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TIMESTAMPS = ("timestamp", "timestamp_ntz", "date")
_LAW = (
    "a fact DataFrame has the arguments in order, then `time`, or `start`, `end` and maybe `closed`, or no time at all"
)


@dataclass(frozen=True)
class Shape:
    """The columns of a fact DataFrame, with Spark's names of their types; `times` is empty for background facts."""

    predicate: str
    args: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...]

    @property
    def time_types(self) -> frozenset[str]:
        return frozenset(kind for name, kind in self.times if name != "closed")


def shape_of(predicate: str, frame: DataFrame, arity: int | None) -> Shape:
    """The shape of a fact DataFrame; `arity` is what the rules have, if they have the predicate."""
    fields = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    times = {name.lower(): (name, kind) for name, kind in fields if name.lower() in _TIMES}
    args = tuple((name, kind) for name, kind in fields if name.lower() not in _TIMES)
    problems: list[Diagnostic] = []

    def problem(message: str, help: str | None = None) -> None:
        problems.append(Diagnostic("TL205", f"facts of {predicate}: {message}", law=_LAW, help=help))

    found = times.keys()
    if found and found != {"time"} and not {"start", "end"} <= found <= {"start", "end", "closed"}:
        problem(f"the columns {', '.join(sorted(found))} do not say when a fact holds", "rename or drop some of them")
    if arity is not None and len(args) != arity:
        problem(
            f"there are {len(args)} columns for arguments ({', '.join(name for name, _ in args) or 'none'}), "
            f"but {predicate} has {arity} in the rules",
            "select the arguments in order, then the time",
        )
    for name, kind in args:
        if _base(kind) in ("array", "map", "struct", "binary", "variant", "interval"):
            problem(f"the column `{name}` of type {kind} cannot be an argument", "cast it to a string or a number")
    for role, (name, kind) in times.items():
        if role == "closed" and kind != "string":
            problem(
                f"the column `{name}` of type {kind} cannot say which ends are closed", "give both, left, right ..."
            )
        if role != "closed" and not _is_number(kind) and kind not in _TIMESTAMPS:
            problem(f"the column `{name}` of type {kind} cannot be a time", "cast it to a timestamp or a number")
    if problems:
        raise TidelogError(problems)
    return Shape(predicate, args, tuple((role, times[role][1]) for role in _TIMES if role in times))


def selected(frame: DataFrame, shape: Shape) -> DataFrame:
    """The columns of a fact DataFrame under the names that workers know."""
    names = {field.name.lower(): field.name for field in frame.schema.fields}
    columns = [frame[f"`{name}`"].alias(f"arg{i + 1}") for i, (name, _) in enumerate(shape.args)]
    return frame.select(*columns, *(frame[f"`{names[role]}`"].alias(role) for role, _ in shape.times))


def packer(
    job: Job, shape: Shape, keys: tuple[int, ...], *, timed: bool, set_aside: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `mapInArrow`: rows of a fact DataFrame to packed rows; `timed` where they drive a clock.

    A row with an empty argument or time is an error, or is `set_aside`.
    """

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                rows = list(packed_rows(job, shape, batch, timed, set_aside))
                yield as_arrow(rows, keys, timed=timed)

    return pack


def packed_rows(job: Job, shape: Shape, batch: Any, timed: bool, set_aside: bool) -> Iterator[Row]:
    """The facts of an Arrow batch as packed rows."""
    if set_aside:
        batch, bad = _without_bad(shape, batch)
        if bad:
            yield Row(0, OUT, BAD, bad)
    batch = _endless(batch)
    symbols = Symbols()
    source = f"facts of {shape.predicate}"
    columns = from_arrow(batch.schema.names, batch.columns, batch.num_rows, shape.predicate, source, symbols)
    (relation,) = columns.relations.values()
    tick, dates = columns.denominator, columns.dates
    yield from sent(job, symbols, tick, dates, relation, timed)
    # Here each fact is seen once; later some are copied.
    yield Row(0, OUT, STATS, json.dumps({"facts_in": len(relation)}).encode())


def sent(job: Job, symbols: Symbols, tick: int, dates: bool, relation: Relation, timed: bool) -> Iterator[Row]:
    """Facts of the input as rows for the buckets that they go to, and, where they drive the clock, for it."""
    yield from addressed(symbols, tick, dates, relation, job.routes.get(relation.predicate, ()))
    if TIMES in job.routes:
        yield from addressed(symbols, tick, dates, _times(job, relation), job.routes[TIMES])
    if timed:
        begins = pieces.begins(relation)
        known = begins[begins > NEG_INF]
        if len(known):
            on_clock(Fraction(int(known.min()), tick))
            yield Row(0, 0, WAKE, b"", on_clock(Fraction(int(known.max()), tick)))


def _times(job: Job, relation: Relation) -> Relation:
    """The times that every bucket has to know: all of the input's own, or where it begins."""
    ends = pieces.begins(relation)
    if job.parts[-1].at == "input":
        stops = np.where(relation.hi == POS_INF, POS_INF, (relation.hi + 1) >> 1)
        ends = np.concatenate([ends, stops])
    ends = np.unique(ends[(ends > NEG_INF) & (ends < POS_INF)])
    if job.parts[-1].at != "input":
        ends = ends[:1]
    return Relation(TIMES, 0, np.empty((0, len(ends)), np.int32), 2 * ends, 2 * ends)


def _endless(batch: Any) -> Any:
    """An empty start or end, where `closed` says that this side is open, is infinite."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = batch.schema.names
    if "closed" not in names or not any(batch[name].null_count for name in ("start", "end")):
        return batch
    arrays = {name: batch[name] for name in names}
    for name, infinite, words in (("start", "-inf", ["right", "neither"]), ("end", "inf", ["left", "neither"])):
        open_here = pc.and_(pc.is_null(batch[name]), pc.is_in(pc.utf8_lower(batch["closed"]), pa.array(words)))
        if pc.any(open_here).as_py():
            column = batch[name]
            if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
                column = pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%SZ")
            arrays[name] = pc.if_else(open_here, infinite, column.cast(pa.string()))
    return pa.RecordBatch.from_arrays(list(arrays.values()), names)


def _without_bad(shape: Shape, batch: Any) -> tuple[Any, bytes]:
    """The rows whose arguments and times are all there, and the others as JSON Lines with the reason."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad: Any = pa.array(np.zeros(batch.num_rows, bool))
    optional = {"closed"} | ({"start", "end"} if "closed" in batch.schema.names else set())
    for name in batch.schema.names:
        column = batch[name]
        if name not in optional:
            bad = pc.or_(bad, pc.is_null(column, nan_is_null=True))
        elif name != "closed":
            words = ["right", "neither"] if name == "start" else ["left", "neither"]
            bounded = pc.invert(pc.is_in(pc.utf8_lower(batch["closed"]), pa.array(words)))
            bad = pc.or_(bad, pc.and_(pc.is_null(column, nan_is_null=True), bounded))
    if not pc.any(bad).as_py():
        return batch, b""
    renamed = dict(zip(batch.schema.names, [name for name, _ in (*shape.args, *shape.times)], strict=True))
    lines = []
    for row in batch.filter(bad).to_pylist():
        values = {renamed[name]: None if value is None else str(value) for name, value in row.items()}
        missing = [name for name, value in values.items() if value in (None, "nan")]
        reason = f"there is no value for {', '.join(missing)}"
        lines.append(json.dumps({"predicate": shape.predicate, "reason": reason, "row": values}, ensure_ascii=False))
    return batch.filter(pc.invert(bad)), "\n".join(lines).encode()


def time_type(shapes: Mapping[str, Shape], whole: bool) -> str:
    """The type in which times come back; `whole` where the rules have whole numbers only."""
    types = {kind for shape in shapes.values() for kind in shape.time_types}
    stamps = {kind for kind in types if kind in _TIMESTAMPS}
    if stamps and stamps != types:
        raise TidelogError(
            Diagnostic(
                "TL205",
                f"some times are timestamps, others are numbers ({', '.join(sorted(types))})",
                law="the times of a job are all of one kind",
                help="cast the numbers: timestamp_seconds(time)",
            )
        )
    if stamps:
        return "timestamp_ntz" if stamps == {"timestamp_ntz"} else "timestamp"
    return "bigint" if whole and all(kind in _INTEGERS for kind in types) else "double"


def _base(kind: str) -> str:
    return kind.split("<")[0].split("(")[0].split(" ")[0]


def _is_number(kind: str) -> bool:
    return kind in (*_INTEGERS, "float", "double") or _base(kind) == "decimal"

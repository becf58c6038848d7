"""Pack the rows of fact DataFrames, and address them to buckets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tidelog.data import wire_format
from tidelog.data.bad_rows import MOST_ERRORS
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import OPERATIONS, is_deletion, mark_deletions, read_operations, strip_mark
from tidelog.data.relation import Relation
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_reader import read_arrow_columns
from tidelog.data.time_units import find_unit_warnings
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.hidden_predicates import TIMES
from tidelog.spark.plan.fact_columns import FactColumns, RowSelection
from tidelog.spark.plan.job_plan import JobPlan
from tidelog.spark.worker.packed_rows import (
    BAD,
    OUTPUT_STAGE,
    STATS,
    WAKE,
    Row,
    route_facts,
    rows_to_arrow,
    to_spark_clock,
)
from tidelog.timeline.grid import NEG_INF, POS_INF

#: Arrow batches are packed together up to this many rows and bytes: a constant is then looked up and sent less often.
#: With more rows, their arrays no longer fit into caches, or into memory that the process has already.
_MOST_ROWS = 1 << 18
_MOST_BYTES = 1 << 25


def make_packer(
    job: JobPlan, selections: Sequence[RowSelection], keys: tuple[int, ...], *, timed: bool, set_aside: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `mapInArrow` that packs the rows of a DataFrame; `timed` if its facts drive the clock.

    A row with an empty argument or time, or that could not be read, is an error, or is set aside if `set_aside`.
    """

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in _join_batches(batches):
            rows: list[Row] = []
            for selection in selections:
                some = _select_rows(batch, selection)
                if some.num_rows and selection.shape is None:
                    rows.append(_pack_bad_rows(some["row"].to_pylist(), set_aside))
                elif some.num_rows and selection.shape is not None:
                    rows += pack_batch(job, selection.shape, some, timed, set_aside)
            if rows:
                yield rows_to_arrow(rows, keys, timed=timed)

    return pack


def _join_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of Arrow batches in fewer batches."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > _MOST_ROWS or size + batch.nbytes > _MOST_BYTES):
            yield _concatenate(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if waiting:
        yield _concatenate(waiting)


def _concatenate(batches: list[Any]) -> Any:
    """Return the rows of Arrow batches with the same columns as one batch."""
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_struct_array(pa.concat_arrays([batch.to_struct_array() for batch in batches]))


def _select_rows(batch: Any, selection: RowSelection) -> Any:
    """Return the rows of an Arrow batch that a selection means, with the columns that they have by themselves."""
    import pyarrow as pa

    if not selection.places:
        return batch
    arrays = [batch[place] for _, place in selection.places]
    rows = pa.RecordBatch.from_arrays(arrays, [name for name, _ in selection.places])
    return rows if selection.condition is None else rows.filter(batch[selection.condition])


def _pack_bad_rows(lines: list[str], set_aside: bool) -> Row:
    """Pack rows of sources that could not be read, as JSON; unless they are set aside, the first ones are an error."""
    if not set_aside:
        raise TidelogError(describe_bad_row(json.loads(line)) for line in lines[:MOST_ERRORS])
    # As everywhere, with the spaces of Python's JSON.
    text = "\n".join(json.dumps(json.loads(line), ensure_ascii=False) for line in lines)
    return Row(0, OUTPUT_STAGE, BAD, text.encode())


def describe_bad_row(row: dict[str, Any]) -> Diagnostic:
    """Describe a row that could not be read as an error."""
    where = f"{row['file']}, line {row['line']}" if row.get("line") is not None else row["file"]
    help = "correct the row, or set such rows aside: [sinks.aside]"
    return Diagnostic("TL206", f"{where}: {row['reason']}: {str(row['row'])[:200]}", help=help)


def pack_batch(job: JobPlan, shape: FactColumns, batch: Any, timed: bool, set_aside: bool) -> Iterator[Row]:
    """Pack the facts of an Arrow batch, and the deletions among them."""
    if shape.op is not None:
        batch, bad = _split_off_unknown_operations(shape, batch, set_aside)
        if bad:
            yield Row(0, OUTPUT_STAGE, BAD, bad)
    if set_aside:
        batch, bad = _split_off_bad_rows(shape, batch)
        if bad:
            yield Row(0, OUTPUT_STAGE, BAD, bad)
    deleted: list[bool] = []
    if shape.op is not None:
        deleted = [bool(one) for one in read_operations(batch["op"].to_pylist())]
        batch = batch.drop_columns(["op"])
    batch = _fill_infinite_ends(batch)
    symbols = Symbols()
    source = f"facts of {shape.predicate}"
    columns = read_arrow_columns(batch.schema.names, batch.columns, batch.num_rows, shape.predicate, source, symbols)
    tick, dates = columns.denominator, columns.dates
    for relation in mark_deletions(columns, deleted).relations.values():
        yield from route_input_facts(job, symbols, tick, dates, relation, timed)
    # Count here, where each fact occurs once: later some are copied.
    figures: dict[str, Any] = {"facts_in": batch.num_rows}
    if warnings := [found.message for found in find_unit_warnings(job.program.rules, Dataset(symbols, columns))]:
        figures["unit_warnings"] = warnings
    yield Row(0, OUTPUT_STAGE, STATS, json.dumps(figures).encode())


def route_input_facts(
    job: JobPlan, symbols: Symbols, tick: int, dates: bool, relation: Relation, timed: bool
) -> Iterator[Row]:
    """Address facts of the input, or deletions, to their buckets; if `timed`, facts also move the clock."""
    yield from route_facts(symbols, tick, dates, relation, job.routes.get(strip_mark(relation.predicate), ()))
    if TIMES in job.routes:
        yield from route_facts(symbols, tick, dates, _input_times(job, relation), job.routes[TIMES])
    if timed and not is_deletion(relation.predicate):
        begins = wire_format.start_ticks(relation)
        known = begins[begins > NEG_INF]
        if len(known):
            to_spark_clock(Fraction(int(known.min()), tick))
            yield Row(0, 0, WAKE, b"", to_spark_clock(Fraction(int(known.max()), tick)))


def _input_times(job: JobPlan, relation: Relation) -> Relation:
    """Return the times of the input that every bucket has to know: all of them, or only the first."""
    ends = wire_format.start_ticks(relation)
    if job.stages[-1].at == "input":
        stops = np.where(relation.hi == POS_INF, POS_INF, (relation.hi + 1) >> 1)
        ends = np.concatenate([ends, stops])
    ends = np.unique(ends[(ends > NEG_INF) & (ends < POS_INF)])
    if job.stages[-1].at != "input":
        ends = ends[:1]
    return Relation(TIMES, 0, np.empty((0, len(ends)), np.int32), 2 * ends, 2 * ends)


def _fill_infinite_ends(batch: Any) -> Any:
    """Make an empty start or end infinite if `closed` says that this side is open."""
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


def _split_off_bad_rows(shape: FactColumns, batch: Any) -> tuple[Any, bytes]:
    """Return the rows with all arguments and times, and the other rows as JSON Lines with the reason."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad: Any = pa.array(np.zeros(batch.num_rows, bool))
    optional = {"closed", "op"} | ({"start", "end"} if "closed" in batch.schema.names else set())
    for name in batch.schema.names:
        column = batch[name]
        if name not in optional:
            bad = pc.or_(bad, pc.is_null(column, nan_is_null=True))
        elif name in ("start", "end"):
            words = ["right", "neither"] if name == "start" else ["left", "neither"]
            bounded = pc.invert(pc.is_in(pc.utf8_lower(batch["closed"]), pa.array(words)))
            bad = pc.or_(bad, pc.and_(pc.is_null(column, nan_is_null=True), bounded))
    if not pc.any(bad).as_py():
        return batch, b""
    lines = []
    for values in _name_values(shape, batch.filter(bad)):
        missing = [name for name, value in values.items() if value in (None, "nan")]
        lines.append(_describe_row(shape, f"there is no value for {', '.join(missing)}", values))
    return batch.filter(pc.invert(bad)), "\n".join(lines).encode()


def _split_off_unknown_operations(shape: FactColumns, batch: Any, set_aside: bool) -> tuple[Any, bytes]:
    """Return the rows that insert or delete, and the others as JSON Lines; raise TL206 unless they are set aside."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = batch["op"].to_pylist()
    unknown = pa.array([meaning is None for meaning in read_operations(words)], pa.bool_())
    if not pc.any(unknown).as_py():
        return batch, b""
    lines, problems = [], []
    for values in _name_values(shape, batch.filter(unknown)):
        reason = describe_operation(shape.op or "op", values[shape.op or "op"])
        lines.append(_describe_row(shape, reason, values))
        problems.append(f"{reason}: {values}")
    if not set_aside:
        help = "correct the rows, or set them aside: [sinks.aside], or set_aside=True"
        raise TidelogError(
            Diagnostic("TL206", f"facts of {shape.predicate}: {problem}", help=help)
            for problem in problems[:MOST_ERRORS]
        )
    return batch.filter(pc.invert(unknown)), "\n".join(lines).encode()


def describe_operation(column: str, word: str | None) -> str:
    """Say why a word of a column `op` is not an operation."""
    if (word or "").strip().lower() == "u":
        return f"column `{column}`: `{word}` is an update, which needs the row as it was before"
    return f"column `{column}`: `{word}` is not one of {', '.join(OPERATIONS)}"


def _name_values(shape: FactColumns, batch: Any) -> Iterator[dict[str, str | None]]:
    """Yield rows as text, under the names of the user's columns."""
    names = [name for name, _ in (*shape.args, *shape.times)] + ([shape.op] if shape.op else [])
    for row in batch.to_pylist():
        yield {n: None if value is None else str(value) for n, value in zip(names, row.values(), strict=True)}


def _describe_row(shape: FactColumns, reason: str, values: dict[str, str | None]) -> str:
    return json.dumps({"predicate": shape.predicate, "reason": reason, "row": values}, ensure_ascii=False)

"""Write the output of a pipeline to its sinks, each batch once.

A streaming query that fails after a batch was written, and before Spark recorded it, writes the same batch again when
it continues; the batch has the same number and the same rows. So files are written to a staging folder and renamed to
`batch=N` in one step: whole or not at all, and never twice. Kafka records carry a key that identifies the answer, so a
repetition replaces the original. Delta receives the number of the batch. Other sinks may see a batch again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact, Value
from tidelog.spark.job.connect import is_connect_session
from tidelog.spark.job.output import JobOutput
from tidelog.spark.pipeline.hadoop_files import HadoopFolder
from tidelog.spark.pipeline.pipeline_config import FILE_FORMATS, Sink
from tidelog.spark.worker.answer_columns import AnswerColumns, unpack_answers
from tidelog.streaming.alerts import Change, format_change
from tidelog.timeline.interval import CLOSED_ENDS, INF, Interval

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The largest number of rows per file.
_ROWS = 1_000_000
_MARK = "_tidelog.json"


@dataclass(frozen=True)
class SinkWriter:
    """A sink in a run. `owner` identifies the checkpoint, so that its batches are not mistaken for those of another."""

    spark: SparkSession
    sink: Sink
    #: The predicate of the rows, to print them on a terminal.
    predicate: str
    owner: str

    def prepare(self) -> None:
        """Raise TL809 if the folder holds files of another writer; delete files of an unfinished batch."""
        if self.sink.format not in FILE_FORMATS:
            return
        folder = self._folder()
        visible = [name for name in folder.names() if not name.startswith(("_", "."))]
        mark = folder.read_json(_MARK)
        if visible and (mark is None or mark.get("checkpoint") != self.owner):
            whose = "files that tidelog did not write" if mark is None else "batches of another checkpoint"
            raise TidelogError(
                Diagnostic(
                    "TL809",
                    f"{self.sink.path} holds {whose}",
                    self.sink.place,
                    law="a checkpoint writes each batch number once, and would take batches of another for its own",
                    help="choose another path, or delete it together with the checkpoint to start over",
                )
            )
        folder.delete("_staging")
        if mark is None or mark.get("checkpoint") != self.owner:
            folder.write_json(_MARK, {"checkpoint": self.owner})

    def write(self, frame: DataFrame, batch: int, rows: int) -> None:
        """Write one batch with this number of rows."""
        if not rows:
            return
        match self.sink.format:
            case "console":
                _print_lines(format_rows(frame, self.predicate))
            case "kafka":
                self._writer(to_kafka_records(frame)).save()
            case form if form in FILE_FORMATS:
                self._write_batch_files(frame, batch, rows)
            case "delta":
                named = self._writer(frame).option("txnAppId", self.owner).option("txnVersion", str(batch))
                named.save(self.sink.path)
            case _:
                self._writer(frame).save(self.sink.path)

    def require_absent(self) -> None:
        """Raise TL809 if the path of a batch job exists, unless it may be overwritten."""
        if is_connect_session(self.spark):
            return  # `_write_all_files` finds out
        if self.sink.format in FILE_FORMATS and not self.sink.overwrite and self._folder().exists():
            raise TidelogError(self._exists_error())

    def _exists_error(self) -> Diagnostic:
        help = "delete it, choose another path, or set overwrite = true"
        return Diagnostic("TL809", f"{self.sink.path} exists already", self.sink.place, help=help)

    def write_all(self, frame: DataFrame) -> int:
        """Write all rows of a batch job; files appear once all of them are written. Return the number of rows."""
        frame = frame.persist()
        try:
            rows = frame.count()
            if self.sink.format in FILE_FORMATS:
                self._write_all_files(frame, rows)
            else:
                self.write(frame, 0, rows)
            return rows
        finally:
            frame.unpersist()

    def _write_batch_files(self, frame: DataFrame, batch: int, rows: int) -> None:
        folder, name = self._folder(), f"batch={batch}"
        if folder.exists(name):
            return
        staged = f"_staging/{name}"
        self._writer(frame.coalesce(ceil(rows / _ROWS))).mode("overwrite").save(f"{self.sink.path}/{staged}")
        folder.rename(staged, name)

    def _write_all_files(self, frame: DataFrame, rows: int) -> None:
        assert self.sink.path is not None
        if is_connect_session(self.spark):
            self._write_files_by_spark(frame)
            return
        parent, _, name = self.sink.path.rstrip("/").rpartition("/")
        folder = HadoopFolder(self.spark, parent)
        staged = f"_{name}.staged"
        files = frame.coalesce(max(1, ceil(rows / _ROWS)))
        self._writer(files).mode("overwrite").save(f"{parent}/{staged}")
        folder.delete(name)
        folder.rename(staged, name)

    def _write_files_by_spark(self, frame: DataFrame) -> None:
        """Let Spark write the files: over Spark Connect, nothing here can rename a folder of its file systems."""
        from pyspark.errors import PySparkException

        try:
            self._writer(frame).mode("overwrite" if self.sink.overwrite else "error").save(self.sink.path)
        except PySparkException as problem:
            if problem.getCondition() != "PATH_ALREADY_EXISTS":
                raise
            raise TidelogError(self._exists_error()) from None

    def _writer(self, frame: DataFrame) -> Any:
        return frame.write.format(self.sink.format).options(**self.sink.options).mode("append")

    def _folder(self) -> HadoopFolder:
        assert self.sink.path is not None
        return HadoopFolder(self.spark, self.sink.path)

    def print_packed(self, payloads: Iterable[bytes], columns: AnswerColumns) -> None:
        """Print the packed answers of one batch."""
        _print_lines(format_packed_answers(payloads, columns, self.predicate))


def _print_lines(lines: Iterable[str]) -> None:
    """Print the lines of one batch; answers that are taken back come before those that are added."""
    import click

    for line in sorted(lines, key=lambda line: (not line.startswith("-"), line)):
        click.echo(line)


def select_awaited(job: JobOutput, sink: Sink, frame: DataFrame) -> DataFrame:
    """Return the changes of hypothetical answers in the form that the sink takes."""
    return job.awaited_lines(frame) if sink.format == "console" else job.awaited(frame)


def to_kafka_records(frame: DataFrame) -> DataFrame:
    """Convert rows to Kafka records: JSON, with a key that is the same for the same answer.

    An atom holds in maximal intervals, so its arguments and its start identify an answer; of its changes, the last one
    says whether it stands. Hypothetical answers have an `id`.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = frame.columns
    others = ("end", "closed", "change", "known")
    identity = ["id"] if "id" in columns else [name for name in columns if name not in others]
    return frame.select(
        F.to_json(F.struct(*identity), {"ignoreNullFields": "false"}).alias("key"),
        F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value"),
    )


def format_rows(frame: DataFrame, predicate: str) -> Iterator[str]:
    """Format answers as lines, `P(a,b)@[0,3)`, with the sign of changes; rows of one text column stay as they are."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import TimestampNTZType, TimestampType

    if len(frame.columns) == 1:
        yield from (row[0] for row in frame.collect())
        return
    columns = []
    is_dated = False
    for field in frame.schema.fields:
        column = F.col(field.name)
        # Fetch timestamps as numbers: Python's datetimes would depend on the time zone of this machine.
        if isinstance(field.dataType, TimestampNTZType):
            column = F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01', {field.name})")
        elif isinstance(field.dataType, TimestampType):
            column = F.unix_micros(column)
        is_dated |= isinstance(field.dataType, TimestampType | TimestampNTZType)
        columns.append(column.alias(field.name))
    yield from _format_cells(frame.columns, frame.select(*columns).collect(), predicate, is_dated)


def format_packed_answers(payloads: Iterable[bytes], columns: AnswerColumns, predicate: str) -> Iterator[str]:
    """Format packed answers as the same lines, without a DataFrame."""
    import pyarrow as pa

    for payload in payloads:
        batch = unpack_answers(payload, columns)
        is_dated, cells = False, []
        for column in batch.columns:
            is_time = pa.types.is_timestamp(column.type)
            is_dated |= is_time
            cells.append((column.cast(pa.int64()) if is_time else column).to_pylist())
        yield from _format_cells(batch.schema.names, zip(*cells, strict=True), predicate, is_dated)


def _format_cells(names: list[str], rows: Iterable[Sequence[Any]], predicate: str, is_dated: bool) -> Iterator[str]:
    """Format rows of answers with the columns of these names; if `is_dated`, their times are microseconds."""
    unit = 10**6 if is_dated else 1
    for row in rows:
        # The sign of a change comes first; when it was known is not printed.
        sign, cells = (row[-2], row[:-2]) if "change" in names else ("", row)
        if "event" in names:
            *args, event, at, closed = cells
            time = (-INF if event == "start" else INF) if at is None else Fraction(at) / unit
            yield sign + format_change(Change(event, predicate, _to_constants(args), time, closed), is_dated)
        else:
            *args, start, end, closed = cells
            lo, hi = (None if time is None else Fraction(time) / unit for time in (start, end))
            interval = Interval(-INF if lo is None else lo, INF if hi is None else hi, *CLOSED_ENDS[closed])
            yield sign + format_fact(Fact(predicate, _to_constants(args), interval), iso=is_dated)


def _to_constants(cells: Iterable[Any]) -> tuple[Value, ...]:
    return tuple(value if isinstance(value, str) else Fraction(str(value)) for value in cells)

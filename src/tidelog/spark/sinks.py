"""Where the answers of a pipeline go, each batch once.

A streaming query that fails after a batch was written, and before Spark noted it, writes the same batch again when it
goes on; the batch has the same number and holds the same rows. So files are written beside their place and put there
by one rename, as `batch=N`: whole or not at all, and never twice. Records for Kafka carry a key that says which answer
they are, so that a repetition replaces itself. Delta is told the number. Other sinks may see a batch again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_fact
from tidelog.language.syntax import Fact, Value
from tidelog.spark.pipeline import FILES, Sink
from tidelog.spark.storage import Storage
from tidelog.streaming.alerts import Change, change_text
from tidelog.timeline.interval import INF, Interval

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The most rows of a file; a batch with more has several.
_ROWS = 1_000_000
_MARK = "_tidelog.json"


@dataclass(frozen=True)
class Output:
    """A sink in a run: `owner` is the identity of the checkpoint, so that batches of another are not mistaken."""

    spark: SparkSession
    sink: Sink
    #: The predicate of the rows, for those who read them on a terminal.
    predicate: str
    owner: str

    def prepare(self) -> None:
        """Before the query starts: refuse a place that holds what somebody else wrote; drop what was left half done."""
        if self.sink.format not in FILES:
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
                    law="the batches of a checkpoint have numbers, each written once; those of another would count",
                    help="choose another path, or delete it together with the checkpoint to begin again",
                )
            )
        folder.delete("_staging")
        if mark is None or mark.get("checkpoint") != self.owner:
            folder.write_json(_MARK, {"checkpoint": self.owner})

    def write(self, frame: DataFrame, batch: int, rows: int) -> None:
        """One batch, of so many rows."""
        if not rows:
            return
        match self.sink.format:
            case "console":
                self._print(frame)
            case "kafka":
                self._writer(records(frame)).save()
            case form if form in FILES:
                self._put(frame, batch, rows)
            case "delta":
                named = self._writer(frame).option("txnAppId", self.owner).option("txnVersion", str(batch))
                named.save(self.sink.path)
            case _:
                self._writer(frame).save(self.sink.path)

    def refuse_replacing(self) -> None:
        """Before a batch job starts: refuse a place where there is something, unless it may be replaced."""
        if self.sink.format in FILES and not self.sink.overwrite and self._folder().exists():
            help = "delete it, choose another path, or say overwrite = true"
            raise TidelogError(Diagnostic("TL809", f"{self.sink.path} is there already", self.sink.place, help=help))

    def write_once(self, frame: DataFrame) -> int:
        """All answers of a batch job; files appear when all of them are written."""
        frame = frame.persist()
        try:
            rows = frame.count()
            if self.sink.format in FILES:
                self._put_all(frame, rows)
            else:
                self.write(frame, 0, rows)
            return rows
        finally:
            frame.unpersist()

    def _put(self, frame: DataFrame, batch: int, rows: int) -> None:
        folder, name = self._folder(), f"batch={batch}"
        if folder.exists(name):
            return
        staged = f"_staging/{name}"
        self._writer(frame.coalesce(ceil(rows / _ROWS))).mode("overwrite").save(f"{self.sink.path}/{staged}")
        folder.rename(staged, name)

    def _put_all(self, frame: DataFrame, rows: int) -> None:
        assert self.sink.path is not None
        parent, _, name = self.sink.path.rstrip("/").rpartition("/")
        folder = Storage(self.spark, parent)
        staged = f"_{name}.staged"
        files = frame.coalesce(max(1, ceil(rows / _ROWS)))
        self._writer(files).mode("overwrite").save(f"{parent}/{staged}")
        folder.delete(name)
        folder.rename(staged, name)

    def _writer(self, frame: DataFrame) -> Any:
        return frame.write.format(self.sink.format).options(**self.sink.options).mode("append")

    def _folder(self) -> Storage:
        assert self.sink.path is not None
        return Storage(self.spark, self.sink.path)

    def _print(self, frame: DataFrame) -> None:
        import click

        for line in sorted(as_text(frame, self.predicate)):
            click.echo(line)


def records(frame: DataFrame) -> DataFrame:
    """Rows as Kafka's records: JSON, with a key that is the same for the same answer.

    An atom holds in maximal intervals, so that its arguments and its start say which answer it is. What is awaited has
    an `id`.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = frame.columns
    identity = ["id"] if "id" in columns else [name for name in columns if name not in ("end", "closed")]
    return frame.select(
        F.to_json(F.struct(*identity), {"ignoreNullFields": "false"}).alias("key"),
        F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value"),
    )


def as_text(frame: DataFrame, predicate: str) -> Iterator[str]:
    """Answers as lines: `P(a,b)@[0,3)`; what is text already stays as it is."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import TimestampNTZType, TimestampType

    if len(frame.columns) == 1:
        yield from (row[0] for row in frame.toLocalIterator())
        return
    columns = []
    dated = False
    for field in frame.schema.fields:
        column = F.col(field.name)
        # Timestamps are fetched as numbers: as Python's they would depend on the zone of this machine.
        if isinstance(field.dataType, TimestampNTZType):
            column = F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01', {field.name})")
        elif isinstance(field.dataType, TimestampType):
            column = F.unix_micros(column)
        dated |= isinstance(field.dataType, TimestampType | TimestampNTZType)
        columns.append(column.alias(field.name))
    if "event" in frame.columns:
        for *args, event, at, closed in frame.select(*columns).toLocalIterator():
            time = (-INF if event == "start" else INF) if at is None else Fraction(at) / (10**6 if dated else 1)
            yield change_text(Change(event, predicate, _values(args), time, closed), dated)
        return
    for *args, start, end, closed in frame.select(*columns).toLocalIterator():
        lo, hi = (None if time is None else Fraction(time) / (10**6 if dated else 1) for time in (start, end))
        interval = Interval(
            -INF if lo is None else lo,
            INF if hi is None else hi,
            closed in ("both", "left"),
            closed in ("both", "right"),
        )
        yield format_fact(Fact(predicate, _values(args), interval), iso=dated)


def _values(cells: Iterable[Any]) -> tuple[Value, ...]:
    return tuple(value if isinstance(value, str) else Fraction(str(value)) for value in cells)

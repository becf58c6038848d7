"""What reasoning costs on Spark, and how it grows: `make bench-spark`.

Figures are CPU time of the driver, Java and all Python workers together; ratios within one run are what counts. A
stream is measured from the end of its first batch to the end of its last one: what it costs to start a query is paid
once, and left out. Three streams over the same files are compared: Spark's own pass-through; the packed
operator, which brings rows to their buckets and does not reason; and the job as users run it, with its answers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import tidelog as tl
from spark_small import compare as compare_small
from spark_small import sample_cpu
from tidelog.data import wire_format
from tidelog.spark import JobOptions, JobOutput
from tidelog.spark.job import build, stage_frames
from tidelog.spark.job.session import session
from tidelog.spark.worker import batch_worker, bucket, stateful_operator
from tidelog.spark.worker.packed_rows import OUTPUT_STAGE, STATS, Row

PROGRAM = """
Twice(X) :- Hot(X), Diamondminus(0,10] Hot(X).
Alarm(X) :- Twice(X), not Diamondminus[0,60] Served(X).
"""


def holding(lookback: int) -> str:
    """Rules that look back at one moment so long ago: all facts since have to be held, each by itself."""
    return f"""
Twice(X) :- Hot(X), Diamondminus[{lookback},{lookback + 10}] Hot(X).
Alarm(X) :- Twice(X), not Diamondminus[0,60] Served(X).
"""


SCHEMA = "machine string, time bigint"


def cpu_seconds() -> float:
    """The CPU time of this process and of all below it, those that have ended included."""
    return sum(sample_cpu(os.getpid(), ended=True).values())


#: With corrections: by how many files late rows are late, at most.
LATE_FILES = 2


def generate(folder: Path, rows: int, keys: int, files: int, first: int = 0, late: float = 0) -> None:
    """Write readings of `keys` machines into files that follow each other in time.

    A machine reads hot ten times in ten minutes, whatever their number. A part of the rows, `late`, belongs to the
    files before.
    """
    choose = np.random.default_rng(first)
    each = rows // files
    span = span_of(each, keys)
    folder.mkdir(parents=True, exist_ok=True)
    machines = pa.array([f"machine{i}" for i in range(keys)])
    for number in range(first, first + files):
        at = np.sort(choose.integers(0, span, each)) + number * span
        if late:
            moved = choose.random(each) < late
            at[moved] = number * span - 1 - choose.integers(0, LATE_FILES * span, int(moved.sum()))
        names = pa.DictionaryArray.from_arrays(pa.array(choose.integers(0, keys, each)), machines).cast(pa.string())
        path = folder / f"{number:03}.parquet"
        pq.write_table(pa.table({"machine": names, "time": pa.array(at, pa.int64())}), path)
        os.utime(path, (1e9 + number, 1e9 + number))


def span_of(rows: int, keys: int) -> int:
    """Return how many seconds a file with `rows` rows covers."""
    return max(60, rows // keys * 60)


def streamed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


@dataclass(frozen=True)
class Run:
    """A stream that was run: CPU seconds from the end of the first batch up to the end of the last batch with rows, and
    wall seconds of the same; how many answers all of it gave, and the bytes of its checkpoint."""

    cpu: float
    wall: float
    answers: int
    bytes: int


def run(frame: DataFrame, checkpoint: Path, batches: int, count: Callable[[DataFrame], int] | None = None) -> Run:
    """Run a stream over all its files, one batch per file."""
    found = [0]
    marks: list[tuple[float, float]] = []

    def take(rows: DataFrame, _: int) -> None:
        if count is None:
            rows.write.format("noop").mode("overwrite").save()
        else:
            found[0] += count(rows)
        marks.append((cpu_seconds(), time.perf_counter()))

    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    first, last = marks[0], marks[batches - 1]
    size = sum(path.stat().st_size for path in (checkpoint / "state").rglob("*") if path.is_file())
    return Run(last[0] - first[0], last[1] - first[1], found[0], size)


#: The reasoner of a bucket that has none.
NOBODY: Any = None


class Idle(bucket.Bucket):
    """A bucket that takes rows, but does not reason."""

    def step(self, step: bucket.BucketInput) -> list[Row]:
        return [Row(self.number, OUTPUT_STAGE, STATS, b"{}")]

    def save(self) -> bytes:
        return b"nothing"

    @staticmethod
    def new(job: Any, plan: Any, number: int, background: Any) -> Any:
        return Idle(job, plan, number, NOBODY)

    @staticmethod
    def load(job: Any, plan: Any, state: bytes, *, changed: bool = False) -> Any:
        return Idle(job, plan, 0, NOBODY)


class IdleProcessor(stateful_operator.BucketProcessor):
    """The operator, with buckets that do not reason."""

    engine = Idle


def idle_evaluator(job: Any, stage: int, background: Any, between: Any) -> batch_worker.Worker:
    """Do the same as `batch_worker.make_evaluator` without reasoning: bring facts to their buckets."""

    def given(bucket: int, rows: list[Row], known: Any) -> Iterator[list[Row]]:
        wire_format.to_dataset(wire_format.unpack(row.payload) for row in rows if row.payload)
        yield [Row(bucket, OUTPUT_STAGE, STATS, b"{}")]

    return batch_worker.run_per_bucket(job, stage, background, given)


#: How often a stream is tried.
_ATTEMPTS = 5


class Bench:
    """A session, and a folder for its files."""

    def __init__(self, cores: int, folder: Path) -> None:
        self.cores, self.folder = cores, folder
        settings = {"spark.sql.shuffle.partitions": str(cores), "spark.ui.enabled": "false"}
        self.spark = session(f"local[{cores}]", settings=settings)

    def data(self, rows: int, keys: int, files: int, late: float = 0) -> Path:
        folder = self.folder / f"{rows}-{keys}-{files}-{late}"
        if not folder.exists():
            generate(folder, rows, keys, files, late=late)
        return folder

    def job(self, data: Path, program: str = PROGRAM, corrections: int | None = None) -> JobOutput:
        served = self.spark.createDataFrame([("machine0", 0)], SCHEMA)
        facts = {"Hot": streamed(self.spark, data), "Served": served}
        options = JobOptions(corrections=corrections)
        return build.build_job(self.spark, tl.Program.parse(program), "Alarm", facts, options)

    def through(self, data: Path, files: int) -> Run:
        return self._tried(lambda checkpoint: run(streamed(self.spark, data), checkpoint, files))

    def packed(self, data: Path, files: int) -> Run:
        with mock.patch.object(stateful_operator, "BucketProcessor", IdleProcessor):
            return self._tried(lambda checkpoint: run(self.job(data).frame, checkpoint, files))

    def reasoned(self, data: Path, files: int, program: str = PROGRAM, corrections: int | None = None) -> Run:
        job = self.job(data, program, corrections)
        return self._tried(lambda checkpoint: run(job.frame, checkpoint, files, lambda rows: job.answers(rows).count()))

    def batch(self, rows: int, keys: int) -> tuple[float, float, int]:
        """CPU seconds of a batch job, without reasoning and with, and its answers."""
        frame = self.spark.read.schema(SCHEMA).parquet(str(self.data(rows, keys, 4)))
        served = self.spark.createDataFrame([("machine0", 0)], SCHEMA)

        def job() -> JobOutput:
            return build.build_job(
                self.spark,
                tl.Program.parse(PROGRAM),
                "Alarm",
                {"Hot": frame, "Served": served},
                JobOptions(buckets=4 * self.cores),
            )

        with mock.patch.object(stage_frames, "make_evaluator", idle_evaluator):
            plain = job().frame
        begun = cpu_seconds()
        plain.write.format("noop").mode("overwrite").save()
        between = cpu_seconds()
        count = job().answers().count()
        return between - begun, cpu_seconds() - between, count

    def _tried(self, work: Callable[[Path], Run]) -> Run:
        """Runs a stream; once more where the machine was so busy that a worker of Spark's did not start in time."""
        for attempt in range(_ATTEMPTS):
            checkpoint = self.folder / f"checkpoint-{time.monotonic_ns()}"
            try:
                return work(checkpoint)
            except StreamingQueryException as problem:
                if "connect back" not in str(problem) or attempt == _ATTEMPTS - 1:
                    raise
            finally:
                shutil.rmtree(checkpoint, ignore_errors=True)
        raise AssertionError


def show(columns: Sequence[str], cells: Sequence[object]) -> None:
    print(" | ".join(f"{cell:>{max(len(column), 9)}}" for column, cell in zip(columns, cells, strict=True)), flush=True)


STREAM = ("keys", "rows", "Spark alone", "packed", "reasoned", "answers", "packed / Spark", "reasoned / packed")


def compare(bench: Bench, rows: int, keys: int, files: int, *, quiet: bool = False) -> None:
    """The three streams over the same rows; CPU microseconds a row, and how much of it each has of the next."""
    data = bench.data(rows, keys, files)
    through, packed, reasoned = bench.through(data, files), bench.packed(data, files), bench.reasoned(data, files)
    if quiet:
        return
    measured = rows * (files - 1) / files / 1e6
    each = [f"{taken.cpu / measured:.2f}" for taken in (through, packed, reasoned)]
    ratios = [f"{through.cpu / packed.cpu:.2f}", f"{packed.cpu / reasoned.cpu:.2f}"]
    show(STREAM, [f"{keys:,}", f"{rows:,}", *each, f"{reasoned.answers:,}", *ratios])


CORRECTED = ("keys", "rows", "reasoned", "corrected", "1 % late", "changes", "in order", "late", "state MB")


def compare_corrections(bench: Bench, rows: int, keys: int, files: int, *, quiet: bool = False) -> None:
    """The reasoned stream, the same with corrections for the time of two batches, and that with rows as late."""
    length = LATE_FILES * span_of(rows // files, keys)
    data = bench.data(rows, keys, files)
    plain = bench.reasoned(data, files)
    in_order = bench.reasoned(data, files, corrections=length)
    late = bench.reasoned(bench.data(rows, keys, files, 0.01), files, corrections=length)
    if quiet:
        return
    measured = rows * (files - 1) / files / 1e6
    each = [f"{taken.cpu / measured:.2f}" for taken in (plain, in_order, late)]
    ratios = [f"{plain.cpu / taken.cpu:.2f}" for taken in (in_order, late)]
    sizes = f"{plain.bytes / 1e6:.1f}, {late.bytes / 1e6:.1f}"
    show(CORRECTED, [f"{keys:,}", f"{rows:,}", *each, f"{late.answers:,}", *ratios, sizes])


BATCH = ("keys", "rows", "packed", "reasoned", "answers", "reasoned / packed")


def compare_batch(bench: Bench, rows: int, keys: int) -> None:
    plain, reasoned, answers = bench.batch(rows, keys)
    each = [f"{taken / rows * 1e6:.2f}" for taken in (plain, reasoned)]
    show(BATCH, [f"{keys:,}", f"{rows:,}", *each, f"{answers:,}", f"{plain / reasoned:.2f}"])


CORES = ("cores", "keys", "CPU s", "wall s", "rows a second")


def compare_cores(bench: Bench, rows: int, keys: int, files: int) -> None:
    """The reasoned stream, on as many cores of the machine as Spark has."""
    stay_on_cores(bench.cores)
    bench.reasoned(bench.data(rows // 4, keys, files), files)
    for _ in range(2):
        taken = bench.reasoned(bench.data(rows, keys, files), files)
        rate = rows * (files - 1) / files / taken.wall
        show(CORES, [bench.cores, f"{keys:,}", f"{taken.cpu:.1f}", f"{taken.wall:.1f}", f"{rate:,.0f}"])


def stay_on_cores(count: int) -> None:
    """Keep all threads of this process, and of those below it, on some cores of the machine.

    Otherwise Java, its compilers and a Python worker fill more than one core for every core that Spark has, and how
    much faster two are depends on what else the machine does.
    """
    cores = sorted(os.sched_getaffinity(os.getpid()))[:count]
    for process in sample_cpu(os.getpid()):
        for thread in Path(f"/proc/{process}/task").glob("*"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


STATE = ("facts held", "CPU us a row", "checkpoint MB", "bytes a fact")


def compare_states(bench: Bench, rows: int, files: int) -> None:
    """A stream that holds all its facts: what a row costs, and what is on disk, when more and more are held."""
    for more in (1, 2, 4):
        data = bench.data(rows * more, 1000, files * more)
        taken = bench.reasoned(data, files * more, holding(1_000_000_000))
        each = taken.cpu / (rows * more - rows // files) * 1e6
        show(STATE, [f"{rows * more:,}", f"{each:.2f}", f"{taken.bytes / 1e6:.1f}", f"{taken.bytes / rows / more:.1f}"])


#: What a fact that is held takes in a state, about.
_BYTES = 30


def restart(cores: int, folder: Path, megabytes: int) -> None:
    """Builds so much state, stops, starts again, and says how long it takes until there are new answers."""
    each = 1_000_000
    files = max(2, round(megabytes * 1e6 / _BYTES / each))
    rows = files * each
    bench = Bench(cores, folder)
    data, checkpoint = bench.data(rows, 100_000, files), folder / "restart"
    rules = holding((files - 1) * span_of(each, 100_000))
    job = bench.job(data, rules)
    run(job.frame, checkpoint, files, lambda rows: job.answers(rows).count())
    bench.spark.stop()
    held = sum(path.stat().st_size for path in (checkpoint / "state").rglob("*") if path.is_file())
    generate(data, each, 100_000, 1, files)
    begun = time.perf_counter()
    bench = Bench(cores, folder)
    started = time.perf_counter() - begun
    job = bench.job(data, rules)
    first: list[float] = []

    def count(rows: DataFrame) -> int:
        found = job.answers(rows).count()
        if found and not first:
            first.append(time.perf_counter() - begun)
        return found

    run(job.frame, checkpoint, 1, count)
    bench.spark.stop()
    print(f"{rows:,} facts held, {held / 1e6:,.0f} MB of state on disk")
    print(
        f"a restart took {first[0]:.1f} s until the first new answers, {started:.1f} s of it to start Spark", flush=True
    )


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--rows", type=int, default=4_000_000, help="rows of a stream")
    parse.add_argument("--files", type=int, default=5, help="files, and so batches, of a stream")
    parse.add_argument("--keys", default="10,1000,100000")
    parse.add_argument("--batch-rows", type=int, default=20_000_000)
    parse.add_argument("--cores", type=int, default=2)
    parse.add_argument("--warm-ups", type=int, default=2, help="how often all streams are run before they count")
    parse.add_argument("--repeat", type=int, default=3, help="how often a small job is run")
    parse.add_argument("--parts", default="small,stream,corrections,batch,cores,state", help="which of the tables")
    parse.add_argument("--restart", type=int, metavar="MB", help="only this: a restart with so much state")
    options = parse.parse_args()
    keys = [int(number) for number in options.keys.split(",")]
    parts = options.parts.split(",")
    with tempfile.TemporaryDirectory() as name:
        if options.restart:
            restart(options.cores, Path(name), options.restart)
            return
        if "small" in parts:
            print("a small job from nothing: CPU seconds of all its processes")
            compare_small(options.repeat)
        if parts == ["small"]:
            return
        bench = Bench(options.cores, Path(name))
        print("warming up", flush=True)
        for _ in range(options.warm_ups):
            compare(bench, options.rows // 4, 1000, options.files, quiet=True)
        if "stream" in parts:
            print("\nstreams: CPU microseconds a row, and ratios")
            show(STREAM, STREAM)
            for number in keys:
                compare(bench, options.rows, number, options.files)
        if "corrections" in parts:
            compare_corrections(bench, options.rows // 4, 1000, options.files, quiet=True)
            print("\ncorrections: CPU microseconds a row, ratios to the stream without them, state without and with")
            show(CORRECTED, CORRECTED)
            for number in keys:
                compare_corrections(bench, options.rows, number, options.files)
        if "batch" in parts:
            bench.batch(options.batch_rows // 10, 1000)
            print("\nbatch: CPU microseconds a row, and the ratio")
            show(BATCH, BATCH)
            compare_batch(bench, options.batch_rows, 1000)
        if "state" in parts:
            print("\nstate: a stream that holds all its facts")
            show(STATE, STATE)
            compare_states(bench, options.rows // 4, options.files)
        if "cores" in parts:
            print("\ncores: the reasoned stream")
            show(CORES, CORES)
            compare_cores(bench, options.rows, 1000, options.files)
            bench.spark.stop()
            bench = Bench(1, Path(name))
            compare_cores(bench, options.rows, 1000, options.files)
        bench.spark.stop()


if __name__ == "__main__":
    main()

"""What reasoning costs on Spark: the same rows through Spark alone, through the packed operator alone, and reasoned.

Figures are CPU seconds of the driver, Java and all Python workers together, in one warm run; ratios are what counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import tidelog as tl
from tidelog.spark import buckets, operator, reasoning
from tidelog.spark.rows import OUT, STATS, Row
from tidelog.spark.session import session

PROGRAM = """
Twice(X) :- Hot(X), Diamondminus(0,10] Hot(X).
Alarm(X) :- Twice(X), not Diamondminus[0,60] Served(X).
"""


def cpu_seconds() -> float:
    """The CPU time of this process and of all below it, those that have ended included."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            used[int(entry.name)] = sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    found, below = 0.0, [os.getpid()]
    while below:
        pid = below.pop()
        found += used.get(pid, 0.0)
        below += children.get(pid, [])
    return found


def generate(folder: Path, rows: int, keys: int, files: int) -> None:
    """Readings of so many machines, in files that come one after the other."""
    choose = np.random.default_rng(1)
    each = rows // files
    folder.mkdir(parents=True)
    for number in range(files):
        # A machine reads hot about twice a minute, whatever their number.
        time = np.sort(choose.integers(0, max(60, each // keys * 60), each)) + number * max(60, each // keys * 60)
        names = pa.DictionaryArray.from_arrays(
            pa.array(choose.integers(0, keys, each)), pa.array([f"machine{i}" for i in range(keys)])
        ).cast(pa.string())
        path = folder / f"{number:03}.parquet"
        pq.write_table(pa.table({"machine": names, "time": pa.array(time, pa.int64())}), path)
        os.utime(path, (1e9 + number, 1e9 + number))


def streamed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("machine string, time bigint").option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(frame: DataFrame, folder: Path, count: Callable[[DataFrame], int] | None = None) -> tuple[float, float, int]:
    """CPU and wall seconds of a stream over all files, and how many answers it gave."""
    found = [0]

    def take(batch: DataFrame, _: int) -> None:
        if count is None:
            batch.write.format("noop").mode("overwrite").save()
        else:
            found[0] += count(batch)

    checkpoint = folder / f"checkpoint-{time.monotonic_ns()}"
    cpu, wall = cpu_seconds(), time.perf_counter()
    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    figures = cpu_seconds() - cpu, time.perf_counter() - wall, found[0]
    shutil.rmtree(checkpoint, ignore_errors=True)
    return figures


#: The reasoner of a bucket that has none.
NOBODY: Any = None


class Idle(buckets.Bucket):
    """A bucket that takes rows and keeps them in its state, but does not reason."""

    def step(self, step: buckets.Step) -> list[Row]:
        return [Row(self.number, OUT, STATS, b"{}")]

    def save(self) -> bytes:
        return b"nothing"

    @staticmethod
    def new(job: Any, part: Any, number: int, background: Any) -> Any:
        return Idle(job, part, number, NOBODY)

    @staticmethod
    def load(job: Any, part: Any, state: bytes, *, changed: bool = False) -> Any:
        return Idle(job, part, 0, NOBODY)


class IdleProcessor(operator.BucketProcessor):
    """The operator, with buckets that do not reason."""

    engine = Idle


def compare(spark: SparkSession, keys: int, rows: int, folder: Path) -> None:
    data = folder / f"data-{keys}"
    generate(data, rows, keys, 4)
    program = tl.Program.parse(PROGRAM)

    def job() -> reasoning.Tagged:
        served = spark.createDataFrame([("machine0", 0)], "machine string, time bigint")
        return reasoning.tagged(spark, program, "Alarm", {"Hot": streamed(spark, data), "Served": served})

    through = run(streamed(spark, data), folder)
    reasoned_job = job()
    reasoned = run(reasoned_job.frame, folder, lambda batch: reasoned_job.answers(batch).count())
    with mock.patch.object(operator, "BucketProcessor", IdleProcessor):
        idle = run(job().frame, folder)
    print(
        f"{keys:>8,} keys {rows:>11,} rows | CPU s: Spark alone {through[0]:6.1f}, packed {idle[0]:6.1f}, "
        f"reasoned {reasoned[0]:6.1f} ({reasoned[2]:,} answers, {reasoned[1]:.1f} s) | "
        f"packed / Spark {through[0] / idle[0]:.2f}, reasoned / packed {idle[0] / reasoned[0]:.2f}",
        flush=True,
    )


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("--rows", type=int, default=4_000_000)
    parse.add_argument("--keys", default="10,1000,100000")
    parse.add_argument("--cores", type=int, default=2)
    options = parse.parse_args()
    spark = session(
        f"local[{options.cores}]",
        settings={"spark.sql.shuffle.partitions": str(options.cores), "spark.ui.enabled": "false"},
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for turn, keys in enumerate([10, *map(int, options.keys.split(","))]):
            if not turn:
                print("warming up", flush=True)
            compare(spark, keys, options.rows if turn else options.rows // 10, folder / str(turn))
    spark.stop()


if __name__ == "__main__":
    main()

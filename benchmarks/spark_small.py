"""A small job on Spark from nothing, against the smallest stateful PySpark job by hand; a part of `make bench-spark`.

Both read the 54 readings of `examples/turbines`, keep state per turbine, print the same three answers and end. What is
measured is the CPU time of the driver, Java and all Python processes, from the start of the command to its end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parent.parent / "examples" / "turbines"

#: Seconds of heat until a turbine is overheated, the most between two hot readings, and by which a reading may be late.
HOT_FOR, EVERY, LATE = 30, 10, 10


def run_by_hand(folder: Path) -> None:
    """Report overheated turbines with Spark's own stateful operator: the job that one would write without tidelog."""
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Overheated(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle, self.hot = handle, handle.getListState("hot", "at long")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            new = [(int(at),) for frame in rows for at in frame["seconds"]]
            self.hot.appendList(new)
            return self.report(key, timerValues)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
            return self.report(key, timerValues)

        def report(self, key: Any, timer_values: Any) -> Iterator[Any]:
            """Yield the runs of hot readings that nothing can extend any more, and wait for the end of the next."""
            known, runs = timer_values.getCurrentWatermarkInMs() / 1000, list[list[int]]()
            for (at,) in sorted(self.hot.get()):
                if runs and at <= runs[-1][-1] + EVERY:
                    runs[-1].append(at)
                else:
                    runs.append([at])
            ended = [run for run in runs if run[-1] + EVERY < known]
            kept = [(at,) for run in runs[len(ended) :] for at in run]
            self.hot.put(kept) if kept else self.hot.clear()
            if kept:
                self.handle.registerTimer((runs[len(ended)][-1] + EVERY) * 1000 + 1)
            found = [
                (key[0], run[0] + HOT_FOR, run[-1] + EVERY) for run in ended if run[-1] + EVERY >= run[0] + HOT_FOR
            ]
            if found:
                yield pd.DataFrame(found, columns=["turbine", "start", "end"])

        def close(self) -> None:
            pass

    os.environ["PYSPARK_PYTHON"] = sys.executable
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR")
    spark = builder.config("spark.sql.streaming.stateStore.providerClass", provider).getOrCreate()
    readings = spark.readStream.schema("turbine STRING, celsius DOUBLE, at TIMESTAMP").json(str(folder / "readings"))
    hot = readings.withWatermark("at", f"{LATE} seconds").where("celsius > 80")
    grouped = hot.select("turbine", F.unix_seconds("at").alias("seconds"), "at").groupBy("turbine")
    answers = grouped.transformWithStateInPandas(
        Overheated(), "turbine STRING, start BIGINT, end BIGINT", "append", "eventTime"
    )

    def show(batch: DataFrame, _: int) -> None:
        for row in sorted(batch.collect()):
            print(row.turbine, row.start, row.end)

    writer = answers.writeStream.foreachBatch(show).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def measure(command: list[str]) -> tuple[float, float, list[str]]:
    """Run a command; return CPU seconds of all its processes, wall seconds, and the lines that it prints."""
    used: dict[int, float] = {}
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            used |= sample_cpu(process.pid)
            time.sleep(0.05)
        output.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed")
        return sum(used.values()), time.perf_counter() - begun, output.read().splitlines()


def sample_cpu(root: int, *, ended: bool = False) -> dict[int, float]:
    """Return the CPU seconds of a process and of all processes below it; if `ended`, with their children that ended."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            used[int(entry.name)] = sum(int(field) for field in fields[11 : 15 if ended else 13]) / os.sysconf(
                "SC_CLK_TCK"
            )
    found, below = dict[int, float](), [root]
    while below:
        pid = below.pop()
        below += children.get(pid, [])
        if pid in used:
            found[pid] = used[pid]
    return found


def compare(repeat: int) -> None:
    """Run both jobs in turns, and print the CPU seconds of each run and the ratio of their medians."""
    command = "from tidelog.cli.main import main; main()"
    cpu: dict[str, list[float]] = {"by hand": [], "tidelog": []}
    print(f"{'job':>9} | CPU s | wall s | answers")
    for _ in range(repeat):
        for name, seconds in cpu.items():
            with tempfile.TemporaryDirectory() as parent:
                folder = Path(parent) / "turbines"
                shutil.copytree(EXAMPLE, folder)
                job = ["-c", command, "run", str(folder / "pipeline.toml"), "--master", "local[2]", "--quiet"]
                job = [__file__, str(folder)] if name == "by hand" else job
                used, wall, lines = measure([sys.executable, *job])
            seconds.append(used)
            print(f"{name:>9} | {used:5.1f} | {wall:6.1f} | {len(lines)}", flush=True)
    ratio = statistics.median(cpu["tidelog"]) / statistics.median(cpu["by hand"])
    print(f"tidelog / by hand: {ratio:.2f} (medians)")


if __name__ == "__main__":
    parse = argparse.ArgumentParser(description="Run the job by hand.")
    parse.add_argument("folder", type=Path, help="a copy of the example")
    run_by_hand(parse.parse_args().folder)

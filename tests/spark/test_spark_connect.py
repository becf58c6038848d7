"""Real servers of Spark Connect: batch and streaming jobs of a client without Java, and declarative pipelines."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from locations import SOURCES
from processes import kill_all
from shell import Shell

pytestmark = [pytest.mark.connect, pytest.mark.usefixtures("kernels")]

#: Seconds until something has to have happened, on a busy machine.
PATIENCE = 600
SPARK_HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    **os.environ,
    "SPARK_HOME": str(SPARK_HOME),
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": str(SOURCES.parent),
    "SPARK_LOCAL_IP": "127.0.0.1",
}
RULES = "Overheated(X) :- Boxminus[0,15] Diamondminus[0,10] Hot(X)."
ROWS = [("t1", 0), ("t1", 10), ("t1", 20), ("t2", 0), ("t3", 60)]
ANSWER = ["t1", 15, 30, "both"]


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """Start a server on loopback; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", *options, "--class", server]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"], cwd=folder, env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(port, process, folder / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill_all(process)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("server")) as address:
        yield address


#: A session of Connect and one of plain Spark cannot share a process, and other tests have the latter.
CLIENT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import tidelog as tl
from tidelog.spark import JobOptions, awaited, build_job, reason, session
from tidelog.spark.job.session import missing_settings

address, folder = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()
program = tl.Program.parse("Overheated(X) :- Boxminus[0,15] Diamondminus[0,10] Hot(X).")


def show(frame):
    print(json.dumps(sorted([list(row) for row in frame.collect()])))
"""
BATCH = """
hot = spark.createDataFrame({rows}, "turbine string, time bigint")
show(reason(spark, program, "Overheated", {{"Hot": hot}}))
show(reason(spark, program, "Overheated", {{"Hot": hot}}, schemas={{"Hot": "turbine STRING, time BIGINT"}}, buckets=3))
waiting = tl.Program.parse("Malf(X,T) :- Temp(X,T), Temp(X,T+1), Temp(X,T+2).", syntax="tdl")
temp = spark.createDataFrame([("w", 0), ("w", 1)], "turbine string, time bigint")
show(awaited(spark, waiting, "Malf", {{"Temp": temp}}, buckets=2).select("change", "arg1", "time", "hypotheses"))
try:
    reason(spark, program, "Overheated", {{"Hot": hot.select("time")}})
except tl.TidelogError as problem:
    print(problem.diagnostics[0].code)
assert type(session(address)) is type(spark)
"""
STREAM = """
hot = spark.readStream.schema("turbine string, time bigint").option("maxFilesPerTrigger", 1).json(folder + "/in")
try:
    reason(spark, program, "Overheated", {"Hot": hot})
except tl.TidelogError as problem:
    print(problem.diagnostics[0].code)
for key, value in missing_settings(spark).items():
    spark.conf.set(key, value)
job = build_job(spark, program, "Overheated", {"Hot": hot}, JobOptions(buckets=2))


def write(batch, number):
    batch.persist()
    job.answers(batch).write.mode("append").json(folder + "/answers")
    job.late(batch).write.mode("append").json(folder + "/late")
    batch.unpersist()


query = job.frame.writeStream.foreachBatch(write).option("checkpointLocation", folder + "/checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
show(spark.read.json(folder + "/answers").select("arg1", "start", "end", "closed"))
show(spark.read.json(folder + "/late"))
"""


def run_client(code: str, address: str, folder: Path) -> list[object]:
    """Run a program of a client; return the lines that it prints."""
    command = [sys.executable, "-c", CLIENT + code, address, str(folder)]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return [json.loads(line) if line.startswith("[") else line for line in ran.stdout.splitlines()]


def test_a_client_reasons_over_batch_dataframes(server: str, tmp_path: Path) -> None:
    found = run_client(BATCH.format(rows=ROWS), server, tmp_path)
    hypothetical = [["awaited", "w", 0, ["Temp(w)@2"]], ["awaited", "w", 1, ["Temp(w)@2", "Temp(w)@3"]]]
    assert found == [[ANSWER], [ANSWER], hypothetical, "TL205"]


def test_a_client_reasons_over_streams_and_sees_late_facts(server: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, rows in enumerate([ROWS[:3], ROWS[3:], [("t2", 5)]]):
        lines = [json.dumps({"turbine": turbine, "time": t}) + "\n" for turbine, t in rows]
        path = tmp_path / "in" / f"{number}.json"
        path.write_text("".join(lines))
        os.utime(path, (number + 1, number + 1))
    found = run_client(STREAM, server, tmp_path)
    # Time 0 of the second file is late: the first one has moved the clock to 20.
    assert found == ["TL811", [ANSWER], [["Hot(t2)@0"], ["Hot(t2)@5"]]]


PIPELINE = """
rules = "rules.dmtl"
query = "Overheated"
mode = "batch"

[sources.readings]
format = "csv"
path = "readings.csv"
schema = "turbine STRING, time BIGINT"
options = { header = "true" }

[facts]
Hot = "SELECT turbine, time FROM readings"

[sinks.answers]
format = "json"
path = "answers"
"""


def test_a_batch_pipeline_runs_on_a_server(sh: Shell, server: str) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("readings.csv", "turbine,time\n" + "".join(f"{turbine},{t}\n" for turbine, t in ROWS))
    sh.write("job.toml", PIPELINE)
    code = "from tidelog.cli.main import main; main()"
    command = [sys.executable, "-c", code, "run", "job.toml", "--remote", server]
    first, second = (
        subprocess.run(command, cwd=sh.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
        for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    assert "on a Connect server with Spark 4" in first.stderr
    assert "2 buckets" in first.stderr
    assert "1 answer" in first.stderr
    written = [json.loads(line) for file in (sh.folder / "answers").glob("*.json") for line in file.open()]
    assert [list(row.values()) for row in written] == [ANSWER]
    assert second.returncode == 2
    assert "error[TL809]" in second.stderr
    assert "exists already" in second.stderr


DATASETS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
import tidelog as tl
from tidelog.spark import reason

spark = SparkSession.active()
program = tl.Program.parse("{rules}")


@dp.materialized_view
def hot():
    return spark.sql("SELECT turbine, CAST(time AS BIGINT) FROM VALUES {values} AS t(turbine, time)")


@dp.materialized_view
def overheated():
    {before}
    return reason(
        spark, program, "Overheated", {{"Hot": spark.read.table("hot")}}, buckets=2, names=["turbine"]{schemas}
    )
"""
UNDECLARED = """try:
        reason(spark, program, "Overheated", {"Hot": spark.read.table("hot")})
    except tl.TidelogError as problem:
        print(problem)"""


def test_a_declarative_pipeline_has_answers_as_a_materialized_view(tmp_path: Path) -> None:
    (tmp_path / "transformations").mkdir()
    schemas = ', schemas={"Hot": "turbine STRING, time BIGINT"}'
    text = DATASETS.format(rules=RULES, values=", ".join(map(str, ROWS)), schemas=schemas, before=UNDECLARED)
    (tmp_path / "transformations" / "turbines.py").write_text(text)
    (tmp_path / "spark-pipeline.yml").write_text(
        f"name: turbines\nstorage: file://{tmp_path}/storage\nlibraries:\n"
        "  - glob:\n      include: transformations/**\n"
        'configuration:\n  spark.sql.shuffle.partitions: "2"\n'
    )
    command = [str(SPARK_HOME / "bin" / "spark-pipelines"), "run", "--spec", "spark-pipeline.yml"]
    ran = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said[-3000:]
    assert "error[TL813]: Spark may not be asked for the columns of Hot here" in said
    (row,) = pq.read_table(tmp_path / "spark-warehouse" / "overheated").to_pylist()
    assert row == {"turbine": "t1", "start": 15, "end": 30, "closed": "both"}

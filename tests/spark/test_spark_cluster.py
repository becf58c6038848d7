"""The same answers, batch and streaming, where driver and executors are processes of their own: on clusters."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import spark_job
from processes import kill_all
from spark_runs import PATIENCE, Runs
from tidelog.spark.job.java import prepare_java_home

pytestmark = pytest.mark.cluster


def _answers_both_ways(folder: Path, master: str) -> None:
    (folder / "batch").touch()
    with Runs(folder, master) as job:
        job.finish(job.start())
    found = spark_job.answers(folder, "batch")
    for query in spark_job.QUERIES:
        assert found[query] == spark_job.compute_by_batch(query)


def test_executors_beside_the_driver(tmp_path: Path) -> None:
    _answers_both_ways(tmp_path, "local-cluster[2,1,1024]")


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """Spark's own cluster manager on loopback: a master and two workers."""
    home = Path(pyspark.__file__).parent
    java, _ = prepare_java_home(tmp_path / "java.txt")
    environment = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java), "SPARK_LOCAL_IP": "127.0.0.1"}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
        with (tmp_path / "cluster.txt").open("ab") as printed:
            started.append(
                subprocess.Popen(
                    [*command, *arguments],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                )
            )

    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    try:
        start("master.Master", "--port", str(port), "--webui-port", "0")
        _wait_for(port, started[0])
        for number in range(2):
            folder = tmp_path / f"worker{number}"
            where = ["--work-dir", str(folder), "--webui-port", "0", f"spark://127.0.0.1:{port}"]
            start("worker.Worker", "--cores", "1", "--memory", "1g", *where)
        yield f"spark://127.0.0.1:{port}"
    finally:
        for process in reversed(started):
            kill_all(process)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "the master has ended"
        assert time.monotonic() < deadline, "the master does not listen"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)


def test_a_standalone_cluster(tmp_path: Path, standalone: str) -> None:
    _answers_both_ways(tmp_path, standalone)

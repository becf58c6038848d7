"""`tidelog run` and `tidelog demo` as processes of their own: signals, exit codes, what is said and what is not."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from locations import ROOT
from shell import Shell, drop_compilation_notice, start_command
from tidelog.cli.run import _run_unless_stopped
from tidelog.cli.signals import stop_on_signal
from tidelog.errors import TidelogError
from tidelog.spark.job.failures import to_tidelog_error

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.xdist_group("spark")]

PATIENCE = 600


def test_a_bad_file_is_refused_before_spark_starts(sh: Shell) -> None:
    sh.write("rules.dmtl", "A(X) :- B(X).")
    sh.write(
        "bad.toml", 'rules = "rules.dmtl"\nquerry = "A"\n[sources]\n[facts]\n[sinks.answers]\nformat = "console"\n'
    )
    ran = sh("run", "bad.toml")
    assert (ran.code, ran.out) == (2, "")
    assert "bad.toml:2:1: error[TL803]" in ran.err
    assert "did you mean query?" in ran.err
    assert sh("run", "none.toml").code == 2


def test_a_time_that_is_none_is_refused(sh: Shell) -> None:
    assert sh("run", "x.toml", "--until", "soon").code == 2


def test_a_job_stops_on_request_and_the_next_run_goes_on(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "examples" / "turbines", tmp_path / "turbines"))
    waiting = (folder / "readings" / "3.json").rename(folder / "3.json")
    pipeline = folder / "pipeline.toml"
    text = pipeline.read_text().replace('trigger = "available-now"', "")
    pipeline.write_text(text.replace('format = "console"', 'format = "json"\npath = "run/answers"'))

    port = find_free_port()
    first = start_command(tmp_path, "run", "turbines/pipeline.toml", "--metrics", str(port))
    try:
        wait_for(lambda: answers(folder), first)
        wait_for(lambda: 'tidelog_answers_total{predicate="Overheated"} 1.0' in read_metrics(port), first)
        metrics = read_metrics(port)
    finally:
        os.killpg(first.pid, signal.SIGTERM)  # Java gets it, too, as from `timeout` or systemd
        out, err = first.communicate(timeout=PATIENCE)
    said = drop_compilation_notice(err).decode()
    assert (first.returncode, out) == (143, b"")
    assert "Spark's UI is at http://" in said
    assert "stopped; the next run continues from" in said
    assert "continued from" not in said
    assert [line for line in said.splitlines() if "WARN" in line or "Traceback" in line] == []
    assert len(answers(folder)) == 1
    assert re.search(r'tidelog_facts_total\{predicate="\(all\)"\} [1-9]', metrics)
    assert re.search(r"tidelog_step_seconds_count [1-9]", metrics)
    assert re.search(r"tidelog_lag_seconds [1-9]", metrics)

    waiting.rename(folder / "readings" / "3.json")
    second = start_command(tmp_path, "run", "turbines/pipeline.toml", "--until", "2026-01-31T10:02:40Z")
    out, err = second.communicate(timeout=PATIENCE)
    assert (second.returncode, out) == (0, b""), err.decode()
    (said,) = [line for line in err.decode().splitlines() if line.startswith("continued from")]
    assert re.fullmatch(
        r"continued from .*: [0-9.,]+ MB of state restored in [0-9]+ buckets?, [0-9.]+ s for the .*", said
    )
    assert sorted((row["arg1"], row["start"][11:19], row["end"][11:19]) for row in answers(folder)) == [
        ("t1", "10:00:50", "10:01:30"),
        ("t3", "10:01:30", "10:01:40"),
        ("t3", "10:02:20", "10:02:30"),
    ]


def find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def read_metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_work_that_is_no_stream_is_stopped_with_its_jobs(asked: signal.Signals) -> None:
    cancelled = threading.Event()

    def work() -> str:
        os.kill(os.getpid(), asked)
        assert cancelled.wait(PATIENCE)
        raise RuntimeError("the job was cancelled")

    job: Any = SimpleNamespace(spark=SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=cancelled.set)))
    with stop_on_signal() as stop:
        assert _run_unless_stopped(job, stop, work) is None
    assert stop.signal == asked
    with stop_on_signal() as stop:
        assert _run_unless_stopped(job, stop, lambda: "done") == "done"
        with pytest.raises(ZeroDivisionError):
            _run_unless_stopped(job, stop, lambda: 1 / 0)


def test_the_demo_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if tool.name != "java" and not os.path.lexists(tools / tool.name):
                (tools / tool.name).symlink_to(tool)
    env = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    assert shutil.which("java", path=str(tools)) is None
    script = "from tidelog.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "demo", "--vehicles", "12", "--seconds", "90"],
        env={**env, "PATH": str(tools), "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "Jam(r0)" in done.stdout
    assert "[49,60)" in done.stdout  # as without Spark
    assert "WARN" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tools"]


def answers(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for path in folder.glob("run/answers/batch=*/*.json") for line in path.open()]


def wait_for(come: object, process: subprocess.Popen[bytes]) -> None:
    assert callable(come)
    deadline = time.monotonic() + PATIENCE
    while not come() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.5)


@pytest.mark.parametrize(
    "said, code, message",
    [
        (
            'Job aborted\nTraceback (most recent call last):\n  File "x.py", line 1\ntidelog.errors.TidelogError: '
            "error[TL303]: a constraint is violated: Hot(a)@3\n  help: look at it\n\n\tat org.apache.X(Y.scala:1)",
            "TL303",
            "a constraint is violated: Hot(a)@3",
        ),
        (
            'Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 1\n\nDuring handling\n'
            "ValueError: no such column",
            "TL810",
            "the job failed: ValueError: no such column",
        ),
        (
            "Job aborted\nCaused by: java.io.FileNotFoundException: File file:/data/1.parquet does not exist\n\tat x",
            "TL810",
            "the job failed: File file:/data/1.parquet does not exist",
        ),
        (
            "Job aborted\nCaused by: org.apache.spark.SparkFileNotFoundException: [FAILED_READ_FILE.FILE_NOT_EXIST] "
            "Encountered error while reading file file:///d/1.json. File does not exist.\n\tat x",
            "TL806",
            "a file of a source is gone: Encountered error while reading file file:///d/1.json. File does not exist.",
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: java.util.concurrent.ExecutionException: "
            "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node. SQLSTATE: XXKST\n"
            "=== Streaming Query ===\nIdentifier: pipeline",
            "TL810",
            "the job failed, the Kafka broker does not answer: Timed out waiting for a node.",
        ),
        (
            "Job aborted\nCaused by: org.apache.kafka.common.errors.TimeoutException: Topic t not there after 9 ms.\n",
            "TL810",
            "the job failed, the Kafka broker does not answer: Topic t not there after 9 ms.",
        ),
    ],
)
def test_what_fails_in_a_worker_is_said_without_its_stack(said: str, code: str, message: str) -> None:
    (found,) = to_tidelog_error(RuntimeError(said), None).diagnostics
    assert (found.code, found.message) == (code, message)


def test_errors_of_ours_stay_what_they_are() -> None:
    problem = TidelogError([])
    assert to_tidelog_error(problem, None) is problem

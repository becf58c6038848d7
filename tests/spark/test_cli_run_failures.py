"""`tidelog run` where Spark is missing, or ends in the middle of a job."""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shell import Shell
from tidelog.errors import TidelogError
from tidelog.spark.job.java_process import explain_lost_java


def test_without_pyspark_there_is_one_error_that_says_how_to_install_it(
    sh: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    sh.write("rules.dmtl", "A(X) :- B(X).")
    sh.write("b.csv", "x,time\na,1\n")
    sh.write(
        "job.toml",
        'rules = "rules.dmtl"\nquery = "A"\nmode = "batch"\n[sources.b]\nformat = "csv"\npath = "b.csv"\n'
        '[facts]\nB = "SELECT x, time FROM b"\n[sinks.answers]\nformat = "console"\n',
    )
    ran = sh("run", "job.toml")
    assert (ran.code, ran.out) == (2, "")
    assert "error[TL801]" in ran.err
    assert "pip install 'tidelog[spark]'" in ran.err


@pytest.fixture
def java() -> Any:
    """Stand in for the Java process of a session."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def _session(process: Any) -> Any:
    return cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process))))


def test_a_java_process_that_is_killed_is_named_and_so_is_its_log(java: Any) -> None:
    java.kill()
    with pytest.raises(TidelogError) as caught, explain_lost_java(_session(java), "spark.log"):
        raise ConnectionRefusedError("Connection refused")
    (error,) = caught.value.diagnostics
    assert (error.code, error.message) == ("TL812", "Spark's Java process has ended, killed by signal 9")
    assert "spark.log" in (error.help or "")


def test_other_errors_stay_what_they_are_while_java_runs(java: Any) -> None:
    with pytest.raises(ValueError, match="other"), explain_lost_java(_session(java), None):
        raise ValueError("other")


class _Fails(socketserver.StreamRequestHandler):
    """Stand in for the receiver of PySpark's counters, whose sender is gone."""

    error: Exception = EOFError()

    def handle(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "shown"), [(EOFError(), False), (ConnectionResetError(), False), (ValueError("a bug"), True)]
)
def test_a_receiver_of_counters_that_receives_no_more_prints_no_traceback(
    java: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, shown: bool
) -> None:
    monkeypatch.setattr(_Fails, "error", error)
    with socketserver.TCPServer(("localhost", 0), _Fails) as server:
        session = _session(java)
        session.sparkContext._accumulatorServer = server
        with explain_lost_java(session, None), socket.create_connection(("localhost", int(server.server_address[1]))):
            server.handle_request()
    assert ("Traceback" in capfd.readouterr().err) is shown

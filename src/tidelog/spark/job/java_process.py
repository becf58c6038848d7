"""The Java process of a Spark session: notice when it has ended, and say so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.job.connect import is_connect_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds that a process which no longer answers may take to end.
_ENDING = 2.0


@contextmanager
def explain_lost_java(spark: SparkSession, log: str | None) -> Iterator[None]:
    """Raise TL812 for an error in the block if Spark's Java process has ended.

    Once it has ended, every call of PySpark fails with an error of the network, such as `Connection refused`.
    """
    if is_connect_session(spark):  # Java runs elsewhere
        yield
        return
    process = getattr(spark.sparkContext._gateway, "proc", None)
    _silence_lost_counters(spark)
    try:
        yield
    except Exception as problem:
        if process is None:  # spark-submit started Java, not this process
            if not isinstance(problem, ConnectionError):
                raise
            raise TidelogError(_lost_java_error(None, log)) from None
        with suppress(TimeoutExpired):
            process.wait(_ENDING if isinstance(problem, ConnectionError) else 0)
        if process.returncode is None:
            raise
        raise TidelogError(_lost_java_error(process.returncode, log)) from None


def _silence_lost_counters(spark: SparkSession) -> None:
    """Let PySpark's receiver of counters end without a traceback when Java, which sends them, is gone."""
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    show = server.handle_error

    def handle_error(request: object, address: object) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            show(request, address)

    server.handle_error = handle_error


def _lost_java_error(code: int | None, log: str | None) -> Diagnostic:
    how = "" if code is None else f", killed by signal {-code}" if code < 0 else f" with exit code {code}"
    where = f"Spark's own messages are in {log}" if log else '[spark] log = "spark.log" keeps Spark\'s own messages'
    help = f"{where}; the usual reason is too little memory. Run it again: finished batches are in the checkpoint"
    return Diagnostic("TL812", f"Spark's Java process has ended{how}", help=help)

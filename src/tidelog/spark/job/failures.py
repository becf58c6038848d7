"""Errors of a running job, from workers, Java or sinks, as errors of tidelog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

#: An error of tidelog in the traceback of a worker, with its law and help.
_OURS = re.compile(r"(?:^|: )error\[(TL\d{3})\]: ([^\n]*)((?:\n  (?:law|help): [^\n]*)*)", re.MULTILINE)
_PART = re.compile(r"^  (law|help): (.*)$", re.MULTILINE)
#: An error in a Python traceback, and the cause that Java names.
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)
_CAUSE = re.compile(r"(?:Caused by: |: )((?:java|org|scala)[\w.$]+(?:Exception|Error)): ([^\n]+)")
_CLASS = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")
#: The last line of a Python traceback in a message of Spark.
_LAST_LINE = re.compile(r"^((?:[\w.]+\.)?\w+(?:Error|Exception): .+)$", re.MULTILINE)
_MAX_LENGTH = 300


def to_tidelog_error(problem: BaseException, log: str | None) -> TidelogError:
    """Convert an error of a job to a `TidelogError`."""
    from pyspark.errors import PySparkException

    if isinstance(problem, TidelogError):
        return problem
    text = str(problem).split("=== Streaming Query ===")[0]
    ours = [
        Diagnostic(code, message.strip(), law=parts.get("law"), help=parts.get("help"))
        for code, message, rest in dict.fromkeys(_OURS.findall(text))
        for parts in [dict(_PART.findall(rest))]
    ]
    if ours:
        return TidelogError(ours)
    message = _find_python_error(text) or _find_java_cause(text)
    if message is None:
        message = (
            shorten_spark_message(problem)
            if isinstance(problem, PySparkException)
            else f"{type(problem).__name__}: {problem}"
        )
    if "FAILED_READ_FILE.FILE_NOT_EXIST" in text:
        help = "restore the file, or give its source options = { ignoreMissingFiles = true }, and run again"
        return TidelogError(Diagnostic("TL806", f"a file of a source is gone: {_shorten(message)}", help=help))
    if "failed to connect back" in text:
        message = "a Python worker did not start within the ten seconds that Spark allows"
        help = "the machine is busy, or a firewall blocks it; run it again: finished batches are in the checkpoint"
        return TidelogError(Diagnostic("TL810", f"the job failed: {message}", help=help))
    if "org.apache.kafka.common.errors.TimeoutException" in text:
        message, help = _CLASS.sub("", _shorten(message)), 'check "kafka.bootstrap.servers", and run it again'
        return TidelogError(
            Diagnostic("TL810", f"the job failed, the Kafka broker does not answer: {message}", help=help)
        )
    help = f"Spark's own messages are in {log}" if log else '[spark] log = "spark.log" keeps Spark\'s own messages'
    return TidelogError(Diagnostic("TL810", f"the job failed: {_shorten(message)}", help=help))


def shorten_spark_message(problem: PySparkException) -> str:
    """Return a message of Spark without its codes, plans and stack traces."""
    message = (problem.getMessage() or str(problem)).strip()
    message = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", message)
    before, traceback, _ = message.partition(" Traceback (most recent call last)")
    raised = _LAST_LINE.findall(message) if traceback else []
    message = f"{before} {raised[-1]}" if raised else message
    message = re.split(r"\s*SQLSTATE:|\n\s*== |;\s*line \d+|\n\s*\n|\n\s*at ", message)[0]
    message = " ".join(message.split()).rstrip(".;")
    return message if len(message) <= _MAX_LENGTH else message[: _MAX_LENGTH - 3] + "..."


def _find_python_error(text: str) -> str | None:
    """Return the error that Python raised in a worker: the last of a chain."""
    if "Traceback (most recent call last)" not in text:
        return None
    found = [match for match in _RAISED.findall(text) if not match[0].startswith(("Py4J", "PythonException"))]
    return f"{found[-1][0]}: {found[-1][1]}" if found else None


def _find_java_cause(text: str) -> str | None:
    found = _CAUSE.findall(text)
    return re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", found[-1][1]) if found else None


def _shorten(text: str) -> str:
    text = " ".join(re.split(r"\s*SQLSTATE:", text)[0].split())
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 3] + "..."

"""What goes wrong in a running job, in words: out of workers, out of Java, out of the sinks."""

from __future__ import annotations

import re

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.sql import said

#: An error of ours as a worker's traceback shows it, with the lines that belong to it.
_OURS = re.compile(r"(?:^|: )error\[(TL\d{3})\]: ([^\n]*)((?:\n  (?:law|help): [^\n]*)*)", re.MULTILINE)
_PART = re.compile(r"^  (law|help): (.*)$", re.MULTILINE)
#: The last line of a Python traceback, and the cause that Java names.
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)
_CAUSE = re.compile(r"(?:Caused by: |: )((?:java|org|scala)[\w.$]+(?:Exception|Error)): ([^\n]+)")
_CLASS = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")
_MOST = 300


def in_words(problem: BaseException, log: str | None) -> TidelogError:
    """An error of a job as one of tidelog's."""
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
    message = _raised(text) or _caused(text)
    if message is None:
        message = said(problem) if isinstance(problem, PySparkException) else f"{type(problem).__name__}: {problem}"
    if "FAILED_READ_FILE.FILE_NOT_EXIST" in text:
        help = "bring the file back, or give its source options = { ignoreMissingFiles = true }, and run again"
        return TidelogError(Diagnostic("TL806", f"a file of a source is gone: {_short(message)}", help=help))
    if "failed to connect back" in text:
        message = "a Python worker did not start within the ten seconds that Spark gives it"
        help = "the machine is busy, or a firewall is in the way; run it again: what was done is in the checkpoint"
        return TidelogError(Diagnostic("TL810", f"the job failed: {message}", help=help))
    if "org.apache.kafka.common.errors.TimeoutException" in text:
        message, help = _CLASS.sub("", _short(message)), 'look at "kafka.bootstrap.servers", and run it again'
        return TidelogError(
            Diagnostic("TL810", f"the job failed, Kafka's broker does not answer: {message}", help=help)
        )
    help = f"Spark's own words are in {log}" if log else '[spark] log = "spark.log" keeps Spark\'s own words'
    return TidelogError(Diagnostic("TL810", f"the job failed: {_short(message)}", help=help))


def _raised(text: str) -> str | None:
    """What Python raised in a worker: the last of a chain."""
    if "Traceback (most recent call last)" not in text:
        return None
    found = [match for match in _RAISED.findall(text) if not match[0].startswith(("Py4J", "PythonException"))]
    return f"{found[-1][0]}: {found[-1][1]}" if found else None


def _caused(text: str) -> str | None:
    found = _CAUSE.findall(text)
    return re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", found[-1][1]) if found else None


def _short(text: str) -> str:
    text = " ".join(re.split(r"\s*SQLSTATE:", text)[0].split())
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."

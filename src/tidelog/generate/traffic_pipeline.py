"""The traffic of `traffic` as a pipeline: reports and visits as files of JSON, the rules, and a pipeline file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidelog.generate import traffic
from tidelog.language.facts import parse_fact
from tidelog.language.syntax import Fact

BEGIN = datetime(2026, 1, 31, 10, tzinfo=UTC)
#: As many files a source, each of a stretch of time; a job reads one after the other, as if they came one by one.
FILES = 3

_PIPELINE = """\
# Vehicles report once a second how fast they drive, and which road they are on. Where are the jams?
name = "traffic"
rules = "traffic.dmtl"
query = "Jam"
checkpoint = "run/checkpoint"
trigger = "available-now" # read what is there, and end; "5s" for a job that goes on

[sources.reports]
format = "json"
path = "reports"
schema = "vehicle STRING, kmh INT, at TIMESTAMP"
time = "at"
options = { maxFilesPerTrigger = 1 }

[sources.visits]
format = "json"
path = "visits"
schema = "vehicle STRING, road STRING, entered TIMESTAMP, left TIMESTAMP"
options = { maxFilesPerTrigger = 1 }

[facts]
Drive = "SELECT vehicle FROM reports WHERE kmh > 0"
Halt = "SELECT vehicle FROM reports WHERE kmh = 0"

[facts.On]
sql = "SELECT vehicle, road, entered, left, 'left' AS closed FROM visits"
start = "entered"
end = "left"
closed = "closed"

[sinks.answers]
format = "json"
path = "run/jams"

[sinks.metrics]
path = "run/metrics.jsonl"
"""


def write(folder: Path, vehicles: int, seconds: int, *, seed: int = 0) -> Path:
    """Write it all into a folder; the path of the pipeline file, and as many facts as the job will read."""
    facts = [parse_fact(line)[0] for line in traffic.facts(vehicles, seconds, seed=seed)]
    stretch = -(-seconds // FILES)
    for name, make in (("reports", _report), ("visits", _visit)):
        (folder / name).mkdir(parents=True)
        for number in range(FILES):
            begin, end = number * stretch, (number + 1) * stretch
            rows = (make(fact) for fact in facts if begin <= fact.interval.lo < end)
            _write_lines(folder / name / f"{number + 1}.json", rows, number)
    (folder / "traffic.dmtl").write_text(traffic.program(), encoding="utf-8")
    path = folder / "pipeline.toml"
    path.write_text(_PIPELINE, encoding="utf-8")
    return path


def _report(fact: Fact) -> dict[str, object] | None:
    if fact.predicate not in ("Drive", "Halt"):
        return None
    return {"vehicle": fact.args[0], "kmh": 50 if fact.predicate == "Drive" else 0, "at": _moment(fact.interval.lo)}


def _visit(fact: Fact) -> dict[str, object] | None:
    if fact.predicate != "On":
        return None
    entered, left = _moment(fact.interval.lo), _moment(fact.interval.hi)
    return {"vehicle": fact.args[0], "road": fact.args[1], "entered": entered, "left": left}


def _moment(second: object) -> str:
    return (BEGIN + timedelta(seconds=float(str(second)))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write_lines(path: Path, rows: Iterable[dict[str, object] | None], number: int) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if row), encoding="utf-8")
    # A stream of files takes the oldest first.
    moment = BEGIN.timestamp() + number
    os.utime(path, (moment, moment))

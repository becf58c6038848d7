"""The traffic simulation as the input of a Spark pipeline: JSON files of reports and visits, rules, a pipeline file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidelog.generate import traffic
from tidelog.generate.rule_files import read_rules
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Fact

BEGIN = datetime(2026, 1, 31, 10, tzinfo=UTC)
#: Files per source, each of one time range; a job reads them one after the other, as if they arrived that way.
FILES = 3

_PIPELINE = """\
# Vehicles report once a second how fast they drive, and which road they are on. Where are the jams?
name = "traffic"
rules = "traffic.dmtl"
query = "Jam"
checkpoint = "run/checkpoint"
trigger = "available-now" # process the data that is there, then stop; "5s" runs until stopped

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


def write_pipeline(folder: Path, vehicles: int, seconds: int, *, seed: int = 0) -> Path:
    """Write data, rules and pipeline file into a folder; return the path of the pipeline file."""
    facts = [parse_fact(line)[0] for line in traffic.generate_facts(vehicles, seconds, seed=seed)]
    seconds_per_file = -(-seconds // FILES)
    for name, to_row in (("reports", _to_report), ("visits", _to_visit)):
        (folder / name).mkdir(parents=True)
        for number in range(FILES):
            begin, end = number * seconds_per_file, (number + 1) * seconds_per_file
            rows = (to_row(fact) for fact in facts if begin <= fact.interval.lo < end)
            _write_lines(folder / name / f"{number + 1}.json", rows, number)
    (folder / "traffic.dmtl").write_text(read_rules("traffic.dmtl"), encoding="utf-8")
    path = folder / "pipeline.toml"
    path.write_text(_PIPELINE, encoding="utf-8")
    return path


def _to_report(fact: Fact) -> dict[str, object] | None:
    if fact.predicate not in ("Drive", "Halt"):
        return None
    return {
        "vehicle": fact.args[0],
        "kmh": 50 if fact.predicate == "Drive" else 0,
        "at": _format_second(fact.interval.lo),
    }


def _to_visit(fact: Fact) -> dict[str, object] | None:
    if fact.predicate != "On":
        return None
    entered, left = _format_second(fact.interval.lo), _format_second(fact.interval.hi)
    return {"vehicle": fact.args[0], "road": fact.args[1], "entered": entered, "left": left}


def _format_second(second: object) -> str:
    return (BEGIN + timedelta(seconds=float(str(second)))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write_lines(path: Path, rows: Iterable[dict[str, object] | None], number: int) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if row), encoding="utf-8")
    # Spark reads the oldest file first.
    written_at = BEGIN.timestamp() + number
    os.utime(path, (written_at, written_at))

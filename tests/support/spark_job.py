"""A small streaming job, as a script that can be killed, and what it has to answer.

    python spark_job.py FOLDER MASTER

reads `FOLDER/beat` and `FOLDER/alarm` file by file, answers `QUERIES` one after the other into parquet files with
Spark's own sink, each with a checkpoint of its own, and when all is read writes what Spark then finds there to
`FOLDER/answers.json`. Started again it goes on. If there is a `FOLDER/batch`, it first answers over the files as a
batch. If there is a `FOLDER/corrections`, some beats come late or are deleted later, and the answers are those that
stand in the end.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import tidelog as tl
from tidelog.timeline.interval import Interval

PROGRAM = """
Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).
Bad(Z) :- Down(X), In(X,Z), Diamondminus[0,2] Alarm(Z).
"""
#: Bad takes two stages; both look for what is absent.
QUERIES = ("Bad", "Down")
FILES = 5
NODES = [f"node-{i}" for i in range(8)]
BACKGROUND = [f"Node({n})" for n in NODES] + [f"In({n},{i % 3})" for i, n in enumerate(NODES)]

Answer = tuple[Any, ...]


def rows(file: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The beats and alarms of one file, in order of time from file to file; the last only lets time pass."""
    if file == FILES - 1:
        return [{"node": NODES[0], "time": 100}], []
    chance = random.Random(file)
    times = range(10 * file, 10 * file + 10)
    beats = [{"node": chance.choice(NODES), "time": t} for t in times]
    return beats, [{"zone": chance.randrange(3), "time": t} for t in times if chance.random() < 0.5]


def corrected_beats(file: int) -> list[dict[str, Any]]:
    """The beats of one file as they come with corrections: of those two files before, two are deleted, and one is late.

    What is one file late is not answered yet: the clock of a batch is that of the batch before.
    """
    beats = [row | {"op": "insert"} for row in rows(file)[0]]
    if file == FILES - 1:
        return beats
    before = [row | {"op": "insert"} for row in rows(file - 2)[0]] if file > 1 else []
    deleted = [row | {"op": "delete"} for row in before[4:6]]
    return [*before[2:3], *deleted, *beats[:2], *(beats[3:] if file < FILES - 3 else beats[2:])]


def standing_beats(corrected: bool) -> list[dict[str, Any]]:
    """All beats that are not deleted."""
    if not corrected:
        return [row for file in range(FILES) for row in rows(file)[0]]
    found = Counter[tuple[str, int]]()
    for file in range(FILES):
        for row in corrected_beats(file):
            found[row["node"], row["time"]] += 1 if row["op"] == "insert" else -1
    return [{"node": node, "time": time} for node, time in found.elements()]


def facts(corrected: bool = False) -> list[str]:
    """All that streams, or stands in the end."""
    found = [f"Beat({row['node']})@{row['time']}" for row in standing_beats(corrected)]
    for file in range(FILES):
        _, alarms = rows(file)
        found += [f"Alarm({row['zone']})@{row['time']}" for row in alarms]
    return found


def write_input(folder: Path, corrected: bool = False) -> None:
    for file in range(FILES):
        beats, alarms = rows(file)
        for name, some in (("beat", corrected_beats(file) if corrected else beats), ("alarm", alarms)):
            path = folder / name / f"{file}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{json.dumps(row)}\n" for row in some))
            os.utime(path, (1e9 + file, 1e9 + file))  # Spark reads files in the order of their times
    if corrected:
        (folder / "corrections").touch()


def compute_by_stream(query: str, delay: int = 0, corrected: bool = False) -> list[Answer]:
    """The answers of one local reasoner."""
    known = tl.Dataset.from_facts(BACKGROUND)
    reasoner = tl.Reasoner(tl.Program.parse(PROGRAM), query, background=known, delay=delay)
    steps = list(reasoner.feed(tl.Dataset.from_facts(facts(corrected))))
    found = [fact for step in steps for fact in step.answers]
    assert found, "the stream has answers"
    return sort_answers((*map(_plain, fact.args), *_ends(fact.interval)) for fact in found)


def compute_by_batch(query: str) -> list[Answer]:
    """What holds between two times, by the local reasoner."""
    data = tl.Dataset.from_facts([*BACKGROUND, *facts()])
    model = tl.materialise(tl.Program.parse(PROGRAM), data, query=[query], between=(0, 90))
    return sort_answers((*map(_plain, fact.args), *_ends(fact.interval)) for fact in model)


def sort_answers(found: Any) -> list[Answer]:
    return sorted((tuple(row) for row in found), key=repr)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)


def _ends(interval: Interval) -> tuple[int | None, int | None, str]:
    closed = {(True, True): "both", (True, False): "left", (False, True): "right", (False, False): "neither"}
    lo, hi = (None if isinstance(end, float) else int(end) for end in (interval.lo, interval.hi))
    return lo, hi, closed[interval.lo_closed, interval.hi_closed]


def answers(folder: Path, name: str = "answers") -> dict[str, list[Answer]]:
    found = json.loads((folder / f"{name}.json").read_text())
    return {query: sort_answers(found[query]) for query in QUERIES}


def main(folder: Path, master: str) -> None:
    from pyspark.errors import StreamingQueryException

    from tidelog.spark import current, reason
    from tidelog.spark.job.session import session

    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    spark = session(master, settings=settings, log=folder / "spark.log")
    program = tl.Program.parse(PROGRAM)
    nodes = spark.createDataFrame([(n,) for n in NODES], "node string")
    zones = spark.createDataFrame([(n, i % 3) for i, n in enumerate(NODES)], "node string, zone int")
    known = {"Node": nodes, "In": zones}
    corrected = (folder / "corrections").exists()
    schemas = {"Beat": f"node string, time long{', op string' if corrected else ''}", "Alarm": "zone int, time long"}
    if (folder / "batch").exists():
        given = {name: spark.read.schema(schema).json(f"{folder}/{name.lower()}") for name, schema in schemas.items()}
        found = {
            query: reason(spark, program, query, known | given, between=(0, 90), buckets=2).collect()
            for query in QUERIES
        }
        _write(folder / "batch.json", found)
    for query in QUERIES:
        live = {
            name: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(f"{folder}/{name.lower()}")
            for name, schema in schemas.items()
        }
        frame = reason(spark, program, query, known | live, buckets=2, corrections=60 if corrected else None)
        writer = frame.writeStream.format("parquet").option("path", f"{folder}/{query}")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint/{query}").trigger(availableNow=True)
        while True:
            try:
                writer.start().awaitTermination()
                break
            except StreamingQueryException as problem:
                # Spark gives a source in Python ten seconds to start, which is too few on a machine that is busy.
                if "connect back" not in str(problem):
                    raise
    logs = {query: spark.read.parquet(f"{folder}/{query}") for query in QUERIES}
    _write(folder / "answers.json", {q: (current(log) if corrected else log).collect() for q, log in logs.items()})
    if corrected:
        changes = {query: [[row.change] for row in log.collect()] for query, log in logs.items()}
        _write(folder / "changes.json", changes)
    spark.stop()


def _write(path: Path, found: dict[str, list[Any]]) -> None:
    path.write_text(json.dumps({query: [list(row) for row in some] for query, some in found.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""A small streaming job, as a script that can be killed, and what it has to answer.

    python spark_job.py FOLDER MASTER

reads `FOLDER/beat` and `FOLDER/alarm` file by file, answers `QUERIES` one after the other into parquet files with
Spark's own sink, each with a checkpoint of its own, and when all is read writes what Spark then finds there to
`FOLDER/answers.json`. Started again it goes on. If there is a `FOLDER/batch`, it first answers over the files as a
batch.
"""

from __future__ import annotations

import json
import os
import random
import sys
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


def facts() -> list[str]:
    """All that streams."""
    found = []
    for file in range(FILES):
        beats, alarms = rows(file)
        found += [f"Beat({row['node']})@{row['time']}" for row in beats]
        found += [f"Alarm({row['zone']})@{row['time']}" for row in alarms]
    return found


def write_input(folder: Path) -> None:
    for file in range(FILES):
        for name, some in zip(("beat", "alarm"), rows(file), strict=True):
            path = folder / name / f"{file}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{json.dumps(row)}\n" for row in some))
            os.utime(path, (1e9 + file, 1e9 + file))  # Spark reads files in the order of their times


def compute_by_stream(query: str, delay: int = 0) -> list[Answer]:
    """The answers of one local reasoner."""
    known = tl.Dataset.from_facts(BACKGROUND)
    reasoner = tl.Reasoner(tl.Program.parse(PROGRAM), query, background=known, delay=delay)
    steps = list(reasoner.feed(tl.Dataset.from_facts(facts())))
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

    from tidelog.spark import reason
    from tidelog.spark.job.session import session

    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    spark = session(master, settings=settings, log=folder / "spark.log")
    program = tl.Program.parse(PROGRAM)
    nodes = spark.createDataFrame([(n,) for n in NODES], "node string")
    zones = spark.createDataFrame([(n, i % 3) for i, n in enumerate(NODES)], "node string, zone int")
    known = {"Node": nodes, "In": zones}
    schemas = {"Beat": "node string, time long", "Alarm": "zone int, time long"}
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
        frame = reason(spark, program, query, known | live, buckets=2)
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
    _write(folder / "answers.json", {query: spark.read.parquet(f"{folder}/{query}").collect() for query in QUERIES})
    spark.stop()


def _write(path: Path, found: dict[str, list[Any]]) -> None:
    path.write_text(json.dumps({query: [list(row) for row in some] for query, some in found.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

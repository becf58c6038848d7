"""A pipeline between topics of a real broker, which is killed while it runs: the answers are those of a local run.

Spark's sink for Kafka may write a batch twice. Its records have keys that say which answer they are, so that whoever
keeps one record a key has every answer once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import Broker, free_ports, running_broker
from maven import UnreachableError, connector_jars

import spark_job
from processes import kill_all

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("kafka")]

#: Seconds until something has to have happened, on a busy machine.
PATIENCE = 600
#: Without a broker a run may fail; and Spark gives its parts in Python ten seconds to start, too few on a busy machine.
ATTEMPTS = 6
#: Topics are read at different speeds.
DELAY = 20

PIPELINE = """
rules = "rules.dmtl"
query = "Bad"
background = ["known.facts"]
delay = "{delay}s"
checkpoint = "checkpoint"
trigger = "available-now"
buckets = 2

[sources.beats]
format = "kafka"
schema = "node STRING, time BIGINT"
options = {{ "kafka.bootstrap.servers" = "{broker}", subscribe = "beats", startingOffsets = "earliest", \
maxOffsetsPerTrigger = 10 }}

[sources.alarms]
format = "kafka"
schema = "zone INT, time BIGINT"
options = {{ "kafka.bootstrap.servers" = "{broker}", subscribe = "alarms", startingOffsets = "earliest", \
maxOffsetsPerTrigger = 5 }}

[facts]
Beat = "SELECT node, time FROM beats"
Alarm = "SELECT zone, time FROM alarms"

[sinks.answers]
format = "kafka"
options = {{ "kafka.bootstrap.servers" = "{broker}", topic = "answers" }}

[sinks.late]
format = "json"
path = "late"

[spark]
master = "local[2]"
log = "spark.log"
settings = {{ "spark.jars" = "{jars}", "spark.ui.enabled" = "false" }}
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, broker: Broker) -> Path:
    return pipeline(tmp_path / "pipeline", broker.address)


def pipeline(folder: Path, address: str) -> Path:
    """A pipeline that reads two topics and writes a third."""
    try:
        jars = connector_jars()
    except UnreachableError as problem:
        pytest.skip(f"Maven Central cannot be reached: {problem}")
    folder.mkdir()
    (folder / "rules.dmtl").write_text(spark_job.PROGRAM)
    (folder / "known.facts").write_text("\n".join(spark_job.BACKGROUND))
    text = PIPELINE.format(broker=address, delay=DELAY, jars=",".join(map(str, jars)))
    (folder / "pipeline.toml").write_text(text)
    return folder


def produce(broker: Broker, files: Iterable[int]) -> None:
    """Facts of some files as records."""
    client = pytest.importorskip("confluent_kafka")
    producer = client.Producer({"bootstrap.servers": broker.address})
    for file in files:
        for topic, rows in zip(("beats", "alarms"), spark_job.rows(file), strict=True):
            for row in rows:
                producer.produce(topic, json.dumps(row))
    assert producer.flush(PATIENCE) == 0


def records(broker: Broker) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """All the answers in their topic: keys and values."""
    client = pytest.importorskip("confluent_kafka")
    consumer = client.Consumer({"bootstrap.servers": broker.address, "group.id": "reader"})
    partition = client.TopicPartition("answers", 0, client.OFFSET_BEGINNING)
    consumer.assign([partition])
    _, end = consumer.get_watermark_offsets(partition, timeout=60)
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    while len(found) < end:
        record = consumer.poll(60)
        assert record is not None, f"{len(found)} of {end} records in a minute"
        assert record.error() is None, record.error()
        found.append((json.loads(record.key()), json.loads(record.value())))
    consumer.close()
    return found


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from tidelog.cli.main import main; main()", "run", "pipeline.toml"]
    with (folder / "printed.txt").open("ab") as printed:
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)


def finished(folder: Path, running: subprocess.Popen[bytes]) -> None:
    """Waits for the end of a run, and starts it again if it failed, a few times."""
    attempts = ATTEMPTS
    try:
        while running.wait(PATIENCE) and attempts:
            running, attempts = start(folder), attempts - 1
        assert running.returncode == 0, (folder / "printed.txt").read_text()[-3000:]
    finally:
        if running.poll() is None:
            kill_all(running)


def begun(folder: Path, batch: int) -> subprocess.Popen[bytes]:
    """A run that has begun a batch."""
    for _ in range(ATTEMPTS):
        running = start(folder)
        while running.poll() is None:
            if batches(folder, "offsets")[-1] >= batch:
                return running
            time.sleep(0.05)
    raise AssertionError((folder / "printed.txt").read_text()[-3000:])


def batches(folder: Path, log: str) -> list[int]:
    """The batches that the checkpoint has in a log: `offsets` once they begin, `commits` once they are done."""
    return sorted(int(path.name) for path in (folder / "checkpoint" / log).glob("[0-9]*"))


def test_facts_in_and_answers_out_by_topics_of_a_broker_that_is_killed(folder: Path, broker: Broker) -> None:
    produce(broker, range(3))
    finished(folder, start(folder))
    before = records(broker)
    assert before, "there are answers before the stream ends"

    # A batch that was written, but not noted before a crash, is written again by the next run.
    last = batches(folder, "commits")[-1]
    for name in (f"{last}", f".{last}.crc"):
        (folder / "checkpoint" / "commits" / name).unlink()
    broker.kill()
    broker.start()
    produce(broker, range(3, spark_job.FILES))
    running = begun(folder, last + 1)
    broker.kill()
    broker.start()
    finished(folder, running)

    found = records(broker)
    assert len(found) > len({json.dumps(key, sort_keys=True) for key, _ in found}), "a batch was written twice"
    by_key: dict[str, dict[str, Any]] = {}
    for key, value in found:
        assert by_key.setdefault(json.dumps(key, sort_keys=True), value) == value
    answers = spark_job.sort_answers(
        (value["arg1"], value["start"], value["end"], value["closed"]) for value in by_key.values()
    )
    assert answers == spark_job.compute_by_stream("Bad", DELAY)
    assert not (folder / "late").exists() or not list((folder / "late").glob("batch=*"))


def test_a_broker_that_stays_away_ends_the_job_in_words(tmp_path: Path) -> None:
    folder = pipeline(tmp_path / "pipeline", f"127.0.0.1:{free_ports(1)[0]}")
    soon = '"kafka.default.api.timeout.ms" = "3000", "kafka.request.timeout.ms" = "2000", subscribe ='
    text = (folder / "pipeline.toml").read_text()
    (folder / "pipeline.toml").write_text(text.replace("subscribe =", soon))
    for _ in range(ATTEMPTS):
        assert start(folder).wait(PATIENCE) == 2
        printed = (folder / "printed.txt").read_text()
        if "ten seconds" not in printed:  # which a busy machine may need longer for
            break
    assert "error[TL810]: the job failed, the Kafka broker does not answer: Timed out" in printed
    assert "Traceback" not in printed

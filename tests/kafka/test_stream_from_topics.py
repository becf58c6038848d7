"""`tidelog stream` reads topics of a real broker, which is killed meanwhile; offsets are part of the saved state."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from broker import Broker, free_ports, running_broker

import tidelog as tl
from shell import Shell, start_command

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("kernels"), pytest.mark.xdist_group("kafka")]

PATIENCE = 120
RULES = """
% An order is overdue if it is not paid within 10 seconds.
Overdue(X) :- Diamondminus[10,10] Ordered(X), not Diamondminus[0,10] Paid(X).
"""
SCHEMA = """
[schema.Ordered]
topic = "orders"
columns = { order = "text", placed = "time" }
time = "placed"
unit = "ms"

[schema.Paid]
topic = "payments"
columns = { order = "text", ts = "time" }
time = "ts"
"""
ORDERS = 200
START = 1_800_000_000


def order_records() -> list[tuple[int, dict[str, object]]]:
    """An order every second, in two partitions; every third is written as a number."""
    return [
        (k % 2, {"order": str(1000 + k) if k % 3 else 1000 + k, "placed": (START + k) * 1000}) for k in range(ORDERS)
    ]


def payment_records() -> list[tuple[int, dict[str, object]]]:
    """A payment 4 seconds after every order but each seventh."""
    return [(0, {"order": str(1000 + k), "ts": f"{START + k + 4}", "by": {"card": k}}) for k in range(ORDERS) if k % 7]


def expected_answers() -> set[str]:
    """The orders that were due while the stream lasted, computed by hand."""
    last = START + max(ORDERS - 1, ORDERS - 1 + 4)
    return {f'Overdue("{1000 + k}")' for k in range(ORDERS) if k % 7 == 0 and START + k + 10 <= last}


def create(broker: Broker, **partitions: int) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": broker.address})
    made = admin.create_topics([NewTopic(name, count, 1) for name, count in partitions.items()])
    for future in made.values():
        future.result(PATIENCE)


def produce(broker: Broker, topic: str, records: list[tuple[int, dict[str, object] | bytes]]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.address})
    for partition, record in records:
        value = record if isinstance(record, bytes) else json.dumps(record).encode()
        producer.produce(topic, value or None, partition=partition)
    assert producer.flush(PATIENCE) == 0


def command(broker: Broker) -> tuple[str, ...]:
    inputs = [f"kafka://{broker.address}/{topic}" for topic in ("orders", "payments")]
    return ("stream", "rules.dmtl", "--query", "Overdue", "--input", inputs[0], "--input", inputs[1])


def read_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE)[0]
    return process.stdout.readline().decode().rstrip("\n")


@contextmanager
def stop_on_failure(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a process when a test fails, which would otherwise wait for its end."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def folder(sh: Shell) -> Path:
    sh.write("rules.dmtl", RULES)
    sh.write("tidelog.toml", SCHEMA)
    return sh.folder


def names(lines: str) -> list[str]:
    return [line.partition("@")[0] for line in lines.splitlines()]


def test_topics_are_read_to_their_ends_and_continued_at_their_offsets(sh: Shell, folder: Path, broker: Broker) -> None:
    create(broker, orders=2, payments=1)
    orders, payments = order_records(), payment_records()
    produce(broker, "orders", [*orders[:120]])
    produce(broker, "payments", [*payments[:100], (0, b"{broken"), (0, b""), (0, {"order": "x"})])
    state = ("--state", "s.state", "--continues", "--bad-rows", "bad.jsonl")
    first = sh(*command(broker), *state)
    assert first.code == 0, first.err
    assert "payments[0]: 3 rows could not be read" in first.err
    bad = [json.loads(line) for line in (folder / "bad.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in bad] == [("payments[0]", k) for k in (101, 100, 102)]
    nothing = sh(*command(broker), *state)
    assert (nothing.code, nothing.out) == (0, "")
    broker.kill()
    broker.start()
    produce(broker, "orders", [*orders[120:]])
    produce(broker, "payments", [*payments[100:]])
    last = sh(*command(broker), "--state", "s.state", "--bad-rows", "more.jsonl")
    assert last.code == 0, last.err
    found = names(first.out) + names(last.out)
    assert set(found) == expected_answers()
    assert len(found) == len(set(found))
    assert "late" not in first.err + last.err
    # The same answers as batch reasoning over the same facts.
    facts = [f'Ordered("{1000 + k}")@{START + k}' for k in range(ORDERS)]
    facts += [f'Paid("{1000 + k}")@{START + k + 4}' for k in range(ORDERS) if k % 7]
    model = tl.materialise(tl.Program.parse(RULES), tl.Dataset.parse("\n".join(facts)))
    assert set(found) <= set(names(str(model)))


def test_topics_are_followed_while_the_broker_is_killed_and_absence_is_noticed(folder: Path, broker: Broker) -> None:
    create(broker, orders=2, payments=1)
    now = int(time.time())
    # With a heartbeat the clock is the present, and records take a while to arrive, so they are allowed a delay.
    options = ("--follow", "--heartbeat", "500ms", "--delay", "5s", "--changes", "start")
    with start_command(folder, *command(broker), *options) as process, stop_on_failure(process):
        produce(broker, "orders", [(0, {"order": "a", "placed": (now - 8) * 1000})])
        produce(broker, "payments", [(0, {"order": "b", "ts": now - 7})])
        assert "Overdue(a)" in read_line(process), "nothing arrives, and its time is over"
        broker.kill()
        broker.start()
        now = int(time.time())
        produce(broker, "orders", [(1, {"order": "c", "placed": now * 1000})])
        assert "Overdue(c)" in read_line(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 128 + signal.SIGINT
        assert process.stderr is not None
        err = process.stderr.read().decode()
        assert "stopped after offset 1 of orders[0], offset 1 of orders[1], offset 1 of payments[0]" in err
        assert "Traceback" not in err


def test_records_delete_facts_and_answers_are_taken_back(sh: Shell, folder: Path, broker: Broker) -> None:
    sh.write("tidelog.toml", SCHEMA.replace('ts = "time" }', 'ts = "time", kind = "text" }\nop = "kind"'))
    create(broker, orders=1, payments=1)
    orders = [(0, {"order": name, "placed": (START + at) * 1000}) for name, at in (("a", 0), ("b", 1), ("z", 60))]
    paid = [(name, START + 5, "insert") for name in "ab"]
    produce(broker, "orders", [*orders])
    produce(broker, "payments", [(0, {"order": name, "ts": ts, "kind": kind}) for name, ts, kind in paid])
    corrected = ("--corrections", "1h", "--state", "s.state", "--continues")
    first = sh(*command(broker), *corrected)
    assert (first.code, first.out) == (0, ""), first.err
    # The payment of b was a mistake, and that of a was later than was said; the last record deletes nothing.
    changes = [("b", 5, "delete"), ("a", 5, "d"), ("a", 12, ""), ("c", 5, "-")]
    produce(broker, "payments", [(0, {"order": name, "ts": START + at, "kind": kind}) for name, at, kind in changes])
    second = sh(*command(broker), *corrected)
    overdue = ["+Overdue(a)@2027-01-15T08:00:10Z", "+Overdue(b)@2027-01-15T08:00:11Z"]
    assert sorted(second.out.splitlines()) == overdue, second.err
    assert "1 deletion" in second.err, second.err
    refused = sh(*command(broker))
    assert (refused.code, "--corrections" in refused.err) == (2, True)


def test_what_is_wrong_with_a_topic_is_said(sh: Shell, folder: Path, broker: Broker) -> None:
    create(broker, orders=1)
    ran = sh(*command(broker))
    assert ran.code == 2
    assert f"error[TL410]: the broker {broker.address} has no topic payments" in ran.err
    ran = sh("stream", "rules.dmtl", "--query", "Overdue", "--input", f"kafka://{broker.address}/ordres")
    assert "there is no schema for the topic ordres" in ran.err
    ran = sh("stream", "rules.dmtl", "--query", "Overdue", "--input", f"Ordered=kafka://{broker.address}/ordres")
    assert "did you mean orders?" in ran.err
    away = f"kafka://127.0.0.1:{free_ports(1)[0]}/orders"
    ran = sh("stream", "rules.dmtl", "--query", "Overdue", "--input", away)
    assert ran.code == 2
    assert "does not answer" in ran.err
    sh.write("kafka.conf", "# none\nno.such.setting=1\n")
    ran = sh(*command(broker), "--kafka-config", "kafka.conf")
    assert "the Kafka client refuses its settings" in ran.err

"""The files for containers: what they name exists, and the stream that they start is one that tidelog accepts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from locations import ROOT
from shell import Shell
from tidelog.cli.stream import stream
from tidelog.data.schema import load_schema

pytestmark = pytest.mark.usefixtures("kernels")

FOLDER = ROOT / "docker"


def read_services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yml").read_text())["services"]
    return services


def test_services_refer_to_each_other_and_to_files_that_exist() -> None:
    services = read_services()
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source == "state" or (FOLDER / source).is_dir()
    build = services["tidelog"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == (FOLDER / "Dockerfile").resolve()
    copied = re.findall(r"^COPY (.+) \S+$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists()
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == "PLAINTEXT://kafka:9092"


def test_the_stream_reads_the_topics_of_its_schema() -> None:
    command = read_services()["tidelog"]["command"]
    assert command[0] == "stream"
    parser = stream.make_parser(stream.make_context("stream", [], resilient_parsing=True))
    read, rest, _ = parser.parse_args(list(command[1:]))
    assert not rest
    topics = {table.topic for table in load_schema(FOLDER / "orders" / "tidelog.toml").tables.values()}
    assert {address.rpartition("/")[2] for address in read["sources"]} == topics == {"orders", "payments"}
    script = (FOLDER / "orders" / "fill-topics.sh").read_text()
    assert set(re.findall(r"--topic (\w+)$", script, re.MULTILINE)) == topics


def test_the_records_that_are_written_make_one_order_overdue(sh: Shell, tmp_path: Path) -> None:
    script = (FOLDER / "orders" / "fill-topics.sh").read_text()
    for tool in ("topics", "console-producer"):
        path = tmp_path / f"kafka-{tool}.sh"
        keep = f'cat > "{tmp_path}/$4.jsonl"' if tool == "console-producer" else "true"
        path.write_text(f"#!/bin/sh\n{keep}\n")
        path.chmod(0o755)
    subprocess.run(["sh", "-c", script.replace("/opt/kafka/bin", str(tmp_path)), "sh", "kafka:9092"], check=True)
    schema = (FOLDER / "orders" / "tidelog.toml").read_text()
    for topic in ("orders", "payments"):
        schema = schema.replace(f'topic = "{topic}"', f'file = "{topic}.jsonl"')
        sh.write(f"{topic}.jsonl", (tmp_path / f"{topic}.jsonl").read_text())
    sh.write("tidelog.toml", schema)
    sh.write("overdue.dmtl", (FOLDER / "orders" / "overdue.dmtl").read_text())
    ran = sh("materialise", "overdue.dmtl", "orders.jsonl", "payments.jsonl", "--query", "Overdue", "--json")
    assert ran.code == 0, ran.err
    assert [json.loads(line)["args"] for line in ran.out.splitlines()] == [["o2"]]

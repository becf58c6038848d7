"""The examples: each gives the same answers over all its data at once and as a stream.

Their pages, with every command and its output, are run by `test_docs`.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from locations import EXAMPLES
from shell import Shell
from tidelog.testing import same_answers

pytestmark = pytest.mark.usefixtures("kernels")


#: Rules, data, the query, how late facts come, and the last time in the data, where a stream stops.
STREAMS = [
    ("turbines/overheated.dmtl", "turbines/Reading.csv", "Overheated", "0", "2026-01-31T10:01:00Z"),
    ("traffic/traffic.dmtl", "traffic/reports.facts", "Jam", "10s", "75"),
    ("traffic/traffic.dmtl", "traffic/reports.facts", "Warned", "10s", "75"),
    ("signals/signals.dmtl", "signals/signals.facts", "Flag", "0", "6"),
    ("signals/heartbeat.dmtl", "signals/heartbeat.facts", "Down", "0", "2026-01-31T10:13:00Z"),
    ("payments/payments.dmtl", "payments/payments.csv", "Velocity", "0", "2026-01-31T15:12:09Z"),
    ("payments/payments.dmtl", "payments/payments.csv", "Alert", "1min", "2026-01-31T15:12:09Z"),
    ("payments/payments.dmtl", "payments/payments.csv", "Large", "0", "2026-01-31T15:12:09Z"),
    ("payments/payments.dmtl", "payments/payments.csv", "Jump", "0", "2026-01-31T15:12:09Z"),
    ("devices/devices.dmtl", "devices/beats.jsonl", "Silent", "0", "2026-01-31T08:00:00Z"),
    ("devices/devices.dmtl", "devices/beats.jsonl", "Flapping", "0", "2026-01-31T08:00:00Z"),
    ("devices/devices.dmtl", "devices/readings.csv", "Strained", "0", "2026-01-31T08:00:00Z"),
    ("devices/devices.dmtl", "devices/readings.csv", "Spike", "0", "2026-01-31T08:00:00Z"),
    ("intrusion/intrusion.tdl", "intrusion/intrusion.facts", "Black", "0", "3"),
    ("intrusion/blacklist.tdl", "intrusion/intrusion.facts", "Black", "0", "3"),
]


def test_every_example_has_a_page_with_its_commands() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for folder in EXAMPLES.iterdir():
        if folder.is_dir() and folder.name != "language":
            assert "```console\n$ " in (folder / "README.md").read_text(encoding="utf-8")
            assert f"({folder.name}/README.md)" in index


@pytest.mark.parametrize(("rules", "data", "query", "delay", "last"), STREAMS)
def test_a_stream_answers_what_all_data_at_once_do(
    rules: str, data: str, query: str, delay: str, last: str, sh: Shell
) -> None:
    paths = str(EXAMPLES / rules), str(EXAMPLES / data)
    batch = sh("materialise", *paths, "--query", query, "--between", f"-inf,{last}")
    stream = sh("stream", paths[0], "--query", query, "--input", paths[1], "--delay", delay)
    assert stream.out
    assert same_answers(batch.out.splitlines(), stream.out.splitlines())


def test_the_traffic_is_what_its_generator_gives() -> None:
    reports = runpy.run_path(str(EXAMPLES / "traffic" / "generate.py"))["generate_reports"]()
    assert (EXAMPLES / "traffic" / "reports.facts").read_text(encoding="utf-8").splitlines() == reports


def test_malfunctions_that_become_certain_are_those_of_all_readings(sh: Shell) -> None:
    folder = EXAMPLES / "turbines"
    rules, arrivals = str(folder / "turbines.tdl"), str(folder / "turbines.jsonl")
    lines = Path(arrivals).read_text(encoding="utf-8").splitlines()
    data = sh.write("all.facts", "\n".join(json.loads(line)["fact"] for line in lines))
    ran = sh("hypothesise", rules, "--query", "Malf(X,T)", "--input", arrivals, "--delay", "Temp=1", "--json")
    certain = [answer["bindings"] for line in ran.out.splitlines() for answer in json.loads(line)["answers"]]
    batch = sh("materialise", rules, data, "--query", "Malf").out.splitlines()
    assert [f"Malf({found['X']})@{found['T']}" for found in certain] == batch == ["Malf(wt2)@0"]


def test_what_all_plans_share_along_a_stream_they_share_in_the_end(sh: Shell) -> None:
    rules = str(EXAMPLES / "bookings" / "shifts.dmtl")
    days = sh.write("days.facts", "Day@1\nDay@2\nAnn@2\nDay@3\nAnn@3\nDay@4\n")
    stream = [line.split() for line in sh("stable", rules, "--input", days).out.splitlines()]
    for share, fact in stream:
        assert share == "some" or sh("stable", rules, days, "--cautious", fact).out == "yes\n"
    plans = json.loads(sh("stable", rules, days, "--models", "0", "--json").out)["models"]
    assert [plan["facts"] for plan in plans] == [["Ann@[2,3]", "Bob@1", "Bob@4", "Day@[1,4]"]]
    assert {"Bob@1", "Ann@2", "Ann@3", "Bob@4"} <= {fact for _, fact in stream}

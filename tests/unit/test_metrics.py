"""`--metrics` and `--otlp`: figures of a running stream, read by the official clients; dashboard and alerts agree."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from locations import ROOT
from shell import Shell, drop_compilation_notice, start_command
from tidelog.errors import TidelogError
from tidelog.metrics.figures import StreamFigures
from tidelog.metrics.job_board import BoardGroup, MetricsBoard
from tidelog.metrics.metric_names import FACTS, METRICS, STEP_BOUNDS
from tidelog.metrics.prometheus_server import serve_metrics
from tidelog.metrics.stream_observer import MetricsObserver
from tidelog.page.live_board import LiveBoard

pytestmark = pytest.mark.usefixtures("kernels")

MONITORING = ROOT / "monitoring"
SERIES = {name for metric in METRICS for name in metric.series}
RULES = "Hot(T) :- Boxminus[0,1] High(T), not Off(T).\n"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def sh(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, capsys, monkeypatch)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


def read_samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def wait_for(port: int, name: str, least: float, **labels: str) -> Samples:
    stop = time.monotonic() + 60
    while True:
        try:
            samples = read_samples(get(port, "/metrics")[1])
            if samples.get((name, tuple(sorted(labels.items()))), 0) >= least:
                return samples
        except OSError:
            pass
        assert time.monotonic() < stop, f"{name} does not reach {least}"
        time.sleep(0.1)


def test_a_running_stream_is_counted_by_predicate_and_rule(tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text(RULES)
    port = free_port()
    process = start_command(
        tmp_path, "stream", "rules.dmtl", "--query", "Hot", "--input", "-", "--delay", "2", "--metrics", str(port)
    )
    assert process.stdin is not None
    try:
        process.stdin.write(b"High(a)@0\nHigh(a)@1\nOff(b)@1\n")
        process.stdin.flush()
        wait_for(port, "tidelog_facts_total", 1, predicate="High")
        assert get(port, "/healthz") == (200, "running\n")
        process.stdin.write(b"".join(b"High(a)@%d\n" % n for n in range(2, 40)) + b"Off(a)@3\nOff(a)@99\n")
        process.stdin.flush()
        time.sleep(1.2)  # the state is read once a second
        process.stdin.write(b"High(b)@[100,110]\nHigh(b)@120\n")
        process.stdin.flush()
        samples = wait_for(port, "tidelog_late_facts_total", 1, predicate="Off")
        samples = wait_for(port, "tidelog_facts_total", 42, predicate="High")
        assert get(port, "/readyz") == (200, "ready\n")
        assert get(port, "/other")[0] == 404
    finally:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert b"Hot(b)@[101,110]" in out
    assert f"metrics are at http://127.0.0.1:{port}/metrics".encode() in drop_compilation_notice(err)
    assert value(samples, "tidelog_late_facts_total", predicate="High") == 0
    assert value(samples, "tidelog_facts_total", predicate="Off") == 3
    assert value(samples, "tidelog_running") == 1
    assert value(samples, "tidelog_step_seconds_count") > 5
    assert value(samples, "tidelog_step_seconds_bucket", le="+Inf") == value(samples, "tidelog_step_seconds_count")
    assert value(samples, "tidelog_step_seconds_sum") > 0
    assert ("tidelog_lag_seconds", ()) not in samples  # times are plain numbers
    assert any(name == "tidelog_held_facts" for name, _ in samples)
    rules = {dict(labels)["rule"] for name, labels in samples if name == "tidelog_rule_seconds_total"}
    assert rules <= {RULES.strip()}
    assert {name for name, _ in samples} - {f"{m.name}_created" for m in METRICS} <= SERIES


def test_dates_have_a_lag_and_all_answers_are_counted() -> None:
    figures = StreamFigures()
    port = free_port()
    with serve_metrics(figures, "127.0.0.1", port):
        assert get(port, "/readyz") == (503, "not ready\n")
        figures.set_state({"High": 7}, Fraction(int(time.time()) - 60), True)
        samples = read_samples(get(port, "/metrics")[1])
        assert 59 <= value(samples, "tidelog_lag_seconds") <= 65
        assert value(samples, "tidelog_held_facts", predicate="High") == 7
        figures.end()
        assert get(port, "/healthz") == (503, "ended\n")
        assert get(port, "/readyz")[0] == 503


def test_deletions_count_as_facts_of_their_predicate() -> None:
    figures = StreamFigures()
    observer = MetricsObserver(figures, "Overdue", lambda: 0)
    observer.facts(cast(Any, SimpleNamespace(relations={("Paid", 1): [1, 2], ("-Paid", 1): [3]})))
    assert figures.read()[FACTS] == {"Paid": 3}


def test_the_histogram_counts_every_step_once() -> None:
    figures = StreamFigures()
    times = [STEP_BOUNDS[0], STEP_BOUNDS[0] * 1.01, 0.02, 99.0]
    figures.add_steps(times)
    bounds, seconds = figures.read_steps()
    assert seconds == sum(times)
    for bound, count in bounds:
        assert count == sum(taken <= bound for taken in times)


def test_a_job_on_spark_writes_its_batches_to_page_and_metrics() -> None:
    figures, page = StreamFigures(), LiveBoard()
    board = BoardGroup([page, MetricsBoard(figures, "Jam")])
    for _ in range(2):
        board.count(facts=10, answers=2, late=1, aside=3, seconds=0.5)
        board.set_state({"Speed": 4}, Fraction(5), False)
        board.add_rule_costs(iter([{"rule": "Jam(X) :-\n  Slow(X).", "seconds": 0.25}]))
        board.add_answers(iter(["Jam(a)@3"]))
    found = {metric.name: values for metric, values in figures.read().items()}
    assert found["tidelog_facts"] == {"(all)": 20}
    assert found["tidelog_answers"] == {"Jam": 4}
    assert found["tidelog_late_facts"] == {"(all)": 2}
    assert found["tidelog_bad_rows"] == {"": 6}
    assert found["tidelog_rule_seconds"] == {"Jam(X) :- Slow(X).": 0.5}
    status = page.status()
    assert (status["facts"], status["late"], status["latest"]) == (20, 2, ["Jam(a)@3", "Jam(a)@3"])


def test_a_port_that_is_taken_and_one_that_is_none_are_refused(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("data.facts", "High(a)@0\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = sh("stream", "rules.dmtl", "--query", "Hot", "--input", "data.facts", "--metrics", port)
    assert ran.code == 2
    assert "TL405" in ran.err
    ran = sh("stream", "rules.dmtl", "--query", "Hot", "--input", "data.facts", "--metrics", "http")
    assert "is not a port" in ran.err


@pytest.mark.parametrize(
    "option, package, extra", [("--metrics", "prometheus_client", "metrics"), ("--otlp", "opentelemetry", "otel")]
)
def test_a_missing_package_is_named_with_its_extra(
    sh: Shell, monkeypatch: pytest.MonkeyPatch, option: str, package: str, extra: str
) -> None:
    from tidelog import optional_packages

    def refuse(name: str) -> None:
        raise ImportError(f"no {name}")

    monkeypatch.setattr(optional_packages, "import_module", refuse)
    sh.write("rules.dmtl", RULES)
    sh.write("data.facts", "High(a)@0\n")
    ran = sh("stream", "rules.dmtl", "--query", "Hot", "--input", "data.facts", option, "9464")
    assert ran.code == 2
    assert "TL911" in ran.err
    assert package in ran.err
    assert f"pip install 'tidelog[{extra}]'" in ran.err
    with pytest.raises(TidelogError):
        optional_packages.require_package(package, extra, option)


@contextmanager
def start_collector() -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    """An OpenTelemetry collector that keeps what it gets."""
    received: list[ExportMetricsServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            received.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/metrics", received
    finally:
        server.shutdown()
        server.server_close()


def test_opentelemetry_gets_the_same_figures(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("data.facts", "".join(f"High(a)@{n}\n" for n in range(10)) + "High(b)@[10,12]\nHigh(a)@2\n")
    with start_collector() as (url, received):
        ran = sh("stream", "rules.dmtl", "--query", "Hot", "--input", "data.facts", "--otlp", url)
    assert ran.code == 0, ran.err
    metrics = {
        metric.name: metric
        for request in received
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    (facts,) = metrics["tidelog.facts"].sum.data_points
    assert (facts.as_int or facts.as_double, facts.attributes[0].value.string_value) == (12, "High")
    (answers,) = metrics["tidelog.answers"].sum.data_points
    assert (answers.as_int or answers.as_double) == ran.out.count("Hot(")
    (late,) = metrics["tidelog.late_facts"].sum.data_points
    assert (late.as_int or late.as_double) == 1
    (steps,) = metrics["tidelog.step"].histogram.data_points
    assert steps.count > 0
    assert list(steps.explicit_bounds) == list(STEP_BOUNDS)


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    return found


def used_series(text: str) -> set[str]:
    return set(re.findall(r"\btidelog_\w+", text))


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    panels = dashboard()["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    variables = [variable["query"] for variable in dashboard()["templating"]["list"]]
    used = used_series(" ".join([*expressions, *variables]))
    assert used <= SERIES
    shown = {metric.name for metric in METRICS if used & set(metric.series)}
    assert shown == {metric.name for metric in METRICS} - {"tidelog_watermark_timestamp_seconds"}
    for expression in expressions:
        for label in re.findall(r"by \((\w+)\)", expression):
            (name,) = used_series(expression)
            assert label == "le" or label in {m.label for m in METRICS if name in m.series}


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_alerting_rules_use_metrics_that_exist() -> None:
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert {"TidelogLagging", "TidelogLateFacts"} <= set(names)
    assert len(set(names)) == len(names)
    for rule in group["rules"]:
        assert used_series(rule["expr"])
        assert used_series(rule["expr"]) <= SERIES
        assert rule["annotations"]["summary"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    assert config["rule_files"] == ["alerts.yml"]


def test_the_page_on_metrics_lists_them_all() -> None:
    text = (ROOT / "docs" / "howto" / "metrics.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(tidelog_\w+)` \| (.*?) \|", text, re.MULTILINE))
    assert rows == {name: metric.kind for metric in METRICS for name in (metric.series[0].removesuffix("_bucket"),)}

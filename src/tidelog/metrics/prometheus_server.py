"""Serve the figures of a stream to Prometheus, and whether it is healthy and ready.

`/metrics` has the figures, in the form that the request prefers. `/healthz` is 200 while the stream runs, and `/readyz`
once it has taken its first facts; both are 503 otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from tidelog.errors import Diagnostic, TidelogError
from tidelog.metrics.figures import StreamFigures
from tidelog.metrics.metric_names import STEPS
from tidelog.timeline.interval import INF


class FiguresCollector(Collector):
    """Reads the figures of a stream whenever Prometheus asks."""

    def __init__(self, figures: StreamFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[MetricFamily]:
        for metric, values in self._figures.read().items():
            labels = [metric.label] if metric.label else []
            build = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = build(metric.name, metric.help, labels=labels)
            for label, value in values.items():
                family.add_metric([label] if metric.label else [], value)
            yield family
        bounds, seconds = self._figures.read_steps()
        steps = HistogramMetricFamily(STEPS.name, STEPS.help, labels=[])
        steps.add_metric([], [("+Inf" if bound == INF else str(bound), count) for bound, count in bounds], seconds)
        yield steps


@contextmanager
def serve_metrics(figures: StreamFigures, host: str, port: int) -> Iterator[str]:
    """Serve the figures while the context lasts; the context's value is the address."""
    registry = CollectorRegistry()
    registry.register(FiguresCollector(figures))
    try:
        server = _Server((host, port), figures, registry)
    except OSError as problem:
        message = f"cannot listen on {host}, port {port}: {problem.strerror}"
        raise TidelogError(Diagnostic("TL405", message, help="choose another port for --metrics")) from None
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="tidelog-metrics", daemon=True).start()
    try:
        yield f"http://{host}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], figures: StreamFigures, registry: CollectorRegistry) -> None:
        self.figures, self.registry = figures, registry
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "tidelog"
    sys_version = ""
    #: Seconds that a connection may be idle.
    timeout = 30

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        figures = self.server.figures
        if path == "/metrics":
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(200, kind, encode(self.server.registry))
        elif path == "/healthz":
            self._answer_state(figures.is_running, "running", "ended")
        elif path == "/readyz":
            self._answer_state(figures.is_ready, "ready", "not ready")
        else:
            self._answer(404, "text/plain", b"there is /metrics, /healthz and /readyz\n")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the stream."""

    def _answer_state(self, good: bool, yes: str, no: str) -> None:
        self._answer(200 if good else 503, "text/plain", f"{yes if good else no}\n".encode())

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

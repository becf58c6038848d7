"""Serve the figures of a stream to Prometheus, and whether it is healthy and ready.

`/metrics` has the figures, in the form that the request prefers. `/healthz` is 200 while the stream runs, and `/readyz`
once it has taken its first facts; both are 503 otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from tidelog.metrics.figures import StreamFigures
from tidelog.metrics.metric_names import STEPS
from tidelog.stream_server import Request, Response, serve_requests
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

    def respond(request: Request) -> Response:
        path = request.path.partition("?")[0]
        if path == "/metrics":
            encode, kind = choose_encoder(request.headers.get("Accept", ""))
            return Response(200, kind, encode(registry))
        if path == "/healthz":
            return _answer_state(figures.is_running, "running", "ended")
        if path == "/readyz":
            return _answer_state(figures.is_ready, "ready", "not ready")
        return Response(404, "text/plain", b"there is /metrics, /healthz and /readyz\n")

    with serve_requests(respond, host, port, help="choose another port for --metrics") as address:
        yield f"{address}metrics"


def _answer_state(good: bool, yes: str, no: str) -> Response:
    return Response(200 if good else 503, "text/plain", f"{yes if good else no}\n".encode())

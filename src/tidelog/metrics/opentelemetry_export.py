"""Send the figures of a stream to an OpenTelemetry collector, with OTLP over HTTP.

The environment variables of OpenTelemetry (`OTEL_SERVICE_NAME`, `OTEL_EXPORTER_OTLP_HEADERS`, ...) apply. Names are
those of the Prometheus metrics with dots: `tidelog.facts`, `tidelog.step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from tidelog.metrics.figures import StreamFigures
from tidelog.metrics.metric_names import METRICS, STEP_BOUNDS, STEPS, Metric
from tidelog.version import __version__

#: Milliseconds between two exports.
_EVERY = 10_000


@contextmanager
def export_figures(figures: StreamFigures, endpoint: str) -> Iterator[None]:
    """Export the figures now and then while the context lasts, and once more at its end."""
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint), export_interval_millis=_EVERY)
    resource = Resource.create({"service.name": "tidelog", "service.version": __version__})
    provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    meter = provider.get_meter("tidelog", __version__)
    for metric in METRICS:
        name, unit = to_otel_name(metric)
        if metric is STEPS:
            bounds = list(STEP_BOUNDS)
            steps = meter.create_histogram(name, unit, metric.help, explicit_bucket_boundaries_advisory=bounds)
            figures.listener = steps.record
        elif metric.kind == "counter":
            meter.create_observable_counter(name, [_observe(figures, metric)], unit, metric.help)
        else:
            meter.create_observable_gauge(name, [_observe(figures, metric)], unit, metric.help)
    try:
        yield
    finally:
        figures.listener = None
        provider.shutdown()


def to_otel_name(metric: Metric) -> tuple[str, str]:
    """Return the name and the unit of a metric in OpenTelemetry.

    >>> to_otel_name(STEPS)
    ('tidelog.step', 's')
    """
    base = metric.name.removesuffix("_seconds")
    return base.replace("tidelog_", "tidelog.", 1), "" if base == metric.name else "s"


def _observe(figures: StreamFigures, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(options: CallbackOptions) -> Iterable[Observation]:
        values = figures.read().get(metric, {})
        return [Observation(value, {metric.label: label} if metric.label else {}) for label, value in values.items()]

    return read

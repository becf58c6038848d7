"""`--metrics` and `--otlp`: the options of commands that run for long, and what serves and sends their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tidelog.metrics.figures import StreamFigures

Command = TypeVar("Command", bound=Callable[..., Any])


def _parse_address(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not (port.isdecimal() and port.isascii() and int(port) < 65536):
        raise click.BadParameter(f"{value!r} is not a port, like 9464, or an address, like 0.0.0.0:9464")
    return host or "127.0.0.1", int(port)


def metrics_options(command: Command) -> Command:
    """Add `--metrics [HOST:]PORT` and `--otlp URL` to a command."""
    command = click.option(
        "--otlp",
        metavar="URL",
        help="Send metrics to an OpenTelemetry collector, like http://localhost:4318/v1/metrics.",
    )(command)
    return click.option(
        "--metrics",
        metavar="[HOST:]PORT",
        callback=_parse_address,
        help="Serve metrics for Prometheus, health and readiness at PORT. Default host: this machine only.",
    )(command)


@contextmanager
def serve_figures(metrics: tuple[str, int] | None, otlp: str | None) -> Iterator[StreamFigures | None]:
    """Serve and send figures; yield the figures that a running stream writes, or None if nobody asks for them."""
    if metrics is None and otlp is None:
        yield None
        return
    from tidelog.metrics.figures import StreamFigures
    from tidelog.optional_packages import require_package

    figures = StreamFigures()
    with ExitStack() as stack:
        if metrics is not None:
            require_package("prometheus_client", "metrics", "--metrics")
            from tidelog.metrics.prometheus_server import serve_metrics

            address = stack.enter_context(serve_metrics(figures, *metrics))
            click.echo(f"metrics are at {address}", err=True)
        if otlp is not None:
            require_package("opentelemetry.exporter.otlp.proto.http", "otel", "--otlp")
            from tidelog.metrics.opentelemetry_export import export_figures

            stack.enter_context(export_figures(figures, otlp))
        stack.callback(figures.end)
        yield figures

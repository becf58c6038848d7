"""Metrics of a running stream, for Prometheus and OpenTelemetry.

Read `figures` first: the figures of one stream, written by the stream and read by servers. `stream_observer` reports
the steps of `tidelog stream` to them, `job_board` the batches of `tidelog run`. `metric_names` declares the metrics,
`prometheus_server` serves them with health and readiness, and `opentelemetry_export` sends them.
"""

"""The metrics of a running stream, declared once; tests compare dashboard, alerting rules and docs with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A metric as Prometheus names it, without the suffixes `_total`, `_bucket`, `_sum` and `_count`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    label: str | None = None

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its time series.

        >>> FACTS.series
        ('tidelog_facts_total',)
        """
        if self.kind == "counter":
            return (f"{self.name}_total",)
        if self.kind == "gauge":
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))


FACTS = Metric("tidelog_facts", "counter", "Facts that have arrived, late ones included.", "predicate")
ANSWERS = Metric("tidelog_answers", "counter", "Answers to the query.", "predicate")
LATE = Metric("tidelog_late_facts", "counter", "Facts that arrived later than the delay allows.", "predicate")
BAD_ROWS = Metric("tidelog_bad_rows", "counter", "Rows that could not be read and were set aside.")
HELD = Metric("tidelog_held_facts", "gauge", "Facts that are held at the moment.", "predicate")
LAG = Metric("tidelog_lag_seconds", "gauge", "Now minus the time up to which all answers are known; for dates only.")
WATERMARK = Metric("tidelog_watermark_timestamp_seconds", "gauge", "The time up to which all answers are known.")
STEPS = Metric("tidelog_step_seconds", "histogram", "The time that a step or a batch took to evaluate.")
RULES = Metric("tidelog_rule_seconds", "counter", "The time that a rule took, estimated from its work.", "rule")
RUNNING = Metric("tidelog_running", "gauge", "1 while the stream runs, 0 once it has ended.")

METRICS = (FACTS, ANSWERS, LATE, BAD_ROWS, HELD, LAG, WATERMARK, STEPS, RULES, RUNNING)

#: The upper bounds of the histogram of step times, in seconds: from the microseconds of a stream to a slow batch.
STEP_BOUNDS = (1e-5, 2.5e-5, 1e-4, 2.5e-4, 1e-3, 2.5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0)

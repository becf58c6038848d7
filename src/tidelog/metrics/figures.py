"""The figures of one running stream, written by the stream with a few additions under a lock, and read by servers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from time import time

from tidelog.metrics.metric_names import (
    ANSWERS,
    BAD_ROWS,
    FACTS,
    HELD,
    LAG,
    LATE,
    RULES,
    RUNNING,
    STEP_BOUNDS,
    WATERMARK,
    Metric,
)
from tidelog.timeline.interval import INF, Time

#: The label of facts whose predicates are not told apart.
ALL = "(all)"


class StreamFigures:
    """Counters and gauges by label, and a histogram of step times. All methods may be called from any thread.

    >>> figures = StreamFigures()
    >>> figures.add(FACTS, {"Reading": 3})
    >>> figures.add(FACTS, {"Reading": 2})
    >>> figures.read()[FACTS]
    {'Reading': 5}
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[Metric, dict[str, float]] = {}
        self._held: dict[str, float] = {}
        self._watermark: float | None = None
        self._bins = [0] * (len(STEP_BOUNDS) + 1)
        self._step_seconds = 0.0
        self._is_running = True
        self._is_ready = False
        #: Called with the time of each step, for exporters that make their own histograms.
        self.listener: Callable[[float], None] | None = None

    def add(self, metric: Metric, amounts: Mapping[str, float]) -> None:
        """Add to a counter, by label."""
        with self._lock:
            counts = self._counts.setdefault(metric, {})
            for label, amount in amounts.items():
                counts[label] = counts.get(label, 0) + amount

    def set(self, metric: Metric, values: Mapping[str, float]) -> None:
        """Set a counter that the stream itself keeps, by label."""
        with self._lock:
            self._counts[metric] = dict(values)

    def add_steps(self, seconds: Iterable[float]) -> None:
        """Add the times of steps to the histogram."""
        times = list(seconds)
        with self._lock:
            for value in times:
                self._bins[bisect_left(STEP_BOUNDS, value)] += 1
            self._step_seconds += sum(times)
        if self.listener is not None:
            for value in times:
                self.listener(value)

    def set_state(self, held: Mapping[str, int], watermark: Time | None, dates: bool) -> None:
        """Set how many facts are held per predicate and up to when all answers are known; the stream is ready then."""
        with self._lock:
            self._held = dict(held)
            self._is_ready = True
            if dates and watermark is not None and abs(watermark) != INF:
                self._watermark = float(watermark)

    def end(self) -> None:
        """Mark the stream as ended; the figures stay."""
        with self._lock:
            self._is_running = False

    @property
    def is_running(self) -> bool:
        """Whether the stream has not ended."""
        return self._is_running

    @property
    def is_ready(self) -> bool:
        """Whether the stream runs and has taken its first facts."""
        return self._is_running and self._is_ready

    def read(self) -> dict[Metric, dict[str, float]]:
        """Return all counters and gauges, by label; those without labels have the label `""`."""
        with self._lock:
            found = {metric: dict(self._counts.get(metric, {})) for metric in (FACTS, ANSWERS, LATE, RULES)}
            found[BAD_ROWS] = {"": sum(self._counts.get(BAD_ROWS, {}).values())}
            found[HELD] = dict(self._held)
            mark = self._watermark
            found[WATERMARK] = {} if mark is None else {"": mark}
            found[LAG] = {} if mark is None else {"": time() - mark}
            found[RUNNING] = {"": float(self._is_running)}
            return found

    def read_steps(self) -> tuple[list[tuple[float, int]], float]:
        """Return the histogram of step times: for each bound the steps up to it, and the time of all steps."""
        with self._lock:
            total, bounds = 0, []
            for bound, count in zip((*STEP_BOUNDS, INF), self._bins, strict=True):
                total += count
                bounds.append((bound, total))
            return bounds, self._step_seconds

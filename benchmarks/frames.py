"""Rows for dataframes: how fast facts get from Arrow and Parquet to the engine, and what a whole call costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import polars as pl

import tidelog as tl
from table_rows import Row, measure

COUNT = 1_000_000
REPEATS = 9
RULES = {
    "one test": "Hot(X) :- Reading(X, V), V > 80.",
    "two operators": "High(X) :- Reading(X, V), V > 80. Hot(X) :- Boxminus[0,2] Diamondminus[0,5] High(X).",
    "a mean": "Mean(X, M) :- M = avg{ V : Diamondminus[0,10] Reading(X, V) }.",
}


def make_readings(count: int = COUNT) -> pl.DataFrame:
    """Make readings of 5,000 sensors, 1,000 per second."""
    rng = np.random.default_rng(0)
    names = np.array([f"sensor{number}" for number in range(5_000)])
    seconds = np.arange(count) // 1_000
    columns = {"sensor": names[rng.integers(0, 5_000, count)], "value": rng.integers(0, 100, count)}
    return (
        pl.DataFrame(columns)
        .with_columns(time=pl.Series(seconds).cast(pl.Int64) * 1_000_000)
        .cast({"time": pl.Datetime("us")})
    )


def measure_frames(folder: Path) -> Iterator[Row]:
    """Measure all rows of this module."""
    frame = make_readings()
    yield from measure_loading(frame, folder)
    yield from measure_calls(frame)


def measure_loading(frame: pl.DataFrame, folder: Path) -> Iterator[Row]:
    """Measure how fast facts with two arguments and a time become the engine's columns."""
    rng = np.random.default_rng(1)
    forms: dict[str, Any] = {
        "text, integer, timestamp": frame,
        "text, integer, integer": frame.with_columns(pl.col("time").cast(pl.Int64)),
        "two integers, integer": frame.with_columns(
            pl.Series("sensor", rng.integers(0, 5_000, len(frame))), pl.col("time").cast(pl.Int64)
        ),
        "long text, integer, timestamp": frame.with_columns("a longer name of " + pl.col("sensor")),
        "text, decimal, timestamp": frame.with_columns(pl.col("value") / 10),
        "Arrow strings, integer, timestamp": frame.to_arrow(compat_level=pl.CompatLevel.oldest()),
        "categories, integer, timestamp": frame.with_columns(pl.col("sensor").cast(pl.Categorical)),
    }
    for form, table in forms.items():
        data, cpu, wall = measure(partial(tl.Dataset.from_arrow, {"Reading": table}), REPEATS)
        yield _build_row(f"Arrow to the engine: {form}", len(data), cpu, wall)
    path = folder / "Reading.parquet"
    frame.write_parquet(path, compression="zstd")
    data, cpu, wall = measure(partial(tl.Dataset.load, path), REPEATS)
    yield _build_row("Parquet to the engine: text, integer, timestamp", len(data), cpu, wall)


def _build_row(what: str, count: int, cpu: float, wall: float) -> Row:
    return Row(what, count, cpu, wall, f"{count / cpu / 1e6:.0f} million facts per second", "30 million")


def measure_calls(frame: pl.DataFrame) -> Iterator[Row]:
    """Measure whole calls on a Polars frame, against the engine's own time on facts that are loaded already.

    The two are measured in turns, and the ratio is the median of the pairs: the machine's speed changes between them.
    Which comes first alternates, too: a call that follows one with more memory gets pages that it need not clear.
    """
    frames = {"Reading": frame}
    data = tl.Dataset.from_arrow(frames)
    for name, rules in RULES.items():
        program = tl.Program.parse(rules)
        pairs = [_time_both(program, frames, data, number % 2 == 0) for number in range(2 * REPEATS)]
        ratio = median(whole / engine for whole, engine in pairs)
        whole, engine = (min(times) for times in zip(*pairs, strict=True))
        note = f"{engine:.3f} s for the engine alone"
        yield Row(f"materialise a Polars frame: {name}", COUNT, whole, 0.0, f"{ratio:.2f} x the engine", "1.1 x", note)


def _time_both(program: tl.Program, frames: Any, data: tl.Dataset, frames_first: bool) -> tuple[float, float]:
    """Return how long both calls take: that on frames, and that on the dataset."""
    if frames_first:
        return _time(program, frames), _time(program, data)
    engine = _time(program, data)
    return _time(program, frames), engine


def _time(program: tl.Program, data: Any) -> float:
    began = process_time()
    tl.materialise(program, data)
    return process_time() - began

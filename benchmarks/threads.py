"""Rows of the benchmark table about threads: the same work with one thread and with one per core."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import streaming
import tidelog as tl
from table_rows import Row, measure
from tidelog.cli.main import run
from tidelog.generate import lubm
from tidelog.local_threads import choose_threads, restore_threads

HORIZON = 300
REPEATS = 5


def measure_threads(folder: Path, count: int = 1_000_000) -> Iterator[Row]:
    """Measure reading, reasoning and printing, and a stream from a file; the figure is in wall time.

    On a machine that does other work as well, the figure is smaller.
    """
    path, rules = folder / "threads.facts", folder / "threads.dmtl"
    path.write_text("\n".join(sorted(lubm.generate_facts(count), key=_start_of)), encoding="utf-8")
    rules.write_text("".join(f"{line}.\n" for line in streaming.SCIENTISTS.splitlines()), encoding="utf-8")
    program = tl.Program.parse(streaming.SCIENTISTS)
    data = tl.Dataset.load(path)
    model = tl.materialise(program, data, between=(0, HORIZON))
    yield _compare("load", count, partial(tl.Dataset.load, path))
    yield _compare("reason", count, partial(tl.materialise, program, data, between=(0, HORIZON)))
    yield _compare("print", count, model.render)
    yield _compare("load, reason and print", count, partial(_run_batch, program, path))
    yield _compare("stream from a file", count, partial(_run_stream, rules, path))


def _start_of(fact: str) -> float:
    return float(fact.rpartition("@")[2].strip("[(").partition(",")[0].strip("])"))


def _compare(what: str, count: int, work: Callable[[], object]) -> Row:
    """Measure some work with one thread and with one per core."""
    walls = []
    for threads in (1, os.cpu_count() or 1):
        before = choose_threads(threads)
        _, cpu, wall = measure(work, REPEATS)
        restore_threads(before)
        walls.append(wall)
    figure = f"{walls[0] / walls[1]:.2f} x as fast"
    return Row(f"LUBM, {what}, {threads} threads", count, cpu, wall, figure, "1.7 x with 2", f"one: {walls[0]:.3f} s")


def _run_batch(program: tl.Program, path: Path) -> bytes:
    return tl.materialise(program, tl.Dataset.load(path), between=(0, HORIZON)).render()


def _run_stream(rules: Path, path: Path) -> None:
    command = ["stream", str(rules), "--query", "Scientist", "--step", "1/2", "--input", str(path), "-o", os.devnull]
    with contextlib.redirect_stderr(io.StringIO()):
        run([*command, "--format", "facts"])

"""Hypothetical answers: `make bench-hypotheses`.

The query finds malfunctions of wind turbines, over readings that arrive late and in any order within their delay. Times
are CPU seconds for taking arrivals, without generating the stream and printing. Each row is one run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table

import tidelog as tl
from table_rows import Row
from tidelog.generate import turbines
from tidelog.generate.rule_files import read_rules
from tidelog.generate.turbines import Reading
from tidelog.hypothetical import Hypotheses
from tidelog.hypothetical.regular_hypotheses import RegularHypotheses
from tidelog.hypothetical.supported_answers import make_answer_formatter

GOAL = "100,000 arrivals per second"


@dataclass(frozen=True)
class Stream:
    """Readings of all turbines at every time point, `high` with some probability, late by up to `delay`."""

    turbines: int
    readings: int
    delay: int
    high: float

    def batches(self) -> Iterator[list[Reading]]:
        """Yield the readings that arrive at 0, 1, 2, ..., shuffled."""
        return turbines.generate_batches(
            self.turbines, self.readings // self.turbines, delay=self.delay, high=self.high
        )


@dataclass
class Run:
    """Arrivals and answers, CPU and wall seconds, and the most hypotheses that were open at one time."""

    arrivals: int = 0
    answers: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    most_open: int = 0

    @property
    def per_arrival(self) -> float:
        """Microseconds per arrival."""
        return self.cpu / self.arrivals * 1e6


def run(stream: Stream, query: str = "Malf(X,T)", delay: list[str] | None = None, text: bool = False) -> Run:
    program = tl.Program.parse(read_rules("turbines.tdl"), syntax="tdl")
    session = Hypotheses(program, query, delay=delay or stream.delay)
    found = Run()
    for tau, batch in enumerate(stream.batches()):
        facts = [f"{name}({','.join(args)},{t})" for name, args, t in batch] if text else batch
        began, began_cpu = perf_counter(), process_time()
        answers = session.push(tau, facts)
        found.cpu += process_time() - began_cpu
        found.wall += perf_counter() - began
        found.arrivals += len(batch)
        found.answers += len(answers)
        if tau % 10 == 9:
            found.most_open = max(found.most_open, session.open)
    assert not session.rejected
    return found


def build_row(what: str, found: Run, goal: str = "", note: str = "") -> Row:
    rate = f"{found.arrivals / found.cpu:,.0f} per second"
    notes = [f"{found.answers:,} answers", f"at most {found.most_open:,} open", note]
    return Row(what, found.arrivals, found.cpu, found.wall, rate, goal, "; ".join(filter(None, notes)))


def measure_speed(readings: int) -> Iterator[Row]:
    """Measure the rate of arrivals, and how it depends on the delay."""
    for high in (0.1, 1.0):
        for delay in (0, 1, 5, 20):
            found = run(Stream(10_000, readings, delay, high))
            yield build_row(f"10,000 turbines, {high:.0%} high, delay {delay}", found, GOAL)
    found = run(Stream(10_000, readings, 5, 1.0), text=True)
    yield build_row("the same as text, 100% high, delay 5", found, GOAL)


def measure_open(readings: int) -> Iterator[Row]:
    """Measure the cost per arrival as more hypotheses are open; also for hypotheses of any shape."""
    base: dict[str, float] = {}
    for what, delay in (("delay 5", None), ("delays by constant", ["5", "Temp(wt1,_)=6"])):
        for number in (100, 1_000, 10_000):
            found = run(Stream(number, readings // 2, 5, 1.0), "Malf(X,T)", delay)
            growth = found.per_arrival / base.setdefault(what, found.per_arrival)
            note = f"{growth:.2f} of the smallest's cost per arrival"
            yield build_row(f"{what}: {number:,} turbines", found, GOAL, note)
    first = 0.0
    for size in (1, 2, 4):
        found = run(Stream(1_000, size * readings // 20, 2, 0.1), "Defective(X,T)")
        first = first or found.per_arrival
        note = f"{found.per_arrival / first:.2f} of the smallest's cost per arrival"
        yield build_row(f"open times (Defective): {size} x as long", found, "", note)


def measure_changes(readings: int) -> Iterator[Row]:
    """Measure changes as `tidelog hypothesise --changes` prints them, with the text of every line."""
    stream = Stream(1_000, readings // 10, 5, 1.0)
    session = Hypotheses(tl.Program.parse(read_rules("turbines.tdl"), syntax="tdl"), "Malf(X,T)", delay=stream.delay)
    arrivals = [(tau, fact) for tau, batch in enumerate(stream.batches()) for fact in batch]
    format_answer = make_answer_formatter(session.query)
    found, lines = Run(len(arrivals)), 0
    began, began_cpu = perf_counter(), process_time()
    for tau, changes in tl.hypothetical.changes(session, arrivals, None):
        lines += len([change.to_text(tau, format_answer) for change in changes])
    found.cpu, found.wall = process_time() - began_cpu, perf_counter() - began
    rate = f"{found.arrivals / found.cpu:,.0f} per second"
    note = f"{lines:,} lines"
    yield Row(
        "changes, 1,000 turbines, delay 5", found.arrivals, found.cpu, found.wall, rate, "20,000 per second", note
    )


def measure_memory(readings: int) -> Iterator[Row]:
    """Measure the memory of a session in the middle and at the end of a stream: it depends on the delay only."""
    for delay in (1, 5, 20):
        stream = Stream(2_000, readings // 5, delay, 1.0)
        steps = stream.readings // stream.turbines
        session = Hypotheses(tl.Program.parse(read_rules("turbines.tdl"), syntax="tdl"), "Malf(X,T)", delay=delay)
        held: list[int] = []
        for tau, batch in enumerate(stream.batches()):
            session.push(tau, batch)
            if tau in (steps // 2, steps - 1):
                held.append(_measure_size(session))
        figure = f"{held[-1] / held[0]:.2f} x"
        note = f"{held[-1] / 1e6:.1f} MB for {stream.turbines:,} turbines"
        yield Row(f"held at the end / in the middle, delay {delay}", stream.readings, 0, 0, figure, "1.00 x", note)


def _measure_size(session: Hypotheses) -> int:
    """Return the bytes of everything that a session owns."""
    seen: set[int] = set()
    assert isinstance(session._store, RegularHypotheses)
    waiting: list[object] = [tables.masks for tables in session._store.tables.values()]
    size = 0
    while waiting:
        item = waiting.pop()
        if id(item) not in seen:
            seen.add(id(item))
            size += sys.getsizeof(item)
            if isinstance(item, dict):
                waiting += [*item.keys(), *item.values()]
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--readings", type=int, default=1_000_000, help="how many readings; default: 1,000,000")
    readings = parser.parse_args().readings
    table = Table(title="hypothetical answers", box=None, title_justify="left", pad_edge=False)
    for title in ("what", "arrivals", "CPU s", "figure", "goal", "note"):
        table.add_column(title, justify="right" if title in ("arrivals", "CPU s", "figure") else "left")
    for part in (measure_speed, measure_open, measure_changes, measure_memory):
        for found in part(readings):
            cpu = f"{found.cpu:.2f}" if found.cpu else ""
            table.add_row(found.what, f"{found.facts:,}", cpu, found.figure, found.goal, found.note)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()

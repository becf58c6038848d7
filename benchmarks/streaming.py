"""Streaming rows of the benchmark table: rates, step times, facts held, and the cost of time without facts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from tidelog.compiler.compiled_program import Memory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import hand_written_loops
import tidelog as tl
from locations import TRAFFIC_S2
from table_rows import Row, measure
from tidelog.generate import lubm, signals, traffic
from tidelog.generate.rule_files import read_rules
from tidelog.streaming.answers import StreamStep

SHORT_STOP = "NotPos(V) :- NotOnMap(V).\n" + "\n".join(
    "ShortStop(V) :- NotPos(V), "
    + ", ".join(f"Diamondminus[{i},{i}] Pos(V)" for i in range(1, k + 1))
    + f", Diamondminus[{k + 1},{k + 1}] NotPos(V)."
    for k in range(1, 5)
)
SCIENTISTS = """\
ScientistCandidate(X):-Diamondminus[1,1]doctoralDegreeFrom(X,Y)
Scientist(X):-Boxminus[1,1]ScientistCandidate(X)
Scientist(X):-Diamondminus[1,1]FullProfessor(X)
FullProfessor(X):-Diamondminus[1,1]Scientist(X)
"""
NEAR = "Q(X) :- A(X), Diamondminus[1,3] B(X)."
LONG = "Q(X) :- A(X), Diamondminus[0,1000000] B(X)."
MISSING = "Q(X) :- A(X), not Diamondminus[0,1000000] B(X)."

Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Query:
    """A standing query with its options."""

    rules: str
    name: str
    at: str | None = None
    step: Fraction | None = None
    memory: Memory | None = None


@dataclass
class Run:
    """One run over a stream: CPU and wall seconds, CPU seconds of parsing, and for each step the clock, its seconds,
    the facts that arrived and the facts held after it."""

    cpu: float
    wall: float
    parse_cpu: float
    clock: Series
    steps: Series
    arrived: Series
    held: Series
    answers: int

    @property
    def most_held(self) -> int:
        return int(self.held.max())

    def percentile(self, percent: float) -> float:
        """The microseconds that this percentage of steps stays within."""
        return float(np.percentile(self.steps, percent)) * 1e6

    @property
    def mean_step(self) -> float:
        """Average microseconds per step, with the work of `feed` between steps but without parsing."""
        return (self.cpu - self.parse_cpu) / len(self.steps) * 1e6


def run(query: Query, text: str, ordered: bool) -> Run:
    """Parse a text, of which the rules may read only a part, and feed it to a new reasoner to the end."""
    began, began_cpu = perf_counter(), process_time()
    reads = tl.Program.parse(query.rules).predicates
    data = tl.Dataset.parse(text, ordered=ordered, reads=reads)
    parsed = process_time() - began_cpu
    steps, answers = take_steps(query, [data])
    cpu, wall = process_time() - began_cpu, perf_counter() - began
    return Run(cpu, wall, parsed, *describe_steps(steps), answers)


def take_steps(query: Query, pieces: Iterable[tl.Dataset]) -> tuple[list[StreamStep], int]:
    """Feed pieces of a stream to a new reasoner; return the steps but for the last, and the number of answers."""
    reasoner = tl.Reasoner(tl.Program.parse(query.rules), query.name, at=query.at, memory=query.memory)
    steps: list[StreamStep] = []
    for data in pieces:
        steps += reasoner.feed(data, step=query.step)
    return steps, sum(map(len, steps)) + len(reasoner.finish_step())


def describe_steps(steps: Iterable[StreamStep]) -> tuple[Series, Series, Series, Series]:
    """Return the four series of a `Run`."""
    rows = [(float(s.time), s.seconds, s.facts_in, s.window_facts + s.history_atoms) for s in steps]
    clock, seconds, arrived, held = np.array(rows, np.float64).T
    return clock, seconds, arrived, held


def run_best(query: Query, text: str, repeats: int, ordered: bool = True, joins: str = "auto") -> Run:
    """Return the run with the least CPU time of several, after one more that loads the kernels.

    With `joins="generated"` the kernels are those of a hot stream, which the first run compiles if they are not cached.
    """
    with patch.dict(os.environ, TIDELOG_JOINS=joins):
        runs = [run(query, text, ordered) for _ in range(repeats + 1)]
    return min(runs[1:], key=lambda one: one.cpu)


def measure_streams(large: bool) -> Iterator[Row]:
    """Measure all streaming rows."""
    for part in (
        short_stops,
        small_steps,
        partial(recursive, large),
        network,
        readings,
        heartbeats,
        density,
        idle,
        partial(states, large),
    ):
        yield from part()


def load_traffic() -> tuple[str, str]:
    """Return the real stream if it exists, or a generated one of its size, and its name."""
    if TRAFFIC_S2.exists():
        return TRAFFIC_S2.read_text(encoding="utf-8"), "traffic-S2"
    return generate_traffic(390), "generated traffic (no traffic-S2 here)"


def generate_traffic(vehicles: int, seconds: int = 200) -> str:
    """Generate traffic with the predicates of the real streams."""
    renamed = {"Drive": "NotPos", "Halt": "Pos"}
    timed: list[tuple[int, str]] = []
    for fact in traffic.generate_facts(vehicles=vehicles, seconds=seconds):
        name, rest = fact.split("(", 1)
        if "@" in rest:
            begin = int(rest.split("@")[1].strip("[").split(",")[0])
            timed.append((begin, f"{renamed.get(name, name)}({rest}"))
    return "\n".join(line for _, line in sorted(timed))


def short_stops() -> Iterator[Row]:
    """Short stops at the stream's own time points, and the loop written for this query."""
    text, source = load_traffic()
    count = text.rstrip("\n").count("\n") + 1
    found = run_best(Query(SHORT_STOP, "ShortStop", at="input"), text, 5, joins="generated")
    what = f"stream, short stops, {source}"
    rate = f"{count / found.cpu / 1e6:.2f} million facts per second"
    note = f"{found.answers:,} answers; {found.parse_cpu / found.cpu:.0%} of it is parsing"
    yield Row(f"{what}, parse and reason", count, found.cpu, found.wall, rate, "1 million", note)
    yield build_step_row(f"{what}: a step of {count / len(found.steps):.0f} facts", found, "100 µs")
    yield Row(
        f"{what}: most facts held", None, 0.0, 0.0, f"{found.most_held:,}", "1,325" if TRAFFIC_S2.exists() else ""
    )
    loop = hand_written_loops.ShortStopLoop(text)
    yield from compare_with_loop(what, count, found, loop.read, loop.find_answers, loop.run, ("4 x", "10 x"))


def build_step_row(what: str, found: Run, goal: str) -> Row:
    """Build a row for the median step, with the slow steps in its note."""
    mean = f"{found.mean_step:.0f} µs on average with the work between steps"
    note = f"99 of 100 within {found.percentile(99):.0f} µs; {mean}"
    return Row(what, None, 0.0, 0.0, f"{found.percentile(50):.0f} µs (median)", goal, note)


def compare_with_loop(
    what: str,
    count: int,
    found: Run,
    read: Callable[[], None],
    find_answers: Callable[[], int],
    run_loop: Callable[[], int],
    goals: tuple[str, str],
) -> Iterator[Row]:
    """Measure the loop from text and from columns, and how many times as long the reasoner takes; with both goals."""
    run_loop()
    answers, cpu, wall = measure(run_loop, 15)
    agree = f"{answers:,} answers, the same" if answers == found.answers else f"{answers:,} answers, which DIFFERS"
    ratio = f"{found.cpu / cpu:.0f} x the limit"
    yield Row(f"{what}: limit, a loop for this query", count, cpu, wall, ratio, goals[0], f"from text; {agree}")
    read()
    _, cpu, wall = measure(find_answers, 15)
    ratio = f"{(found.cpu - found.parse_cpu) / cpu:.0f} x the limit"
    note = "from columns with only what it needs; the reasoner without parsing"
    yield Row(f"{what}: limit without parsing", count, cpu, wall, ratio, goals[1], note)


def small_steps() -> Iterator[Row]:
    """Seventeen vehicles, each with one fact per second."""
    rng = Random(0)
    kinds = ("Pos", "NotPos", "NotOnMap")
    lines = (f"{rng.choices(kinds, (4, 5, 1))[0]}(v{v})@{t}" for t in range(5_000) for v in range(17))
    text = "\n".join(lines)
    found = run_best(Query(SHORT_STOP, "ShortStop", at="input"), text, 3, joins="generated")
    what = "stream, short stops, generated"
    rate = f"{len(found.steps) * 17 / found.cpu / 1e6:.2f} million facts per second"
    note = f"{found.answers:,} answers; every fact is read by rules"
    yield Row(f"{what}, 17 facts per step", 17 * len(found.steps), found.cpu, found.wall, rate, "", note)
    yield build_step_row(f"{what}: a step of 17 facts", found, "25 µs")
    loop = hand_written_loops.ShortStopLoop(text)
    yield from compare_with_loop(
        what, 17 * len(found.steps), found, loop.read, loop.find_answers, loop.run, ("5 x", "15 x")
    )


def recursive(large: bool) -> Iterator[Row]:
    """The recursive program over LUBM-like facts in steps of 0.5."""
    count = 5_000_000 if large else 1_000_000
    text = "\n".join(lubm.generate_facts(count))
    query = Query(SCIENTISTS, "Scientist", step=Fraction(1, 2))
    found = run_best(query, text, 2 if large else 3, ordered=False, joins="generated")
    what = "stream, LUBM, recursive, steps of 0.5"
    goal = "2 s" if large else "0.4 s (5 million in 2 s)"
    note = f"{found.answers:,} answers; {found.parse_cpu:.2f} s of it is parsing; most held {found.most_held:,}"
    yield Row(f"{what}, parse and reason", count, found.cpu, found.wall, f"{found.cpu:.2f} s", goal, note)
    yield build_step_row(f"{what}: a step of {count / len(found.steps):,.0f} facts", found, "")
    loop = hand_written_loops.ScientistLoop(text)
    yield from compare_with_loop(what, count, found, loop.read, loop.find_answers, loop.run, ("5 x", "40 x"))


def network(nodes: int = 1_000, edges: int = 5_000, sent: int = 200, horizon: int = 50) -> Iterator[Row]:
    """Signals that the nodes of a network watch; edges beyond those of the generator are random."""
    lines = list(signals.generate_facts(nodes, sent, horizon))
    connected = {line for line in lines if line.startswith("Connect")}
    rng = Random(1)
    while len(connected) < edges:
        one, other = rng.sample(range(nodes), 2)
        connected.add(f"Connect(n{one},n{other})")
    text = "\n".join([*sorted(connected), *(line for line in lines if not line.startswith("Connect"))])
    rules = read_rules("signals.dmtl")
    found = run_best(Query(rules, "Flag"), text, 1, ordered=False)
    what = f"stream, signals: {nodes:,} nodes, {edges:,} edges, {sent} signals, to time {horizon}"
    note = f"{found.answers:,} answers; median step {found.percentile(50) / 1e3:.1f} ms"
    yield Row(what, text.count("\n") + 1, found.cpu, found.wall, f"most held {found.most_held:,}", "", note)


def generate_heartbeats(nodes: int = 10_000, beats: int = 30_000) -> str:
    """Generate heartbeats, each at a time of its own, of nodes of which a third is down at any time.

    The others beat in turn, three times within the window of 30. For every hundredth beat another one is down.
    """
    silent = [n for n in range(nodes) if n % 3 == 0]
    beating = [n for n in range(nodes) if n % 3]
    lines = [f"Node(n{node})" for node in range(nodes)]
    for beat in range(beats):
        place = beat % len(beating)
        if beat % 100 == 0:
            gone = (beat // 100) % len(silent)
            silent[gone], beating[place] = beating[place], silent[gone]
        lines.append(f"Beat(n{beating[place]})@{beat * 10 / len(beating):.4f}")
    return "\n".join(lines)


def heartbeats() -> Iterator[Row]:
    """Nodes that are down because they have not been heard of: however many alarms stand, a beat costs the same."""
    rules = "Down(X) :- Node(X), not Diamondminus[0,30] Beat(X)."
    for nodes in (100, 10_000):
        text = generate_heartbeats(nodes)
        facts = text.count("\n") + 1 - nodes
        found = run_best(Query(rules, "Down"), text, 3, ordered=False)
        what = f"stream, heartbeats, a third of {nodes:,} nodes down"
        figure = f"{(found.cpu - found.parse_cpu) / facts * 1e6:.1f} µs per fact"
        goal = "10 µs" if nodes > 100 else ""
        note = f"{found.answers:,} answers; without parsing; median step {found.percentile(50):.1f} µs"
        yield Row(what, facts, found.cpu, found.wall, figure, goal, note)


def readings(nodes: int = 1_000, edges: int = 5_000, sent: int = 200, horizon: int = 200) -> Iterator[Row]:
    """Signals in a network, 100 readings of random ones per time unit, with 50 seeds that always hold."""
    rng = Random(1)
    connected: set[tuple[int, int]] = set()
    while len(connected) < edges:
        one, other = rng.sample(range(nodes), 2)
        connected.add((one, other))
    lines = [f"Connect(n{one},n{other})" for one, other in sorted(connected)]
    lines += [f"Monit(n{rng.randrange(nodes)},z{rng.randrange(sent)})" for _ in range(50)]
    lines += [f"Signal(z{rng.randrange(sent)})@{t}" for t in range(horizon) for _ in range(100)]
    query = Query(read_rules("signals.dmtl"), "Flag", step=Fraction(1))
    found = run_best(query, "\n".join(lines), 2, ordered=False, joins="generated")
    what = f"stream, signals: {nodes:,} nodes, {edges:,} edges, 100 readings of {sent} signals per step"
    note = f"{found.answers:,} answers; 99 of 100 steps within {found.percentile(99) / 1e3:.1f} ms"
    per_step = f"{found.mean_step / 1e3:.2f} ms per step"
    yield Row(what, len(lines), found.cpu, found.wall, per_step, "1.5 ms", note)


def generate_readings(dense: int, seconds: int = 40, sensors: int = 20) -> str:
    """Generate `dense` readings per second of every sensor."""
    rng = Random(0)
    return "\n".join(
        f"{'A' if rng.random() < 0.5 else 'B'}(s{sensor})@{at / dense:g}"
        for at in range(seconds * dense)
        for sensor in range(sensors)
    )


def density() -> Iterator[Row]:
    """Facts held for the same time span with one, ten and a hundred times as many readings."""
    base: dict[str, int] = {}
    for dense in (1, 10, 100):
        text = generate_readings(dense)
        runs = {
            memory: run_best(Query(NEAR, "Q", at="input", memory=memory), text, 1) for memory in ("generic", "bounded")
        }
        same = len({one.answers for one in runs.values()}) == 1
        for memory, one in runs.items():
            first = base.setdefault(memory, one.most_held)
            note = f"most facts held: {one.most_held / first:.1f} x; {one.answers:,} answers"
            yield Row(
                f"stream, {dense} x as dense, memory {memory}",
                text.count("\n") + 1,
                one.cpu,
                one.wall,
                f"most held {one.most_held:,}",
                "about the same" if memory == "bounded" and dense > 1 else "",
                note if same else f"{note}, which DIFFERS",
            )


def states(large: bool) -> Iterator[Row]:
    """States of some megabytes, saved and loaded."""
    for count in (16_000, 160_000, *([1_600_000] if large else [])):
        reasoner = tl.Reasoner(tl.Program.parse(LONG), "Q")
        data = tl.Dataset.parse("\n".join(f"B(s{i})@{i // 100}" for i in range(count)), ordered=True)
        for _ in reasoner.feed(data):
            pass
        state, cpu, wall = measure(reasoner.save, 3)
        megabytes = len(state) / 1e6
        what = f"stream, a state of {megabytes:.0f} MB"
        yield Row(f"{what}, saved", count, cpu, wall, f"{megabytes / cpu:.0f} MB/s")
        _, cpu, wall = measure(partial(tl.Reasoner.load, state), 3)
        yield Row(f"{what}, loaded", count, cpu, wall, f"{megabytes / cpu:.0f} MB/s")


def idle() -> Iterator[Row]:
    """Time passes without new facts, over a window that holds many."""
    count, times = 100_000, 1_000
    text = "\n".join(f"B(s{i})@{i // 100}" for i in range(count))
    for rules, kind in ((LONG, "diamond"), (MISSING, "negation")):
        reasoner = tl.Reasoner(tl.Program.parse(rules), "Q")
        for _ in reasoner.feed(tl.Dataset.parse(text, ordered=True)):
            pass
        reasoner.advance(count)
        steps = np.empty(times)
        began_cpu, began = process_time(), perf_counter()
        for i in range(times):
            start = perf_counter()
            reasoner.advance(count + 1 + i)
            steps[i] = perf_counter() - start
        cpu, wall = process_time() - began_cpu, perf_counter() - began
        figure = f"{np.median(steps) * 1e6:.0f} µs per step"
        note = f"99 of 100 within {np.percentile(steps, 99) * 1e6:.0f} µs"
        what = f"stream, {times:,} idle steps ({kind}), {count:,} facts held"
        yield Row(what, None, cpu, wall, figure, "microseconds", note)

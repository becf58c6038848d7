"""Streaming rows of the benchmark table: rates, steps, what is held, what time costs when nothing comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt

import limits
import tidelog as tl
from rows import Row, measured
from tidelog.generate import lubm, signals, traffic

ROOT = Path(__file__).parent.parent
#: A real stream, which is not part of the project.
REAL = ROOT.parent / "shared" / "data" / "traffic-S2.txt"

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

RATIO_GOAL = "at most 20"

Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Query:
    """A standing query, and how it is asked."""

    rules: str
    name: str
    at: str | None = None
    step: Fraction | None = None
    memory: str | None = None


@dataclass
class Run:
    """One way through a stream: CPU and wall seconds, those of parsing, and of each step the clock, the seconds that
    it took, the facts that came and those that were held after it."""

    cpu: float
    wall: float
    parse_cpu: float
    clock: Series
    steps: Series
    came: Series
    held: Series
    answers: int

    @property
    def most(self) -> int:
        return int(self.held.max())

    def percentile(self, percent: float) -> float:
        """Microseconds that so many of a hundred steps stay within."""
        return float(np.percentile(self.steps, percent)) * 1e6

    @property
    def between(self) -> float:
        """Microseconds a step with what `feed` does around it, on average; parsing is not counted."""
        return (self.cpu - self.parse_cpu) / len(self.steps) * 1e6


def run(query: Query, text: str, ordered: bool) -> Run:
    """Parses a text, and feeds it to a new reasoner to the end."""
    began, began_cpu = perf_counter(), process_time()
    data = tl.Dataset.parse(text, ordered=ordered)
    parsed = process_time() - began_cpu
    reasoner = tl.Reasoner(tl.Program.parse(query.rules), query.name, at=query.at, memory=query.memory)
    steps: list[tuple[float, float, int, int]] = []
    answers = 0
    for step in reasoner.feed(data, step=query.step):
        steps.append((float(step.t), step.seconds, step.facts_in, step.window_facts + step.history_atoms))
        answers += len(step.answers)
    answers += len(reasoner.end().answers)
    cpu, wall = process_time() - began_cpu, perf_counter() - began
    clock, seconds, came, held = np.array(steps, np.float64).T
    return Run(cpu, wall, parsed, clock, seconds, came, held, answers)


def best(query: Query, text: str, repeats: int, ordered: bool = True) -> Run:
    """The run with the least CPU time of several; the first, which may have to load kernels, is one more."""
    runs = [run(query, text, ordered) for _ in range(repeats + 1)]
    return min(runs[1:], key=lambda one: one.cpu)


def rows(large: bool) -> Iterator[Row]:
    """All streaming rows."""
    for part in (short_stops, small_steps, partial(recursive, large), network, density, idle, partial(states, large)):
        yield from part()


def traffic_text() -> tuple[str, str]:
    """The real stream if it is there, or a generated one of its size; and which it is."""
    if REAL.exists():
        return REAL.read_text(encoding="utf-8"), "traffic-S2"
    return generated_traffic(390), "generated traffic (no traffic-S2 here)"


def generated_traffic(vehicles: int, seconds: int = 200) -> str:
    """Traffic of the simulator, in the words of the real streams."""
    renamed = {"Drive": "NotPos", "Halt": "Pos"}
    timed: list[tuple[int, str]] = []
    for fact in traffic.facts(vehicles=vehicles, seconds=seconds):
        name, rest = fact.split("(", 1)
        if "@" in rest:
            begin = int(rest.split("@")[1].strip("[").split(",")[0])
            timed.append((begin, f"{renamed.get(name, name)}({rest}"))
    return "\n".join(line for _, line in sorted(timed))


def short_stops() -> Iterator[Row]:
    """Short stops at the stream's own time points, and the loop that does nothing else."""
    text, source = traffic_text()
    count = text.rstrip("\n").count("\n") + 1
    found = best(Query(SHORT_STOP, "ShortStop", at="input"), text, 5)
    what = f"stream, short stops, {source}"
    rate = f"{count / found.cpu / 1e6:.2f} million facts a second"
    note = f"{found.answers:,} answers; {found.parse_cpu / found.cpu:.0%} of it is parsing"
    yield Row(f"{what}, parse and reason", count, found.cpu, found.wall, rate, "1 million", note)
    yield step_row(f"{what}: a step of {count / len(found.steps):.0f} facts", found, "100 µs")
    yield Row(f"{what}: most facts held", None, 0.0, 0.0, f"{found.most:,}", "1,325" if REAL.exists() else "")
    loop = limits.Stops(text)
    yield from limit(what, count, found, loop.read, loop.answer, loop.both)


def step_row(what: str, found: Run, goal: str) -> Row:
    """The median step, and beside it the slow ones."""
    note = f"99 of 100 within {found.percentile(99):.0f} µs; {found.between:.0f} µs on average with what is between"
    return Row(what, None, 0.0, 0.0, f"{found.percentile(50):.0f} µs (median)", goal, note)


def limit(
    what: str,
    count: int,
    found: Run,
    read: Callable[[], None],
    answer: Callable[[], int],
    both: Callable[[], int],
) -> Iterator[Row]:
    """The loop for one query from text and from columns, and how many times as long the reasoner takes."""
    both()
    answers, cpu, wall = measured(both, 15)
    agree = f"{answers:,} answers, the same" if answers == found.answers else f"{answers:,} answers, which DIFFERS"
    ratio = f"{found.cpu / cpu:.0f} x the limit"
    yield Row(f"{what}: limit, a loop for this query", count, cpu, wall, ratio, RATIO_GOAL, f"from text; {agree}")
    read()
    _, cpu, wall = measured(answer, 15)
    ratio = f"{(found.cpu - found.parse_cpu) / cpu:.0f} x the limit"
    note = "from columns of just what it needs; the reasoner without parsing"
    yield Row(f"{what}: limit without parsing", count, cpu, wall, ratio, "", note)


def small_steps() -> Iterator[Row]:
    """Seventeen vehicles, each with one fact a second."""
    rng = Random(0)
    kinds = ("Pos", "NotPos", "NotOnMap")
    lines = (f"{rng.choices(kinds, (4, 5, 1))[0]}(v{v})@{t}" for t in range(5_000) for v in range(17))
    text = "\n".join(lines)
    found = best(Query(SHORT_STOP, "ShortStop", at="input"), text, 3)
    what = "stream, short stops, generated"
    rate = f"{len(found.steps) * 17 / found.cpu / 1e6:.2f} million facts a second"
    note = f"{found.answers:,} answers; every fact is read by rules"
    yield Row(f"{what}, 17 facts a step", 17 * len(found.steps), found.cpu, found.wall, rate, "", note)
    yield step_row(f"{what}: a step of 17 facts", found, "25 µs")
    loop = limits.Stops(text)
    yield from limit(what, 17 * len(found.steps), found, loop.read, loop.answer, loop.both)


def recursive(large: bool) -> Iterator[Row]:
    """The recursive program over LUBM-like facts in steps of 0.5."""
    count = 5_000_000 if large else 1_000_000
    text = "\n".join(lubm.facts(count))
    query = Query(SCIENTISTS, "Scientist", step=Fraction(1, 2))
    found = best(query, text, 2 if large else 3, ordered=False)
    what = "stream, LUBM, recursive, steps of 0.5"
    goal = "2 s" if large else "0.4 s (5 million in 2 s)"
    note = f"{found.answers:,} answers; {found.parse_cpu:.2f} s of it is parsing; most held {found.most:,}"
    yield Row(f"{what}, parse and reason", count, found.cpu, found.wall, f"{found.cpu:.2f} s", goal, note)
    yield step_row(f"{what}: a step of {count / len(found.steps):,.0f} facts", found, "")
    loop = limits.Scientists(text)
    yield from limit(what, count, found, loop.read, loop.answer, loop.both)


def network(nodes: int = 1_000, edges: int = 5_000, sent: int = 200, horizon: int = 50) -> Iterator[Row]:
    """Signals that nodes of a network watch; edges beyond those of the generator are random."""
    lines = list(signals.facts(nodes, sent, horizon))
    connected = {line for line in lines if line.startswith("Connect")}
    rng = Random(1)
    while len(connected) < edges:
        one, other = rng.sample(range(nodes), 2)
        connected.add(f"Connect(n{one},n{other})")
    text = "\n".join([*sorted(connected), *(line for line in lines if not line.startswith("Connect"))])
    rules = signals.program()
    found = best(Query(rules, "Flag"), text, 1, ordered=False)
    what = f"stream, signals: {nodes:,} nodes, {edges:,} edges, {sent} signals, to time {horizon}"
    note = f"{found.answers:,} answers; median step {found.percentile(50) / 1e3:.1f} ms"
    yield Row(what, text.count("\n") + 1, found.cpu, found.wall, f"most held {found.most:,}", "", note)


def readings(dense: int, seconds: int = 40, sensors: int = 20) -> str:
    """So many readings a second of every sensor."""
    rng = Random(0)
    return "\n".join(
        f"{'A' if rng.random() < 0.5 else 'B'}(s{sensor})@{at / dense:g}"
        for at in range(seconds * dense)
        for sensor in range(sensors)
    )


def density() -> Iterator[Row]:
    """The same time with one, ten and a hundred times as many readings: what is held."""
    base: dict[str, int] = {}
    for dense in (1, 10, 100):
        text = readings(dense)
        runs = {memory: best(Query(NEAR, "Q", at="input", memory=memory), text, 1) for memory in ("generic", "bounded")}
        same = len({one.answers for one in runs.values()}) == 1
        for memory, one in runs.items():
            first = base.setdefault(memory, one.most)
            note = f"most facts held: {one.most / first:.1f} x; {one.answers:,} answers"
            yield Row(
                f"stream, {dense} x as dense, memory {memory}",
                text.count("\n") + 1,
                one.cpu,
                one.wall,
                f"most held {one.most:,}",
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
        state, cpu, wall = measured(reasoner.save, 3)
        megabytes = len(state) / 1e6
        what = f"stream, a state of {megabytes:.0f} MB"
        yield Row(f"{what}, saved", count, cpu, wall, f"{megabytes / cpu:.0f} MB/s")
        _, cpu, wall = measured(partial(tl.Reasoner.load, state), 3)
        yield Row(f"{what}, loaded", count, cpu, wall, f"{megabytes / cpu:.0f} MB/s")


def idle() -> Iterator[Row]:
    """Time passes, and nothing comes, over a window that holds much."""
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
        figure = f"{np.median(steps) * 1e6:.0f} µs a step"
        note = f"99 of 100 within {np.percentile(steps, 99) * 1e6:.0f} µs"
        what = f"stream, {times:,} idle steps ({kind}), {count:,} facts held"
        yield Row(what, None, cpu, wall, figure, "microseconds", note)

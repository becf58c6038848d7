"""Rows for corrections: a view that is updated, against computing again; streams with late facts, against in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from time import perf_counter, process_time

import streaming
import tidelog as tl
from table_rows import Row, measure
from tidelog.generate import lubm

FACTS = 1_000_000
QUERY = "Scientist"
SCRATCH_REPEATS = 3
#: Rounds of deletions, each followed by the insertions that take it back: few facts, and a tenth of all.
FEW_ROUNDS, MANY_ROUNDS = 10, 3

FEW_GOAL, MANY_GOAL = "at most 0.01", "at most 1.2"


def measure_views() -> Iterator[Row]:
    """Measure updates of a view of an infinite model, relative to computing the model from scratch."""
    lines = list(lubm.generate_facts(FACTS))
    data = tl.Dataset.parse("\n".join(lines))
    program = tl.Program.parse(streaming.SCIENTISTS)
    model, scratch, wall = measure(partial(tl.materialise, program, data, query=QUERY), SCRATCH_REPEATS)
    note = f"{len(model.repeats):,} facts that repeat for ever"
    yield Row("LUBM, recursive for all time, from scratch", FACTS, scratch, wall, "1", "", note)
    view, cpu, wall = measure(partial(tl.View, program, data, query=QUERY))
    yield Row("the same as a view, first evaluation", FACTS, cpu, wall, f"{cpu / scratch:.2f} of from scratch")
    read = [line for line in lines if line.startswith(("doctoralDegreeFrom", "FullProfessor"))]
    yield from update_view(view, "100 of all facts", lines, 100, scratch)
    yield from update_view(view, "100 of the facts that rules read", read, 100, scratch)
    yield from update_view(view, "a tenth of all facts", lines, FACTS // 10, scratch)


def update_view(view: tl.View, what: str, lines: Sequence[str], count: int, scratch: float) -> Iterator[Row]:
    """Measure deletions and insertions of some facts, as datasets; the view is the same afterwards."""
    rng = Random(count)
    rounds, goal = (FEW_ROUNDS, FEW_GOAL) if count < FACTS // 100 else (MANY_ROUNDS, MANY_GOAL)
    times: dict[str, list[tuple[float, float]]] = {"delete": [], "insert": []}
    notes: dict[str, str] = {}
    for number in range(rounds + 1):
        facts = tl.Dataset.parse("\n".join(rng.sample(lines, count)))
        for way in ("delete", "insert"):
            began, began_cpu = perf_counter(), process_time()
            change = view.update(**{way: facts})
            if number:
                times[way].append((process_time() - began_cpu, perf_counter() - began))
            different = change.removed if way == "delete" else change.added
            notes[way] = f"{len(different) + len(different.repeats):,} changes" + (
                ", computed from scratch" if change.recomputed else ""
            )
    for way, measured in times.items():
        cpu, wall = min(measured)
        yield Row(f"view, {way} {what}", count, cpu, wall, f"{cpu / scratch:.4f} of from scratch", goal, notes[way])


STREAM_FACTS, KEYS, FACTS_PER_SECOND = 200_000, 10_000, 100
#: One fact in a hundred is late, by up to a minute; late facts are taken for ten minutes.
LATE, LATENESS, LENGTH = 0.01, 60, 600
STREAM_REPEATS = 3
LATE_GOAL, IN_ORDER_GOAL = "at least 0.5", "at most 1.10"

#: Streams by name: rules, the query, the length of a step, and the facts of a key in turn.
STREAMS = {
    "two payments in half a minute": (
        "Twice(C) :- Pay(C, V), Diamondminus[1,30] Pay(C, W).",
        "Twice",
        None,
        ("Pay({key},{value})",),
    ),
    "alarms with negation": (
        "Alarm(X) :- Hot(X), not Diamondminus[0,10] Ok(X).",
        "Alarm",
        None,
        ("Hot({key})", "Hot({key})", "Ok({key})"),
    ),
    "counts of payments, steps of 10 s": (
        "Busy(C) :- N = count[0,60]{ Pay(C, V) }, N >= 3.",
        "Busy",
        10,
        ("Pay({key},{value})",),
    ),
    "counts of payments": (
        "Busy(C) :- N = count[0,60]{ Pay(C, V) }, N >= 3.",
        "Busy",
        None,
        ("Pay({key},{value})",),
    ),
}


def measure_streams() -> Iterator[Row]:
    """Measure streams with and without corrections, in order and with late facts."""
    for name, (rules, query, step, atoms) in STREAMS.items():
        program = tl.Program.parse(rules)
        in_order, late = (read_stream(atoms, part) for part in (0.0, LATE))
        run = partial(run_stream, program, query, step)
        run(in_order, LENGTH)
        changes, plain, wall = measure(partial(run, in_order, None), STREAM_REPEATS)
        yield Row(f"{name}, no corrections", STREAM_FACTS, plain, wall, "1", "", f"{changes:,} answers")
        _, cpu, wall = measure(partial(run, in_order, LENGTH), STREAM_REPEATS)
        yield Row(f"{name}, corrections, no late facts", STREAM_FACTS, cpu, wall, f"{cpu / plain:.2f}", IN_ORDER_GOAL)
        changes, cpu, wall = measure(partial(run, late, LENGTH), STREAM_REPEATS)
        keeps = f"keeps {plain / cpu:.2f} of the throughput"
        yield Row(f"{name}, 1 % late", STREAM_FACTS, cpu, wall, keeps, LATE_GOAL, f"{changes:,} changes")


def read_stream(atoms: Sequence[str], late: float) -> tl.Dataset:
    """Return the facts of a stream in their order of arrival, some of them late."""
    rng = Random(1)
    arrivals = []
    for number in range(STREAM_FACTS):
        atom = rng.choice(atoms).format(key=f"k{rng.randrange(KEYS)}", value=rng.randrange(100))
        delay = rng.randrange(1, LATENESS) if rng.random() < late else 0
        arrivals.append((number + FACTS_PER_SECOND * delay, f"{atom}@{number // FACTS_PER_SECOND}"))
    return tl.Dataset.parse("\n".join(fact for _, fact in sorted(arrivals, key=lambda one: one[0])), ordered=True)


def run_stream(program: tl.Program, query: str, step: int | None, data: tl.Dataset, corrections: int | None) -> int:
    """Run a stream; return the number of answers, or of their changes."""
    reasoner = tl.Reasoner(program, query, corrections=corrections)
    found = sum(len(record) for record in reasoner.feed(data, step=step))
    return found + len(reasoner.finish())

"""Rows for corrections: a view over recursive rules, updated with few and with many facts, against computing again."""

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

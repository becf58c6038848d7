"""A long run: `make soak`, or `make soak FACTS=5` for five million facts.

Generated traffic goes through one reasoner in chunks. Now and then a line shows the memory of the process, the
number of facts that the reasoner holds, and percentiles (50, 99, 99.9) of the CPU time of steps. The last line has
percentiles of wall time, which other work on the machine disturbs. At the end all of it is drawn into
build/pictures/soak.png.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt

import pictures
import tidelog as tl
from streaming import SHORT_STOP
from tidelog.data.relation import Columns, Relation
from tidelog.data.symbol_table import Symbols

VEHICLES = 133
#: Facts of one vehicle per second: its position, its heading, and its acceleration.
KINDS = (
    (("Pos", 0.4), ("NotPos", 0.5), ("NotOnMap", 0.1)),
    (("NorthHeading", 0.25), ("EastHeading", 0.25), ("SouthHeading", 0.25), ("WestHeading", 0.25)),
    (("Acceleration", 0.5), ("SlowDown", 0.5)),
)
FACTS_PER_STEP = VEHICLES * len(KINDS)
#: Steps that are generated at once.
CHUNK_STEPS = 500
LINES = 20
PERCENTS = (50, 99, 99.9)


def generate_chunk(rng: np.random.Generator, first: int, steps: int, names: list[str]) -> tl.Dataset:
    """Generate the facts of some seconds, as columns."""
    symbols = Symbols()
    ids = np.array([symbols.intern(name) for name in names], np.int32)
    vehicle = np.tile(ids, steps)
    ticks = 2 * np.repeat(np.arange(first, first + steps, dtype=np.int64), len(names))
    relations: dict[tuple[str, int], Relation] = {}
    for kinds in KINDS:
        drawn = rng.choice(len(kinds), len(vehicle), p=[share for _, share in kinds])
        for number, (name, _) in enumerate(kinds):
            chosen = drawn == number
            relations[name, 1] = Relation(name, 1, vehicle[np.newaxis, chosen], ticks[chosen], ticks[chosen])
    return tl.Dataset(symbols, Columns(1, False, relations))


def read_memory() -> float:
    """Return the megabytes of the process in memory now or, if the system does not tell, at most so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1e3


def compute_percentiles(seconds: npt.NDArray[np.float32]) -> list[float]:
    """Compute percentiles in microseconds."""
    return [float(value) * 1e6 for value in np.percentile(seconds, PERCENTS)]


def format_columns(times: list[float]) -> str:
    return " ".join(f"{value:9.0f}" for value in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--facts", type=float, default=300, help="millions of facts (300)")
    parser.add_argument("--picture", type=Path, default=pictures.BUILD / "soak.png", help="where to draw the chart")
    parser.add_argument("--fresh", type=int, default=0, help="vehicles that each chunk replaces by new ones (0)")
    options = parser.parse_args()
    steps = max(1, round(options.facts * 1e6 / FACTS_PER_STEP))
    rng = np.random.default_rng(0)
    reasoner = tl.Reasoner(tl.Program.parse(SHORT_STOP), "ShortStop", at="input")
    names = [f"v{number}" for number in range(VEHICLES)]
    # Written to once before the run, so that it does not count as growing memory.
    cpu, wall = np.ones(steps, np.float32), np.ones(steps, np.float32)
    lines: list[tuple[int, float, list[float]]] = []
    made, done, shown, answers, most, spent = VEHICLES, 0, 0, 0, 0, 0.0
    began, began_cpu = perf_counter(), process_time()
    print(
        f"{steps * FACTS_PER_STEP:,} facts in steps of {FACTS_PER_STEP}; CPU microseconds of steps since the last line"
    )
    print(f"{'facts':>13} {'CPU s':>8} {'wall s':>8} {'RSS MB':>8} {'held':>7} {'50 %':>9} {'99 %':>9} {'99.9 %':>9}")
    while done < steps:
        data = generate_chunk(rng, done, min(CHUNK_STEPS, steps - done), names)
        start = before = process_time()
        for number, step in enumerate(reasoner.feed(data)):
            now = process_time()
            # Before its first step, all facts of a chunk are sorted: the CPU time of that step cannot be told apart.
            cpu[done], wall[done], before = now - before if number else step.seconds, step.seconds, now
            done += 1
            answers += len(step.answers)
            most = max(most, step.window_facts + step.history_atoms)
        spent += process_time() - start
        for _ in range(options.fresh):
            names[made % VEHICLES] = f"v{made}"
            made += 1
        if done - shown >= steps / LINES or done == steps:
            held = reasoner.last_step.window_facts + reasoner.last_step.history_atoms
            lines.append((done * FACTS_PER_STEP, read_memory(), compute_percentiles(cpu[shown:done])))
            used = f"{process_time() - began_cpu:8.1f} {perf_counter() - began:8.1f} {lines[-1][1]:8.1f} {held:7,}"
            print(f"{done * FACTS_PER_STEP:13,} {used} {format_columns(lines[-1][2])}", flush=True)
            shown = done
    answers += len(reasoner.finish_step().answers)
    for kind, seconds in (("CPU", cpu), ("wall", wall)):
        print(f"{f'all steps, {kind}':>48} {format_columns(compute_percentiles(seconds))}")
    rate = done * FACTS_PER_STEP / spent / 1e6
    print(f"{answers:,} answers, most held {most:,}, late {reasoner.late_count:,}; ", end="")
    print(f"{rate:.2f} million facts per CPU second,")
    print("not counting generation")
    times = {f"{percent:g} % of steps within": [line[2][n] for line in lines] for n, percent in enumerate(PERCENTS)}
    pictures.draw_soak(options.picture, [line[0] for line in lines], [line[1] for line in lines], times)
    print(f"drawn in {options.picture}")


if __name__ == "__main__":
    main()

"""A long run: `make soak`, or `make soak FACTS=5` for five million facts.

Generated traffic goes through one reasoner in pieces. As it goes, a line says how much memory the process has, how many
facts the reasoner holds, and which CPU time 50, 99 and 99.9 of a hundred steps stay within. The last line has wall time
too, which other work on the machine disturbs. At the end the same is drawn into build/pictures/soak.png.
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
from tidelog.data.columns import Columns, Relation
from tidelog.data.symbols import Symbols

VEHICLES = 133
#: Facts of one vehicle in a second: where it is, where it goes, and whether it is faster than before.
KINDS = (
    (("Pos", 0.4), ("NotPos", 0.5), ("NotOnMap", 0.1)),
    (("NorthHeading", 0.25), ("EastHeading", 0.25), ("SouthHeading", 0.25), ("WestHeading", 0.25)),
    (("Acceleration", 0.5), ("SlowDown", 0.5)),
)
A_STEP = VEHICLES * len(KINDS)
#: Steps that are generated at once.
PIECE = 500
LINES = 20
PERCENTS = (50, 99, 99.9)


def piece(rng: np.random.Generator, first: int, steps: int, names: list[str]) -> tl.Dataset:
    """The facts of some seconds, as columns."""
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


def memory() -> float:
    """Megabytes that the process has in memory now, or at most, where the system does not say."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1e3


def percentiles(seconds: npt.NDArray[np.float32]) -> list[float]:
    """In microseconds."""
    return [float(value) * 1e6 for value in np.percentile(seconds, PERCENTS)]


def columns(times: list[float]) -> str:
    return " ".join(f"{value:9.0f}" for value in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--facts", type=float, default=300, help="millions of facts (300)")
    parser.add_argument("--picture", type=Path, default=pictures.BUILD / "soak.png", help="where it is drawn")
    parser.add_argument("--fresh", type=int, default=0, help="vehicles replaced by new ones in every piece (0)")
    given = parser.parse_args()
    steps = max(1, round(given.facts * 1e6 / A_STEP))
    rng = np.random.default_rng(0)
    reasoner = tl.Reasoner(tl.Program.parse(SHORT_STOP), "ShortStop", at="input")
    names = [f"v{number}" for number in range(VEHICLES)]
    # Written to once before, so that it does not count as memory that grows.
    cpu, wall = np.ones(steps, np.float32), np.ones(steps, np.float32)
    lines: list[tuple[int, float, list[float]]] = []
    made, done, shown, answers, most, spent = VEHICLES, 0, 0, 0, 0, 0.0
    began, began_cpu = perf_counter(), process_time()
    print(f"{steps * A_STEP:,} facts in steps of {A_STEP}; CPU time of steps in microseconds, since the last line")
    print(f"{'facts':>13} {'CPU s':>8} {'wall s':>8} {'RSS MB':>8} {'held':>7} {'50 %':>9} {'99 %':>9} {'99.9 %':>9}")
    while done < steps:
        data = piece(rng, done, min(PIECE, steps - done), names)
        start = before = process_time()
        for number, step in enumerate(reasoner.feed(data)):
            now = process_time()
            # Before the first step of a piece all its facts are put in order, so that its own time is not known so.
            cpu[done], wall[done], before = now - before if number else step.seconds, step.seconds, now
            done += 1
            answers += len(step.answers)
            most = max(most, step.window_facts + step.history_atoms)
        spent += process_time() - start
        for _ in range(given.fresh):
            names[made % VEHICLES] = f"v{made}"
            made += 1
        if done - shown >= steps / LINES or done == steps:
            held = reasoner.stats.window_facts + reasoner.stats.history_atoms
            lines.append((done * A_STEP, memory(), percentiles(cpu[shown:done])))
            used = f"{process_time() - began_cpu:8.1f} {perf_counter() - began:8.1f} {lines[-1][1]:8.1f} {held:7,}"
            print(f"{done * A_STEP:13,} {used} {columns(lines[-1][2])}", flush=True)
            shown = done
    answers += len(reasoner.end().answers)
    for kind, seconds in (("CPU", cpu), ("wall", wall)):
        print(f"{f'all steps, {kind}':>48} {columns(percentiles(seconds))}")
    rate = done * A_STEP / spent / 1e6
    print(f"{answers:,} answers, most held {most:,}, late {reasoner.late:,}; {rate:.2f} million facts a CPU second,")
    print("generating not counted")
    times = {f"{percent:g} % of steps within": [line[2][n] for line in lines] for n, percent in enumerate(PERCENTS)}
    pictures.soak(given.picture, [line[0] for line in lines], [line[1] for line in lines], times)
    print(f"drawn in {given.picture}")


if __name__ == "__main__":
    main()

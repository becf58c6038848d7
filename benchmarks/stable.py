"""Stable models: the service rule against clingo by hand and against telingo, `make bench-stable`.

A vehicle is serviced 12 steps after its last service. All three are given the same services, as text, and list all
services up to the last step. Times are CPU seconds; ratios compare rows of one run only. telingo runs as a process of
its own.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter

from rich.console import Console
from rich.table import Table

import tidelog as tl
from rows import Row, measured

RULE = "Service(X) :- Diamondminus[12,12] Service(X), not Diamondminus(0,12) Service(X)."

#: As one would write it for clingo, in the form that it grounds and solves fastest.
BY_HAND = """
time(0..last).
service(X,T) :- given(X,T).
service(X,T) :- service(X,T-12), time(T), {not_between}.
#show service/2.
""".format(not_between=", ".join(f"not service(X,T-{k})" for k in range(1, 12)))

#: telingo counts its states from 0; a prime looks one state back.
BY_TELINGO = """
#program initial.
now(0).
{given}
#program dynamic.
now(T+1) :- 'now(T).
#program always.
service(X) :- _given(X,T), now(T).
service(X) :- {due}, {not_between}.
#program final.
:- not now({last}).
#show service/1.
"""

#: telingo is stopped after so many seconds of CPU.
PATIENCE = 120

REPEATS = 3

Services = list[tuple[int, int]]


def given(vehicles: int, steps: int) -> Services:
    """Each vehicle has a first service, and some that come early or late."""
    random = Random(f"{vehicles} {steps}")
    found = set()
    for vehicle in range(vehicles):
        time = random.randrange(12)
        while time < steps:
            found.add((vehicle, time))
            time += random.choice((3, 7, 11, 12, 13, 40, 100, 100))
    return sorted(found)


def by_tidelog(text: str, last: int) -> set[str]:
    found = tl.stable_models(tl.Program.parse(RULE), tl.Dataset.parse(text), between=(0, last))
    (model,) = found
    return {
        f"service({fact.args[0]},{time})"
        for fact in model.facts
        for time in range(int(fact.interval.lo), int(fact.interval.hi) + 1)
    }


def by_hand(text: str, last: int) -> set[str]:
    import clingo

    solver = clingo.Control(["-c", f"last={last}"])
    solver.add("base", [], BY_HAND + text)
    solver.ground([("base", [])])
    found: set[str] = set()
    solver.solve(on_model=lambda model: found.update(str(symbol) for symbol in model.symbols(shown=True)))
    return found


def by_telingo(services: Services, last: int, folder: Path) -> tuple[set[str] | None, float, float]:
    """The services (None if it was stopped), and CPU and wall time."""
    between = ", ".join(f"not {chr(39) * k}service(X)" for k in range(1, 12))
    facts = " ".join(f"given(v{v},{t})." for v, t in services)
    path = folder / "service.lp"
    path.write_text(BY_TELINGO.format(given=facts, due="'" * 12 + "service(X)", not_between=between, last=last))
    command = [sys.executable, "-m", "telingo", str(path), f"--imin={last + 1}", f"--imax={last + 1}", "--verbose=0"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE)),
    )
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - began
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found: set[str] = set()
    for number, state in enumerate(re.split(r"State \d+:", done.stdout)[1:]):
        found |= {f"service({vehicle},{number})" for vehicle in re.findall(r"service\((\w+)\)", state)}
    return found if done.returncode >= 0 else None, cpu, wall


def rows(vehicles: int, steps: int, folder: Path, telingo: bool) -> Iterator[Row]:
    services = given(vehicles, steps)
    last = steps - 1
    facts = "\n".join(f"Service(v{v})@{t}" for v, t in services)
    atoms = "\n".join(f"given(v{v},{t})." for v, t in services)
    expected, hand_cpu, hand_wall = measured(partial(by_hand, atoms, last), REPEATS)
    ours, cpu, wall = measured(partial(by_tidelog, facts, last), REPEATS)
    assert ours == expected, "both find the same services"
    what = f"{vehicles} vehicles, {steps:,} steps"
    yield Row(f"{what}: tidelog", len(services), cpu, wall, f"{cpu / hand_cpu:.2f} times by hand", "at most 3 times")
    yield Row(f"{what}: clingo by hand", len(services), hand_cpu, hand_wall, "1")
    if telingo:
        theirs, their_cpu, their_wall = by_telingo(services, last, folder)
        assert theirs in (None, expected), "telingo finds the same services"
        figure = f"{their_cpu / hand_cpu:.0f} times by hand" if theirs else f"stopped after {PATIENCE} s of CPU"
        yield Row(f"{what}: telingo 2.1.3", len(services), their_cpu, their_wall, figure)


def growth() -> Iterator[Row]:
    """Cost over the length of the data."""
    cost: dict[int, float] = {}
    for steps in (1_000, 10_000, 100_000):
        services = given(10, steps)
        facts = "\n".join(f"Service(v{v})@{t}" for v, t in services)
        _, cost[steps], wall = measured(partial(by_tidelog, facts, steps - 1), REPEATS)
        figure = f"{cost[steps] / steps * 1e6:.1f} µs a step"
        yield Row(f"10 vehicles, {steps:,} steps: tidelog", len(services), cost[steps], wall, figure, "the same a step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-telingo", action="store_true", help="it takes minutes")
    options = parser.parse_args()
    by_tidelog("Service(v)@0", 20)
    table = Table("what", "facts", "CPU s", "wall s", "figure", "goal")
    with tempfile.TemporaryDirectory() as folder:
        telingo = not options.without_telingo
        for row in (*rows(100, 1_000, Path(folder), telingo), *rows(10, 10_000, Path(folder), telingo), *growth()):
            table.add_row(row.what, f"{row.facts:,}", f"{row.cpu:.2f}", f"{row.wall:.2f}", row.figure, row.goal)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

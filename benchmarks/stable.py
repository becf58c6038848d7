"""Stable models, compared with a clingo program written by hand and with telingo: `make bench-stable`.

A vehicle is serviced 12 steps after its last service. All three systems read the same services as text, and list all
services up to the last step. Nodes of a ring are coloured, so that many choices depend on each other. Times are CPU
seconds; compare only rows of the same run. telingo runs as a process of its own.
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
from table_rows import Row, measure

RULE = "Service(X) :- Diamondminus[12,12] Service(X), not Diamondminus(0,12) Service(X)."

#: The rule for clingo, in the form that it grounds and solves fastest.
CLINGO_RULES = """
time(0..last).
service(X,T) :- given(X,T).
service(X,T) :- service(X,T-12), time(T), {not_between}.
#show service/2.
""".format(not_between=", ".join(f"not service(X,T-{k})" for k in range(1, 12)))

RING = """
Red(X) :- Node(X), not Green(X).
Green(X) :- Node(X), not Red(X).
Bottom :- Edge(X,Y), Red(X), Red(Y).
Bottom :- Red(X), Diamondminus[1,1] Red(X).
"""

CLINGO_RING = """
red(X,T) :- node(X,T), not green(X,T).
green(X,T) :- node(X,T), not red(X,T).
:- edge(X,Y), red(X,T), red(Y,T).
:- red(X,T), red(X,T+1).
#show red/2.
#show green/2.
"""

#: telingo counts its states from 0; a prime looks one state back.
TELINGO_RULES = """
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

#: Seconds of CPU time after which telingo is stopped.
TELINGO_SECONDS = 120

REPEATS = 3

Services = list[tuple[int, int]]


def generate_services(vehicles: int, steps: int) -> Services:
    """Generate a first service of each vehicle, and some that are early or late."""
    random = Random(f"{vehicles} {steps}")
    found = set()
    for vehicle in range(vehicles):
        time = random.randrange(12)
        while time < steps:
            found.add((vehicle, time))
            time += random.choice((3, 7, 11, 12, 13, 40, 100, 100))
    return sorted(found)


def run_tidelog(text: str, last: int) -> set[str]:
    found = tl.stable_models(tl.Program.parse(RULE), tl.Dataset.parse(text), between=(0, last))
    (model,) = found
    return {
        f"service({fact.args[0]},{time})"
        for fact in model.facts
        for time in range(int(fact.interval.lo), int(fact.interval.hi) + 1)
    }


def run_clingo(text: str, last: int) -> set[str]:
    import clingo

    solver = clingo.Control(["-c", f"last={last}"])
    solver.add("base", [], CLINGO_RULES + text)
    solver.ground([("base", [])])
    found: set[str] = set()
    solver.solve(on_model=lambda model: found.update(str(symbol) for symbol in model.symbols(shown=True)))
    return found


def run_telingo(services: Services, last: int, folder: Path) -> tuple[set[str] | None, float, float]:
    """Return the services (None if telingo was stopped), and CPU and wall time."""
    between = ", ".join(f"not {chr(39) * k}service(X)" for k in range(1, 12))
    facts = " ".join(f"given(v{v},{t})." for v, t in services)
    path = folder / "service.lp"
    path.write_text(TELINGO_RULES.format(given=facts, due="'" * 12 + "service(X)", not_between=between, last=last))
    command = [sys.executable, "-m", "telingo", str(path), f"--imin={last + 1}", f"--imax={last + 1}", "--verbose=0"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (TELINGO_SECONDS, TELINGO_SECONDS)),
    )
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - began
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found: set[str] = set()
    for number, state in enumerate(re.split(r"State \d+:", done.stdout)[1:]):
        found |= {f"service({vehicle},{number})" for vehicle in re.findall(r"service\((\w+)\)", state)}
    return found if done.returncode >= 0 else None, cpu, wall


def compare(vehicles: int, steps: int, folder: Path, telingo: bool) -> Iterator[Row]:
    services = generate_services(vehicles, steps)
    last = steps - 1
    facts = "\n".join(f"Service(v{v})@{t}" for v, t in services)
    atoms = "\n".join(f"given(v{v},{t})." for v, t in services)
    expected, hand_cpu, hand_wall = measure(partial(run_clingo, atoms, last), REPEATS)
    ours, cpu, wall = measure(partial(run_tidelog, facts, last), REPEATS)
    assert ours == expected, "both find the same services"
    what = f"{vehicles} vehicles, {steps:,} steps"
    yield Row(f"{what}: tidelog", len(services), cpu, wall, f"{cpu / hand_cpu:.2f} times by hand", "at most 3 times")
    yield Row(f"{what}: clingo by hand", len(services), hand_cpu, hand_wall, "1")
    if telingo:
        theirs, their_cpu, their_wall = run_telingo(services, last, folder)
        assert theirs in (None, expected), "telingo finds the same services"
        figure = f"{their_cpu / hand_cpu:.0f} times by hand" if theirs else f"stopped after {TELINGO_SECONDS} s of CPU"
        yield Row(f"{what}: telingo 2.1.3", len(services), their_cpu, their_wall, figure)


def compare_rings(nodes: int, times: int) -> Iterator[Row]:
    """Find one of the many models of a ring in which neighbours, and successive times, are not both red."""
    edges = [(i, (i + 1) % nodes) for i in range(nodes)]
    facts = "\n".join([f"Edge(n{a},n{b})\nNode(n{a})@[0,{times - 1}]" for a, b in edges])
    atoms = "\n".join([f"edge(n{a},n{b}). node(n{a},0..{times - 1})." for a, b in edges])

    def list_by_hand() -> set[str]:
        import clingo

        solver = clingo.Control()
        solver.add("base", [], CLINGO_RING + atoms)
        solver.ground([("base", [])])
        found: set[str] = set()
        solver.solve(on_model=lambda model: found.update(map(str, model.symbols(shown=True))))
        return found

    def list_facts() -> list[str]:
        (model,) = tl.stable_models(tl.Program.parse(RING), tl.Dataset.parse(facts))
        return list(map(str, model.facts))

    by_hand, hand_cpu, hand_wall = measure(list_by_hand, REPEATS)
    ours, cpu, wall = measure(list_facts, REPEATS)
    assert len(by_hand) == nodes * times, "each node has a colour at each time"
    assert ours, "there is a model"
    what = f"ring of {nodes} nodes, {times} times"
    yield Row(f"{what}: tidelog", 2 * nodes, cpu, wall, f"{cpu / hand_cpu:.2f} times by hand", "at most 3 times")
    yield Row(f"{what}: clingo by hand", 2 * nodes, hand_cpu, hand_wall, "1")


def measure_growth() -> Iterator[Row]:
    """Measure the cost per step for longer and longer data."""
    cost: dict[int, float] = {}
    for steps in (1_000, 10_000, 100_000):
        services = generate_services(10, steps)
        facts = "\n".join(f"Service(v{v})@{t}" for v, t in services)
        _, cost[steps], wall = measure(partial(run_tidelog, facts, steps - 1), REPEATS)
        figure = f"{cost[steps] / steps * 1e6:.1f} µs per step"
        yield Row(
            f"10 vehicles, {steps:,} steps: tidelog", len(services), cost[steps], wall, figure, "the same per step"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-telingo", action="store_true", help="leave telingo out, which takes minutes")
    options = parser.parse_args()
    run_tidelog("Service(v)@0", 20)
    table = Table("what", "facts", "CPU s", "wall s", "figure", "goal")
    with tempfile.TemporaryDirectory() as folder:
        telingo = not options.without_telingo
        for row in (
            *compare(100, 1_000, Path(folder), telingo),
            *compare(10, 10_000, Path(folder), telingo),
            *compare_rings(200, 51),
            *measure_growth(),
        ):
            table.add_row(row.what, f"{row.facts:,}", f"{row.cpu:.2f}", f"{row.wall:.2f}", row.figure, row.goal)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

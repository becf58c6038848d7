"""The benchmark table: `make bench`, or `make bench BENCH_FLAGS=--large` for ten million facts too.

Times are CPU seconds of this process unless a row says wall. Ours are warm: every measured call has run once on a
small input before, so that compiled kernels are loaded. Ratios compare rows of one run only.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

import tidelog as tl
from tidelog.generate import lubm

T = TypeVar("T")

CANDIDATES = [
    "AssistantProfessorCandidate(X):-Diamondminus[1,1]Lecturer(X)",
    "AssociateProfessorCandidate(X):-doctoralDegreeFrom(X,Y),Boxminus[1,1]University(Y)",
    "AssociateProfessorCandidate(X):-Boxminus[1,1]AssistantProfessorCandidate(X)",
]
SCIENTISTS = [
    "ScientistCandidate(X):-Diamondminus[1,1]doctoralDegreeFrom(X,Y)",
    "Scientist(X):-Boxminus[1,1]ScientistCandidate(X)",
    "Scientist(X):-Diamondminus[1,1]FullProfessor(X)",
    "FullProfessor(X):-Diamondminus[1,1]Scientist(X)",
]
HORIZON = 300
REPEATS = 3


@dataclass(frozen=True)
class Row:
    """One line of the table; `note` says what the figure means, compares or aims at."""

    what: str
    facts: int | None
    cpu: float
    wall: float
    note: str


def measured(work: Callable[[], T], repeats: int = 1) -> tuple[T, float, float]:
    """The result with the least CPU and wall time over some repeats."""
    cpu = wall = float("inf")
    for _ in range(repeats):
        began, began_cpu = perf_counter(), process_time()
        result = work()
        cpu, wall = min(cpu, process_time() - began_cpu), min(wall, perf_counter() - began)
    return result, cpu, wall


def tidelog_batch(rules: list[str], path: Path) -> tl.Model:
    """Loading and reasoning to the fixpoint."""
    return tl.materialise(tl.Program.parse("\n".join(rules)), tl.Dataset.load(path))


def meteor_batch(rules: list[str], path: Path, mode: str) -> Any:
    """The same with meteor-reasoner: its loader, its coalescing, its materialisation to the fixpoint."""
    from meteor_reasoner.materialization.coalesce import coalescing_d
    from meteor_reasoner.materialization.materialize import materialize
    from meteor_reasoner.utils.loader import load_dataset, load_program

    data = load_dataset(str(path))
    coalescing_d(data)
    with contextlib.redirect_stdout(io.StringIO()):
        materialize(data, load_program(rules), mode=mode, K=100)
    return data


def against_meteor(folder: Path) -> Iterator[Row]:
    """The non-recursive program over 100,000 facts, loading included, for both."""
    count = 100_000
    path = folder / "lubm-100k.facts"
    lubm.write(path, count)
    model, cpu, wall = measured(partial(tidelog_batch, CANDIDATES, path), REPEATS)
    yield Row("LUBM, not recursive, load and reason: tidelog", count, cpu, wall, f"{len(model):,} facts out")
    try:
        import meteor_reasoner  # noqa: F401
    except ImportError:
        yield Row("the same: meteor-reasoner", count, 0.0, 0.0, "not installed (pip install tidelog[bench])")
        return
    # As for tidelog: warm (its modules are imported by then), and the best of as many runs.
    small = folder / "warm.facts"
    meteor_batch(CANDIDATES, small, "seminaive")
    runs = {mode: measured(partial(meteor_batch, CANDIDATES, path, mode), REPEATS) for mode in ("seminaive", "naive")}
    mode, (data, peer_cpu, peer_wall) = min(runs.items(), key=lambda run: run[1][1])
    ours = {f"{fact.predicate}({','.join(map(str, fact.args))})@{fact.interval.bracketed()}" for fact in model}
    theirs = {
        f"{name}({','.join(term.name for term in entity)})@{span}"
        for name in data
        if name.endswith("Candidate")
        for entity, spans in data[name].items()
        for span in spans
    }
    agree = "the same facts out" if ours == theirs else f"{len(ours ^ theirs)} facts DIFFER"
    note = f"{mode}, its better mode; {agree}; tidelog is {peer_cpu / cpu:.0f} times as fast (goal 100)"
    yield Row("the same: meteor-reasoner 2.0.0", count, peer_cpu, peer_wall, note)


def growth(folder: Path, sizes: list[int]) -> Iterator[Row]:
    """The recursive program to time 300, and loading, as the data grows."""
    program = tl.Program.parse("\n".join(SCIENTISTS))
    smallest: tuple[float, float] | None = None
    for count in sizes:
        path = folder / f"lubm-{count}.facts"
        lubm.write(path, count)
        repeats = REPEATS if count <= 1_000_000 else 1
        data, load_cpu, load_wall = measured(partial(tl.Dataset.load, path), repeats)
        model, cpu, wall = measured(partial(tl.materialise, program, data, between=(0, HORIZON)), repeats)
        path.unlink()
        loading, reasoning = load_cpu / count * 1e9, cpu / count * 1e9
        smallest = smallest or (loading, reasoning)
        note = f"{loading:.0f} ns a fact, {loading / smallest[0]:.2f} of the smallest's"
        yield Row("LUBM, load", count, load_cpu, load_wall, note)
        note = f"{len(model):,} facts out; {reasoning:.0f} ns a fact, {reasoning / smallest[1]:.2f} of the smallest's"
        goal = "; goal: under 1 s" if count == 1_000_000 else ""
        yield Row(f"LUBM, recursive to time {HORIZON}, reason", count, cpu, wall, note + goal)


def scanning() -> Iterator[Row]:
    """Fact text to columns, short facts."""
    count = 1_000_000
    rng = Random(0)
    lines = [f"P{rng.randrange(5)}(a{rng.randrange(5000)},b{rng.randrange(500)})@{i // 10}" for i in range(count)]
    text = "\n".join(lines)
    del lines
    data, cpu, wall = measured(partial(tl.Dataset.parse, text), REPEATS)
    note = f"{count / cpu / 1e6:.1f} million facts a second (goal 5), {len(text) / cpu / 1e6:.0f} MB/s"
    yield Row("fact text, short facts, two arguments", count, cpu, wall, note)
    columns = [array for relation in data.relations.values() for array in (relation.args, relation.lo, relation.hi)]
    stored = sum(array.nbytes for array in columns)
    note = f"{stored / count:.1f} bytes a fact (goal 16 + 4 an argument = 24)"
    yield Row("the same, size in memory", count, 0.0, 0.0, note)


def starting(folder: Path) -> Iterator[Row]:
    """Fresh processes: the bare interpreter, the import, a small command."""
    rules = folder / "small.dmtl"
    rules.write_text("\n".join(SCIENTISTS), encoding="utf-8")
    bare = _process(["-c", "pass"])
    light = _process(["-c", "import tidelog"])
    note = f"{light - bare:.2f} s over the bare interpreter (goal 0.3)"
    yield Row("import tidelog (fresh process)", None, 0.0, light, note)
    small = _process(["-c", "from tidelog.cli.main import main; main()", "check", str(rules)])
    yield Row("tidelog check (fresh process)", None, 0.0, small, "goal: under 1 s")


def _process(arguments: list[str]) -> float:
    def call() -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    return measured(call, REPEATS)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--large", action="store_true", help="ten million facts too (takes minutes and about 2 GB)")
    large = parser.parse_args().large
    sizes = [100_000, 1_000_000, *([10_000_000] if large else [])]
    table = Table(title="tidelog benchmarks", box=None, title_justify="left", pad_edge=False)
    for title in ("what", "facts", "CPU s", "wall s", ""):
        table.add_column(title, justify="right" if title in ("facts", "CPU s", "wall s") else "left")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _warm(folder)
        for rows in (against_meteor(folder), growth(folder, sizes), scanning(), starting(folder)):
            for row in rows:
                cpu, wall = (f"{value:.3f}" if value else "" for value in (row.cpu, row.wall))
                table.add_row(row.what, f"{row.facts:,}" if row.facts else "", cpu, wall, row.note)
                print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _warm(folder: Path) -> None:
    """Load (or compile) every kernel that the rows use."""
    path = folder / "warm.facts"
    lubm.write(path, 8_000)
    tidelog_batch(CANDIDATES, path)
    tl.materialise(tl.Program.parse("\n".join(SCIENTISTS)), tl.Dataset.load(path), between=(0, HORIZON))


if __name__ == "__main__":
    main()

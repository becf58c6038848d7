"""The benchmark table: `make bench`, or `make bench BENCH_FLAGS=--large` for more facts.

Times are CPU seconds of this process with one thread, unless a row says otherwise, the best of several runs. tidelog is
warm: every measured call has run once on a small input before, so that compiled kernels are loaded. Compare only rows
of the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import aggregates
import corrections
import frames
import hierarchies
import questions
import streaming
import threads
import tidelog as tl
from table_rows import Row, measure
from tidelog.engine.fact_store import Rows, Store
from tidelog.generate import lubm
from tidelog.generate.rule_files import read_rules

#: One rule per item, without the final dot, as meteor-reasoner reads it too.
CANDIDATES = [str(rule.text).replace(" ", "").rstrip(".") for rule in tl.Program.parse(read_rules("lubm.dmtl")).rules]
HORIZON = 300
REPEATS = 5
#: For calls of a few hundredths of a second, which other work on the machine disturbs most.
MORE_REPEATS = 15


_TURBINES = "examples/turbines/overheated.dmtl examples/turbines/Reading.csv"
#: Commands over the example of the README.
SMALL_COMMANDS = {
    "check": "check examples/turbines/overheated.dmtl",
    "materialise": f"materialise {_TURBINES} --query Overheated",
    "entails": f"entails {_TURBINES} Overheated(t1)@2026-01-31T10:00:50Z",
    "explain": f"explain {_TURBINES} Overheated(t1)@2026-01-31T10:00:50Z",
    "stream": "stream examples/turbines/overheated.dmtl --query Overheated --input examples/turbines/Reading.csv",
    "test": "test examples/devices/devices.test",
}

GROWTH_NOTE = """
The engine's work grows linearly with the facts. The rest is memory: a small set stays in the processor's caches, and a
large one takes fresh pages from the system, whose CPU time counts here."""


def run_tidelog(rules: list[str], path: Path) -> tl.Model:
    """Load the facts and compute the model."""
    return tl.materialise(tl.Program.parse("\n".join(rules)), tl.Dataset.load(path))


def run_meteor(rules: list[str], path: Path, mode: str) -> Any:
    """Do the same with meteor-reasoner: its loader, its coalescing, its materialisation to the fixpoint."""
    from meteor_reasoner.materialization.coalesce import coalescing_d
    from meteor_reasoner.materialization.materialize import materialize
    from meteor_reasoner.utils.loader import load_dataset, load_program

    data = load_dataset(str(path))
    coalescing_d(data)
    with contextlib.redirect_stdout(io.StringIO()):
        materialize(data, load_program(rules), mode=mode, K=100)
    return data


def compare_with_meteor(folder: Path) -> Iterator[Row]:
    """Measure both systems on the non-recursive program over 100,000 facts, including loading."""
    count = 100_000
    path = folder / "lubm-100k.facts"
    lubm.write_facts(path, count)
    model, cpu, wall = measure(partial(run_tidelog, CANDIDATES, path), MORE_REPEATS)
    what = "LUBM, not recursive, load and reason"
    try:
        import meteor_reasoner  # noqa: F401
    except ImportError:
        note = "meteor-reasoner is not installed (pip install tidelog[bench])"
        yield Row(f"{what}: tidelog", count, cpu, wall, "", "100 times as fast as meteor-reasoner", note)
        return
    # As for tidelog: warm (its modules are imported), and the best of several runs.
    small = folder / "warm.facts"
    run_meteor(CANDIDATES, small, "seminaive")
    runs = {mode: measure(partial(run_meteor, CANDIDATES, path, mode), REPEATS) for mode in ("seminaive", "naive")}
    mode, (data, peer_cpu, peer_wall) = min(runs.items(), key=lambda run: run[1][1])
    ours = {f"{fact.predicate}({','.join(map(str, fact.args))})@{fact.interval.with_brackets()}" for fact in model}
    theirs = {
        f"{name}({','.join(term.name for term in entity)})@{span}"
        for name in data
        if name.endswith("Candidate")
        for entity, spans in data[name].items()
        for span in spans
    }
    agree = f"{len(model):,} facts out, the same" if ours == theirs else f"{len(ours ^ theirs)} facts DIFFER"
    yield Row(f"{what}: meteor-reasoner 2.0.0", count, peer_cpu, peer_wall, "1 x", "", f"{mode}, its better mode")
    yield Row(f"{what}: tidelog", count, cpu, wall, f"{peer_cpu / cpu:.0f} x as fast", "100 x", agree)


def measure_growth(folder: Path, sizes: list[int]) -> Iterator[Row]:
    """Measure loading, and the recursive program to time 300, at several sizes: the cost per fact."""
    program = tl.Program.parse(streaming.SCIENTISTS)
    loading: list[Row] = []
    reasoning: list[Row] = []
    base: dict[str, float] = {}

    def build_row(what: str, count: int, cpu: float, wall: float, goal: str, note: str) -> Row:
        per_fact = cpu / count * 1e9
        relative = f"{per_fact / base.setdefault(what, per_fact):.2f} of the smallest's"
        return Row(
            what, count, cpu, wall, f"{per_fact:.0f} ns per fact", goal, "; ".join(filter(None, [relative, note]))
        )

    for count in sizes:
        path = folder / f"lubm-{count}.facts"
        lubm.write_facts(path, count)
        repeats = MORE_REPEATS if count < 1_000_000 else REPEATS if count == 1_000_000 else 2
        data, load_cpu, load_wall = measure(partial(tl.Dataset.load, path), repeats)
        model, cpu, wall = measure(partial(tl.materialise, program, data, between=(0, HORIZON)), repeats)
        path.unlink()
        rate = f"{count / load_cpu / 1e6:.1f} million facts per second"
        loading.append(build_row("LUBM, load", count, load_cpu, load_wall, "linear: 1.00", rate))
        goal = "linear: 1.00, and under 1 s" if count == 1_000_000 else "linear: 1.00"
        what = f"LUBM, recursive to time {HORIZON}, reason"
        reasoning.append(build_row(what, count, cpu, wall, goal, f"{len(model):,} facts out"))
        del data, model
    yield from loading
    yield from reasoning


def measure_scanning() -> Iterator[Row]:
    """Measure scanning of fact text, and the memory of facts as columns and in the engine."""
    count = 1_000_000
    rng = Random(0)
    lines = [f"P{rng.randrange(5)}(a{rng.randrange(5000)},b{rng.randrange(500)})@{i // 10}" for i in range(count)]
    text = "\n".join(lines)
    del lines
    data, cpu, wall = measure(partial(tl.Dataset.parse, text), REPEATS)
    rate, speed = f"{count / cpu / 1e6:.1f} million facts per second", f"{len(text) / cpu / 1e6:.0f} MB/s"
    yield Row("fact text, short facts, two arguments", count, cpu, wall, rate, "5 million", speed)
    columns = [array for relation in data.relations.values() for array in (relation.args, relation.lo, relation.hi)]
    stored = sum(array.nbytes for array in columns)
    yield Row(
        "the same, as columns in memory", count, 0.0, 0.0, f"{stored / count:.1f} bytes per fact", "16 + 4 per argument"
    )
    number = np.arange(count, dtype=np.int32)
    ticks = 2 * number.astype(np.int64)
    store = Store([2], True, np.zeros(1, np.int64))
    rows = Rows(np.array([number, number]), ticks, ticks)
    _, cpu, wall = measure(partial(store.insert, 0, rows))
    figure = f"{store.nbytes() / count:.1f} bytes per fact"
    note = "distinct atoms of two arguments, with the hash table"
    yield Row("the engine, facts stored for joins", count, cpu, wall, figure, "", note)


def measure_negation() -> Iterator[Row]:
    """Measure `not` over one atom with many intervals: the cost may grow as n log n."""
    for negated in ("P", "Boxminus[0,1] P", "Diamondminus[0,1] P"):
        program = tl.Program.parse(f"V :- R, not {negated}.")
        base: float | None = None
        for count in (10_000, 100_000):
            text = "\n".join(f"R@[{10 * i},{10 * i + 6}]\nP@[{10 * i + 2},{10 * i + 4}]" for i in range(count))
            data = tl.Dataset.parse(text)
            model, cpu, wall = measure(partial(tl.materialise, program, data), REPEATS)
            per_interval = cpu / count * 1e9
            base = base or per_interval
            note = f"{len(model):,} facts out; per interval {per_interval / base:.2f} of the smallest's"
            yield Row(f"batch, V :- R, not {negated}", count, cpu, wall, f"{cpu:.3f} s", "0.1 s for 100,000", note)


def measure_gap() -> Iterator[Row]:
    """Measure a recursion over two groups of facts, with gaps of different lengths: the gap should cost nothing."""
    program = tl.Program.parse("A(X) :- Diamondminus[2,2] A(X), not B(X).\nHeld(X) :- Diamondminus[0,2] A(X).")
    base: float | None = None
    for gap in (1_000, 60_000_000):
        lines = [f"A(a{i})@{i}\nA(b{i})@{gap + i}\nB(a{i})@{gap + 10 + i}" for i in range(100)]
        data = tl.Dataset.parse("\n".join(lines))
        model, cpu, wall = measure(
            partial(tl.materialise, program, data, query="Held", between=(gap, gap + 200)), REPEATS
        )
        base = base or cpu
        note = f"{len(model):,} facts out; {cpu / base:.2f} of the shorter gap's"
        yield Row(f"batch, recursion over a gap of {gap:,}", 300, cpu, wall, f"{cpu:.3f} s", "the gap is free", note)


def measure_start(folder: Path) -> Iterator[Row]:
    """Measure fresh processes: the import, small commands, and the first answer with an empty cache."""
    bare = _time_process(["-c", "pass"])
    light = _time_process(["-c", "import tidelog"])
    over = f"{light.wall - bare.wall:.2f} s"
    yield Row("import tidelog (fresh process)", None, light.cpu, light.wall, over, "0.3 s", "over the bare interpreter")
    for name, arguments in SMALL_COMMANDS.items():
        command = ["-c", "from tidelog.cli.main import main; main()", *arguments.split()]
        warm = _time_process(command, TIDELOG_BACKGROUND="off")
        yield Row(f"tidelog {name} (fresh process)", None, warm.cpu, warm.wall, f"{warm.cpu:.2f} s", "0.4 s of CPU")
    command = ["-c", "from tidelog.cli.main import main; main()", *SMALL_COMMANDS["materialise"].split()]
    first = _time_process(command, TIDELOG_BACKGROUND="off", NUMBA_CACHE_DIR=str(folder / "no-cache-yet"))
    note = "without what the background process takes"
    yield Row("first answer after installation", None, first.cpu, first.wall, f"{first.cpu:.2f} s", "2 s of CPU", note)


def measure_hierarchies(folder: Path) -> Iterator[Row]:
    """Measure a process that computes the model of a program with many rules: load, reason and print."""
    count = 1_000_000
    rules, facts = folder / "hierarchies.dmtl", folder / "hierarchies.facts"
    rules.write_text("\n".join(hierarchies.list_rules()), encoding="utf-8")
    lubm.write_facts(facts, count)
    arguments = ["materialise", str(rules), str(facts), "--between", f"0,{HORIZON}", "-o", os.devnull]
    command = ["-c", "from tidelog.cli.main import main; main()", *arguments, "--format", "facts"]
    for chosen in ("1", ""):
        found = _time_process(command, TIDELOG_BACKGROUND="off", TIDELOG_THREADS=chosen)
        what = f"tidelog materialise, {len(hierarchies.list_rules())} rules (fresh process)"
        note = "one thread" if chosen else "one thread per core; the figure is wall time"
        seconds = found.cpu if chosen else found.wall
        yield Row(what, count, found.cpu, found.wall, f"{seconds:.2f} s", "2.5 s", note)


class ProcessTimes(NamedTuple):
    """The least CPU time and the least wall time of several runs of a process."""

    cpu: float
    wall: float


def _time_process(arguments: list[str], **environment: str) -> ProcessTimes:
    """Measure processes that compile nothing; their caches are as the first of them leaves them."""
    times = []
    for _ in range(REPEATS):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        subprocess.run(
            [sys.executable, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            cwd=Path(__file__).parent.parent,
        )
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - began
        times.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    return ProcessTimes(min(cpu for cpu, _ in times), min(wall for _, wall in times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--large",
        action="store_true",
        help="also ten million facts, and a stream of five million (takes minutes and about 2 GB)",
    )
    large = parser.parse_args().large
    os.environ["TIDELOG_THREADS"] = "1"
    sizes = [100_000, 1_000_000, *([10_000_000] if large else [])]
    table = Table(title="tidelog benchmarks", box=None, title_justify="left", pad_edge=False)
    for title in ("what", "facts", "CPU s", "wall s", "figure", "goal", "note"):
        table.add_column(title, justify="right" if title in ("facts", "CPU s", "wall s", "figure") else "left")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _warm_up(folder)
        for rows in (
            compare_with_meteor(folder),
            measure_growth(folder, sizes),
            measure_scanning(),
            frames.measure_frames(folder),
            measure_negation(),
            measure_gap(),
            measure_start(folder),
            measure_hierarchies(folder),
            questions.measure_questions(
                folder / "hierarchies.dmtl",
                folder / "hierarchies.facts",
                partial(_time_process, TIDELOG_BACKGROUND="off", TIDELOG_THREADS="1"),
            ),
            threads.measure_threads(folder),
            streaming.measure_streams(large),
            aggregates.measure_aggregates(),
            corrections.measure_views(),
            corrections.measure_streams(),
        ):
            for row in rows:
                cpu, wall = (_format_seconds(value) for value in (row.cpu, row.wall))
                table.add_row(
                    row.what, f"{row.facts:,}" if row.facts else "", cpu, wall, row.figure, row.goal, row.note
                )
                print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    console.print(GROWTH_NOTE)


def _format_seconds(value: float) -> str:
    return f"{value:.{3 if value >= 0.01 else 5}f}" if value else ""


def _warm_up(folder: Path) -> None:
    """Load (or compile) every kernel that the rows use."""
    path = folder / "warm.facts"
    lubm.write_facts(path, 8_000)
    run_tidelog(CANDIDATES, path)
    tl.materialise(tl.Program.parse(streaming.SCIENTISTS), tl.Dataset.load(path), between=(0, HORIZON))


if __name__ == "__main__":
    main()

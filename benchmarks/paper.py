"""The experiments of the paper on stream reasoning with DatalogMTL: `make paper` repeats them into build/paper.

The paper is P. A. Wałęga, M. Kaminski, D. Wang, B. Cuenca Grau: Stream reasoning with DatalogMTL, Journal of Web
Semantics, 2023. Its Table 2 and Figures 1 to 6 are measured again with tidelog, as images and as CSV. Numbers that
the text of the paper states stand beside, marked as published: they come from other hardware, and for university data
from another generator. The curves of its figures are not stated as numbers, so none are shown.

`make paper PAPER_FLAGS=--small` takes a minute, on a small part of the facts.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter, process_time
from typing import IO

import numpy as np

import pictures
import tidelog as tl
from locations import ROOT, TRAFFIC_DATA
from pictures import COLOURS, Bar, BarPanel, Line, Panel, draw
from streaming import SCIENTISTS, SHORT_STOP, Query, Run, Series, describe_steps, generate_traffic, take_steps
from tidelog.generate import lubm
from tidelog.generate.rule_files import read_rules
from tidelog.generate.table_writer import join_lines
from tidelog.streaming.stream_reader import read_pieces

BUILD = ROOT / "build" / "paper"
HORIZON = 300
GREY = "#555555"
#: Beside every published number.
PUBLISHED = "published, other hardware"
MEASURED = "measured here"


@dataclass(frozen=True)
class Experiment:
    """A query over university data, and what the paper states per dataset: most facts held in batch and as a stream."""

    title: str
    query: Query
    batch: tuple[int, ...]
    stream: tuple[int, ...]


#: The datasets D5 to D20 of the paper, in millions of facts.
DATASETS = (5, 10, 15, 20)
#: Rules that the paper does not print: they are in the repository that it names, wdimmy/StreamReasoningWithDatalogMTL.
PLAIN = Experiment(
    "non-recursive",
    Query(read_rules("lubm.dmtl"), "AssociateProfessorCandidate", step=Fraction(1, 2)),
    (41_612, 83_196, 124_717, 165_812),
    (1_006, 2_015, 2_841, 3_738),
)
RECURSIVE = Experiment(
    "recursive",
    Query(SCIENTISTS, "Scientist", step=Fraction(1, 2)),
    (92_243, 186_087, 279_019, 369_664),
    (2_829, 5_699, 8_353, 10_945),
)
EXPERIMENTS = (PLAIN, RECURSIVE)
#: Facts of the streams S1 and S2, and a bound of the time of every step, in seconds.
TRAFFIC_FACTS = {"S1": 23_828, "S2": 80_124}
LONGEST_STEP = 1.0


@dataclass(frozen=True)
class Measured:
    """One experiment over one dataset: the stream, and the facts and the CPU seconds in batch."""

    stream: Run
    batch: int
    batch_cpu: float


def note(text: str) -> None:
    """Say what happens, beside the results."""
    print(text, file=sys.stderr, flush=True)


def write_university_data(count: int, whole: Path, read: Path) -> None:
    """Write a dataset in which every fact holds at one time point, and apart the facts that some rule reads."""
    names = {name for one in EXPERIMENTS for name in tl.Program.parse(one.query.rules).predicates}

    def generate(file: IO[str]) -> Iterator[str]:
        for number, line in enumerate(lubm.generate_facts(count, horizon=HORIZON), 1):
            if number % 1_000_000 == 0:
                note(f"  {number:,} of {count:,} facts written")
            name = line.partition("(")[0]
            if name == "University":  # the generator gives it an interval, the paper gives points to all
                line = line.replace("[", "").rpartition(",")[0]
            if name in names:
                file.write(f"{line}\n")
            yield line

    with whole.open("w", encoding="utf-8") as out, read.open("w", encoding="utf-8") as file:
        out.writelines(join_lines(generate(file)))


def run_stream(query: Query, path: Path) -> Run:
    """Stream a file through a new reasoner in pieces; return one record per time."""
    began, began_cpu = perf_counter(), process_time()
    steps, answers = take_steps(query, (piece.data for piece in read_pieces(str(path))))
    cpu, wall = process_time() - began_cpu, perf_counter() - began
    clock, seconds, arrived, held = describe_steps(steps)
    # A piece may end within a time, which is then taken in two steps.
    times, first = np.unique(clock, return_index=True)
    last = np.append(first[1:], len(clock)) - 1
    seconds, arrived = (np.add.reduceat(series, first) for series in (seconds, arrived))
    parsing = float("nan")  # other threads parse ahead
    return Run(cpu, wall, parsing, times, seconds, arrived, held[last], answers)


def run_batch(query: Query, path: Path) -> tuple[int, float]:
    """Return how many facts rules read or derive up to the horizon (batch holds them all), and CPU seconds."""
    began = process_time()
    program, data = tl.Program.parse(query.rules), tl.Dataset.load(path)
    model = tl.materialise(program, data, query=program.predicates, between=(0, HORIZON))
    return len(model), process_time() - began


def measure_universities(counts: tuple[int, ...]) -> dict[str, list[Measured]]:
    """Run both experiments over each dataset, one after the other, with one dataset on disk at a time."""
    found: dict[str, list[Measured]] = {one.title: [] for one in EXPERIMENTS}
    for number, count in zip(DATASETS, counts, strict=True):
        note(f"D{number}: {count:,} facts")
        with tempfile.TemporaryDirectory(prefix="tidelog-paper-") as folder:
            whole, read = Path(folder) / "whole.facts", Path(folder) / "read.facts"
            write_university_data(count, whole, read)
            for one in EXPERIMENTS:
                stream = run_stream(one.query, whole)
                note(f"  {one.title}, stream: most facts held {stream.most_held:,}, {stream.cpu:.1f} s of CPU")
                batch, cpu = run_batch(one.query, read)
                note(f"  {one.title}, batch: {batch:,} facts, {cpu:.1f} s of CPU")
                found[one.title].append(Measured(stream, batch, cpu))
    return found


def load_streams() -> dict[str, tuple[str, str]]:
    """Return a label and a text for S1 and S2: the real streams, or generated ones in their place."""
    streams = {}
    for name, vehicles in (("S1", 115), ("S2", 390)):
        path = TRAFFIC_DATA / f"traffic-{name}.txt"
        if path.exists():
            streams[name] = name, path.read_text(encoding="utf-8")
        else:
            note(f"{path.name} is missing (set TIDELOG_DATA): generated traffic takes its place")
            streams[name] = f"generated in place of {name}", generate_traffic(vehicles)
    return streams


def write_csv(path: Path, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def format_number(value: float) -> str:
    """Format a whole number without a point, and others with three digits after it."""
    return f"{value:.0f}" if value == int(value) else f"{value:.3f}"


def write_figure(
    folder: Path,
    number: int,
    panel: Panel,
    found: dict[str, Run],
    series: Callable[[Run], Series],
    published: tuple[int, ...] = (),
) -> None:
    """Draw a figure with one line per run, and dashed lines for published maxima; write the same as CSV."""
    lines = list(pictures.build_lines(found, series))
    for maximum, run, colour in zip(published, found.values(), COLOURS, strict=False):
        lines.append(Line("", run.clock[[0, -1]], (maximum, maximum), colour, dashed=True))
    if published:
        lines.append(Line(f"maximum of MeTeoR-Str,\n{PUBLISHED}", (), (), GREY, dashed=True))
    path = folder / f"figure-{number}.png"
    draw(path, replace(panel, lines=tuple(lines)))
    rows = [
        (label, format_number(time), format_number(value), MEASURED)
        for label, run in found.items()
        for time, value in zip(run.clock, series(run), strict=True)
    ]
    rows += [
        (label, "maximum", str(maximum), f"MeTeoR-Str, {PUBLISHED}")
        for label, maximum in zip(found, published, strict=False)
    ]
    write_csv(path.with_suffix(".csv"), ("stream", panel.x, panel.y, "source"), rows)


def write_universities(folder: Path, counts: tuple[int, ...]) -> None:
    """Write Table 2 and Figures 1 to 3."""
    found = measure_universities(counts)
    labels = [f"D{number}: {count / 1e6:g} M facts" for number, count in zip(DATASETS, counts, strict=True)]
    by_label = {title: dict(zip(labels, (one.stream for one in runs), strict=True)) for title, runs in found.items()}
    x = "time in the stream"
    arriving = Panel("Figure 1: facts that arrive, university data", x, "facts per time point", ())
    write_figure(folder, 1, arriving, by_label[PLAIN.title], lambda run: run.arrived)
    for number, one in enumerate(EXPERIMENTS, 2):
        panel = Panel(f"Figure {number}: facts held, {one.title} query", x, "facts held", ())
        write_figure(folder, number, panel, by_label[one.title], lambda run: run.held, one.stream)
    write_table(folder, counts, found)


def write_table(folder: Path, counts: tuple[int, ...], found: dict[str, list[Measured]]) -> None:
    """Write Table 2: the most facts held in batch and as a stream."""
    rows: list[tuple[object, ...]] = []
    panels = []
    for one in EXPERIMENTS:
        batch = [run.batch for run in found[one.title]]
        stream = [run.stream.most_held for run in found[one.title]]
        cpus = [[run.batch_cpu for run in found[one.title]], [run.stream.cpu for run in found[one.title]]]
        bars = (
            Bar("MeTeoR, published", one.batch, COLOURS[0], hollow=True),
            Bar("tidelog in batch", batch, COLOURS[0]),
            Bar("MeTeoR-Str, published", one.stream, COLOURS[1], hollow=True),
            Bar("tidelog as a stream", stream, COLOURS[1]),
        )
        groups = tuple(f"D{number}" for number in DATASETS)
        sizes = tuple(f"{name}\n{count / 1e6:g} M facts here" for name, count in zip(groups, counts, strict=True))
        panels.append(BarPanel(f"Table 2: most facts held, {one.title} query", "facts", sizes, bars))
        for bar, cpu in zip(bars, (None, cpus[0], None, cpus[1]), strict=True):
            facts = [number * 1_000_000 for number in DATASETS] if bar.hollow else counts
            source = PUBLISHED if bar.hollow else MEASURED
            rows += [
                (one.title, group, size, bar.label, value, f"{cpu[place]:.2f}" if cpu else "", source)
                for place, (group, size, value) in enumerate(zip(groups, facts, bar.values, strict=True))
            ]
    draw(folder / "table-2.png", *panels)
    header = ("query", "dataset", "facts in the dataset", "system", "most facts held", "CPU seconds", "source")
    write_csv(folder / "table-2.csv", header, rows)


def write_traffic(folder: Path) -> None:
    """Write Figures 4 to 6, and what the text of the paper states about them."""
    query = Query(SHORT_STOP, "ShortStop", at="input")
    streams = load_streams()
    note("short stops in two streams, six times each")
    # The larger stream first: its line would cover the other one.
    runs = {name: pictures.run_steadily(query, text) for name, (_, text) in sorted(streams.items(), reverse=True)}
    found = {f"{streams[name][0]}: {int(run.arrived.sum()):,} facts": run for name, run in runs.items()}
    x = "seconds of the stream"
    for number, title, y, series in (
        (4, "facts that arrive, traffic", "facts per second", lambda run: run.arrived),
        (5, "facts held, short stops", "facts held", lambda run: run.held),
        (6, "time of a step, short stops (least of 5 runs)", "microseconds per step", lambda run: run.steps * 1e6),
    ):
        write_figure(folder, number, Panel(f"Figure {number}: {title}", x, y, ()), found, series)
    rows = [
        (what, streams[name][0], published, value)
        for name, run in sorted(runs.items())
        for what, published, value in (
            ("facts in 200 seconds", TRAFFIC_FACTS[name], int(run.arrived.sum())),
            ("longest step in seconds", f"below {LONGEST_STEP:g}", f"{run.steps.max():.6f}"),
            ("most facts held", "in a figure only", run.most_held),
            ("answers", "not stated", run.answers),
        )
    ]
    write_csv(folder / "traffic.csv", ("what", "stream", PUBLISHED, MEASURED), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="university data of 20 to 80 thousand facts")
    parser.add_argument("--folder", type=Path, default=BUILD, help="where results go (build/paper)")
    options = parser.parse_args()
    if importlib.util.find_spec("matplotlib") is None:
        sys.exit("the charts need matplotlib: pip install 'tidelog[bench]'")
    options.folder.mkdir(parents=True, exist_ok=True)
    began = process_time()
    write_traffic(options.folder)
    write_universities(options.folder, tuple(number * (4_000 if options.small else 1_000_000) for number in DATASETS))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    note(f"{process_time() - began:.0f} s of CPU, at most {most:.1f} GB of memory")
    for path in sorted(options.folder.iterdir()):
        print(path)


if __name__ == "__main__":
    main()

"""`tidelog demo`: run a pipeline on Spark over generated traffic, and draw the answers along the time axis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from tidelog.language.syntax import Fact

_DRAWN_PREDICATES = ("Jam", "Warned", "Divert")
_WIDTH = 60
_POLL_SECONDS = 0.3


@click.command(short_help="Find jams in generated traffic, with nothing to configure.")
@click.option("--vehicles", type=click.IntRange(min=1), default=40, show_default=True, help="How many vehicles.")
@click.option(
    "--seconds", type=click.IntRange(min=1), default=200, show_default=True, help="How long they are observed."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed gives other traffic.")
@click.option("--local", is_flag=True, help="Run in this process, without Spark.")
@click.option("--keep", metavar="FOLDER", help="Keep the pipeline, its data and its answers in FOLDER.")
def demo(vehicles: int, seconds: int, seed: int, local: bool, keep: str | None) -> int:
    """Generate traffic on a ring of roads, one of which is blocked for a while, and find the jams with a pipeline on
    Spark that reads files of reports and writes files of answers. Without Spark, or with --local, the rules run in this
    process, and also find short stops and roads to warn about.

    \b
    Example:
      tidelog demo --vehicles 20 --local
    """
    from importlib.util import find_spec

    from rich.console import Console

    from tidelog.generate.rule_files import read_rules

    console = Console(highlight=False)
    console.print("[bold]The rules[/bold]\n")
    console.print(read_rules("traffic.dmtl"), markup=False)
    if not local and find_spec("pyspark") is None:
        console.print("Spark is not installed (pip install 'tidelog\\[spark]'), so this runs without it.\n")
        local = True
    if local:
        _run_locally(console, vehicles, seconds, seed)
        _print_next_steps(console, None)
        return 0
    if keep is not None:
        return _run_on_spark(console, Path(keep), vehicles, seconds, seed, keep)
    with TemporaryDirectory(prefix="tidelog-demo-") as folder:
        return _run_on_spark(console, Path(folder), vehicles, seconds, seed, None)


def _run_on_spark(console: Console, folder: Path, vehicles: int, seconds: int, seed: int, keep: str | None) -> int:
    from tidelog.cli.run import RunOptions, run_file
    from tidelog.generate import traffic_pipeline
    from tidelog.generate.traffic_pipeline import BEGIN
    from tidelog.language.wording import plural

    if (folder / "pipeline.toml").exists():
        raise click.UsageError(f"{folder} already holds a pipeline; choose another folder")
    path = traffic_pipeline.write_pipeline(folder, vehicles, seconds, seed=seed)
    console.print("[bold]The pipeline[/bold]\n")
    console.print(path.read_text(encoding="utf-8"), markup=False)
    began = perf_counter()
    monitor = JobMonitor(console, folder)
    with console.status("Spark is running"):
        code = monitor.follow(lambda: run_file(str(path), RunOptions(plan=True, quiet=True)))
    if code:
        return code
    console.print()
    _draw_timeline(console, monitor.jams, seconds)
    console.print(f"\n{plural(len(monitor.jams), 'jam')}, {perf_counter() - began:.0f} s; seconds count from {BEGIN}")
    most_held = max((sum(batch["held"].values()) for batch in monitor.batches), default=0)
    console.print(f"{monitor.facts:,} facts went through; at most {most_held:,} were held at a time.")
    _print_next_steps(console, keep)
    return 0


class JobMonitor:
    """Prints what a running job writes to its folder: what each batch read and held, and the answers."""

    def __init__(self, console: Console, folder: Path) -> None:
        self._console, self._folder = console, folder
        self.batches: list[dict[str, Any]] = []
        self.jams: list[Fact] = []
        self._files: set[Path] = set()

    @property
    def facts(self) -> int:
        return sum(batch["facts_in"] for batch in self.batches)

    def follow(self, job: Callable[[], int]) -> int:
        """Run a job, and print what is new in its folder until it ends; return its exit code."""
        over = Event()

        def poll() -> None:
            while not over.wait(_POLL_SECONDS):
                self._print_news()

        follower = Thread(target=poll, daemon=True)
        follower.start()
        try:
            return job()
        finally:
            over.set()
            follower.join()
            self._print_news()

    def _print_news(self) -> None:
        from tidelog.language.fact_text import format_fact

        for file in sorted(set(self._folder.glob("run/jams/batch=*/*.json")) - self._files):
            self._files.add(file)
            for line in file.read_text(encoding="utf-8").splitlines():
                self.jams.append(_parse_jam(json.loads(line)))
                self._console.print(f"  answer: {format_fact(self.jams[-1])}", markup=False)
        metrics = self._folder / "run" / "metrics.jsonl"
        # A line that is being written has no end yet.
        lines = metrics.read_text(encoding="utf-8").split("\n")[:-1] if metrics.exists() else []
        for line in lines[len(self.batches) :]:
            # Spark may report a batch about which the buckets reported nothing.
            batch = {"facts_in": 0, "held": {}, **json.loads(line)}
            self.batches.append(batch)
            watermark = f", answered up to {batch['watermark']}" if batch.get("watermark") else ""
            held = sum(batch["held"].values())
            self._console.print(f"batch {batch['batch']}: {batch['facts_in']:,} facts in, {held:,} held{watermark}")


def _print_next_steps(console: Console, keep: str | None) -> None:
    console.print("\n[bold]Where to look next[/bold]\n")
    console.soft_wrap = True
    if keep is None:
        console.print("  tidelog demo --keep demo           the pipeline file, its data, its answers and its figures")
    else:
        console.print(f"  {keep}/pipeline.toml                 change it, and run it: tidelog run {keep}/pipeline.toml")
    console.print("  tidelog generate traffic -o data/  more of the data, with the rules")
    console.print("  tidelog report data/traffic.dmtl data/traffic.facts -o report.html   a page with timelines")
    console.print("  docs/reference/pipeline.md, docs/reference/language.md   how to write pipelines, and rules")


def _parse_jam(row: dict[str, str]) -> Fact:
    from tidelog.generate.traffic_pipeline import BEGIN
    from tidelog.language.syntax import Fact
    from tidelog.timeline.interval import CLOSED_ENDS, Interval

    start, end = (Fraction((datetime.fromisoformat(row[key]) - BEGIN).total_seconds()) for key in ("start", "end"))
    return Fact("Jam", (row["arg1"],), Interval(start, end, *CLOSED_ENDS[row["closed"]]))


def _run_locally(console: Console, vehicles: int, seconds: int, seed: int) -> None:
    from tidelog.batch import materialise
    from tidelog.data.dataset import Dataset
    from tidelog.generate import traffic
    from tidelog.generate.rule_files import read_rules
    from tidelog.language.program import Program

    program = Program.parse(read_rules("traffic.dmtl"), source="traffic.dmtl")
    lines = list(traffic.generate_facts(vehicles, seconds, seed=seed))
    began = perf_counter()
    data = Dataset.parse("\n".join(lines), source="generated traffic")
    model = materialise(program, data)
    took = perf_counter() - began
    facts = list(model)
    console.print(f"[bold]{len(lines):,} facts[/bold] in, {len(facts):,} out, {took:.2f} s\n")
    _draw_timeline(console, facts, seconds)
    stops = [fact for fact in facts if fact.predicate == "ShortStop"]
    console.print(f"\n{len(stops)} short stops by {len({fact.args for fact in stops})} of {vehicles} vehicles")


def _draw_timeline(console: Console, facts: Iterable[Fact], seconds: int) -> None:
    from rich.table import Table

    from tidelog.language.fact_text import format_value

    table = Table(box=None, pad_edge=False, caption_justify="left")
    for title in ("fact", f"seconds 0 to {seconds}", "holds at"):
        table.add_column(title)
    drawn = sorted((fact for fact in facts if fact.predicate in _DRAWN_PREDICATES), key=_atom_key)
    for (predicate, args), group in groupby(drawn, key=lambda fact: (fact.predicate, fact.args)):
        same = sorted(group, key=lambda fact: fact.interval.lo)
        intervals = " ".join(str(fact.interval) for fact in same)
        table.add_row(f"{predicate}({','.join(map(format_value, args))})", _draw_bar(same, seconds), intervals)
    console.print(table)


def _atom_key(fact: Fact) -> tuple[int, tuple[str, ...]]:
    return _DRAWN_PREDICATES.index(fact.predicate), tuple(map(str, fact.args))


def _draw_bar(facts: Iterable[Fact], seconds: int) -> str:
    """Draw the time axis as characters: a block where the atom holds at some time of the character's range."""
    cells = ["·"] * _WIDTH
    for fact in facts:
        first = max(0, int(max(fact.interval.lo, 0) * _WIDTH / seconds))
        last = int(min(fact.interval.hi, seconds) * _WIDTH / seconds)
        for cell in range(first, min(last, _WIDTH - 1) + 1):
            cells[cell] = "█"
    return "".join(cells)

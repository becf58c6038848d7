"""`tidelog demo`: the pipeline on Spark over generated traffic, with the answers drawn along the time axis."""

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

_DRAWN = ("Jam", "Warned", "Divert")
_WIDTH = 60
#: Seconds between looks at a running job.
_LOOK = 0.3


@click.command(short_help="Reason over generated traffic, with nothing to configure.")
@click.option("--vehicles", type=click.IntRange(min=1), default=40, show_default=True)
@click.option("--seconds", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other traffic.")
@click.option("--local", is_flag=True, help="In this process, without Spark.")
@click.option("--keep", metavar="FOLDER", help="Keep the pipeline, its data and its answers in FOLDER.")
def demo(vehicles: int, seconds: int, seed: int, local: bool, keep: str | None) -> int:
    """Generate traffic on a ring of roads, one of which is blocked for a while, and find the jams: by a pipeline on
    Spark, from files of reports to files of answers. Where Spark is not installed, or with --local, the rules are
    evaluated in this process, and short stops and the roads to warn are found, too.

    \b
    Example:
      tidelog demo --vehicles 20 --local
    """
    from importlib.util import find_spec

    from rich.console import Console

    from tidelog.generate import traffic

    console = Console(highlight=False)
    console.print("[bold]The rules[/bold]\n")
    console.print(traffic.program(), markup=False)
    if not local and find_spec("pyspark") is None:
        console.print("Spark is not installed (pip install 'tidelog\\[spark]'), so this goes without.\n")
        local = True
    if local:
        _in_this_process(console, vehicles, seconds, seed)
        _say_what_next(console, None)
        return 0
    if keep is not None:
        return _on_spark(console, Path(keep), vehicles, seconds, seed, keep)
    with TemporaryDirectory(prefix="tidelog-demo-") as folder:
        return _on_spark(console, Path(folder), vehicles, seconds, seed, None)


def _on_spark(console: Console, folder: Path, vehicles: int, seconds: int, seed: int, keep: str | None) -> int:
    from tidelog.cli.run import run_file
    from tidelog.generate import traffic_pipeline
    from tidelog.generate.traffic_pipeline import BEGIN

    if (folder / "pipeline.toml").exists():
        raise click.UsageError(f"{folder} holds a pipeline already; choose another folder")
    path = traffic_pipeline.write(folder, vehicles, seconds, seed=seed)
    console.print("[bold]The pipeline[/bold]\n")
    console.print(path.read_text(encoding="utf-8"), markup=False)
    began = perf_counter()
    followed = Followed(console, folder)
    with console.status("Spark is at work"):
        code = followed.while_running(lambda: run_file(str(path), plan=True, quiet=True))
    if code:
        return code
    console.print()
    _draw(console, followed.jams, seconds)
    jams = "1 jam" if len(followed.jams) == 1 else f"{len(followed.jams)} jams"
    console.print(f"\n{jams}, {perf_counter() - began:.0f} s; seconds count from {BEGIN}")
    most = max((sum(batch["held"].values()) for batch in followed.batches), default=0)
    console.print(f"{followed.facts:,} facts went through; at most {most:,} were held at a time.")
    _say_what_next(console, keep)
    return 0


class Followed:
    """A job as its folder shows it while it runs: what each batch read and held, and the answers as they appear."""

    def __init__(self, console: Console, folder: Path) -> None:
        self._console, self._folder = console, folder
        self.batches: list[dict[str, Any]] = []
        self.jams: list[Fact] = []
        self._files: set[Path] = set()

    @property
    def facts(self) -> int:
        return sum(batch["facts_in"] for batch in self.batches)

    def while_running(self, job: Callable[[], int]) -> int:
        """Runs a job, and looks at its folder now and then until it ends."""
        over = Event()

        def follow() -> None:
            while not over.wait(_LOOK):
                self._look()

        follower = Thread(target=follow, daemon=True)
        follower.start()
        try:
            return job()
        finally:
            over.set()
            follower.join()
            self._look()

    def _look(self) -> None:
        from tidelog.language.facts import format_fact

        for file in sorted(set(self._folder.glob("run/jams/batch=*/*.json")) - self._files):
            self._files.add(file)
            for line in file.read_text(encoding="utf-8").splitlines():
                self.jams.append(_jam(json.loads(line)))
                self._console.print(f"  answer: {format_fact(self.jams[-1])}", markup=False)
        metrics = self._folder / "run" / "metrics.jsonl"
        # A line that is being written has no end yet.
        lines = metrics.read_text(encoding="utf-8").split("\n")[:-1] if metrics.exists() else []
        for line in lines[len(self.batches) :]:
            # Spark may report a batch of which the buckets said nothing.
            batch = {"facts_in": 0, "held": {}, **json.loads(line)}
            self.batches.append(batch)
            known = f", answered up to {batch['watermark']}" if batch.get("watermark") else ""
            held = sum(batch["held"].values())
            self._console.print(f"batch {batch['batch']}: {batch['facts_in']:,} facts in, {held:,} held{known}")


def _say_what_next(console: Console, keep: str | None) -> None:
    """Where to look next."""
    console.print("\n[bold]Where to look next[/bold]\n")
    console.soft_wrap = True
    if keep is None:
        console.print("  tidelog demo --keep demo           the pipeline file, its data, its answers and its figures")
    else:
        console.print(f"  {keep}/pipeline.toml                 change it, and run it: tidelog run {keep}/pipeline.toml")
    console.print("  tidelog generate traffic -o data/  more of the data, with the rules")
    console.print("  tidelog report data/traffic.dmtl data/traffic.facts -o report.html   a page with timelines")
    console.print("  docs/reference/pipeline.md, docs/reference/language.md   how to write pipelines, and rules")


def _jam(row: dict[str, str]) -> Fact:
    from tidelog.generate.traffic_pipeline import BEGIN
    from tidelog.language.syntax import Fact
    from tidelog.timeline.interval import Interval

    start, end = (Fraction((datetime.fromisoformat(row[key]) - BEGIN).total_seconds()) for key in ("start", "end"))
    closed = row["closed"]
    return Fact("Jam", (row["arg1"],), Interval(start, end, closed in ("both", "left"), closed in ("both", "right")))


def _in_this_process(console: Console, vehicles: int, seconds: int, seed: int) -> None:
    from tidelog.data.dataset import Dataset
    from tidelog.generate import traffic
    from tidelog.language.program import Program
    from tidelog.reasoning import materialise

    program = Program.parse(traffic.program(), source="traffic.dmtl")
    lines = list(traffic.facts(vehicles, seconds, seed=seed))
    began = perf_counter()
    data = Dataset.parse("\n".join(lines), source="generated traffic")
    model = materialise(program, data)
    took = perf_counter() - began
    facts = list(model)
    console.print(f"[bold]{len(lines):,} facts[/bold] in, {len(facts):,} out, {took:.2f} s\n")
    _draw(console, facts, seconds)
    stops = [found for found in facts if found.predicate == "ShortStop"]
    console.print(f"\n{len(stops)} short stops by {len({found.args for found in stops})} of {vehicles} vehicles")


def _draw(console: Console, facts: Iterable[Fact], seconds: int) -> None:
    from rich.table import Table

    from tidelog.language.facts import format_value

    table = Table(box=None, pad_edge=False, caption_justify="left")
    for title in ("fact", f"seconds 0 to {seconds}", "holds at"):
        table.add_column(title)
    drawn = sorted((found for found in facts if found.predicate in _DRAWN), key=_atom_key)
    for (predicate, args), group in groupby(drawn, key=lambda found: (found.predicate, found.args)):
        same = sorted(group, key=lambda found: found.interval.lo)
        intervals = " ".join(str(found.interval) for found in same)
        table.add_row(f"{predicate}({','.join(map(format_value, args))})", _bar(same, seconds), intervals)
    console.print(table)


def _atom_key(fact: Fact) -> tuple[int, tuple[str, ...]]:
    return _DRAWN.index(fact.predicate), tuple(map(str, fact.args))


def _bar(facts: Iterable[Fact], seconds: int) -> str:
    """The time axis as characters: a block where the atom holds at some time of the character's stretch."""
    cells = ["·"] * _WIDTH
    for fact in facts:
        first = max(0, int(max(fact.interval.lo, 0) * _WIDTH / seconds))
        last = int(min(fact.interval.hi, seconds) * _WIDTH / seconds)
        for cell in range(first, min(last, _WIDTH - 1) + 1):
            cells[cell] = "█"
    return "".join(cells)

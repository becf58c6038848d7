"""`tidelog demo`: the pipeline on Spark over generated traffic, with the answers drawn along the time axis."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from tidelog.language.syntax import Fact

_DRAWN = ("Jam", "Warned", "Divert")
_WIDTH = 60


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
        return 0
    if keep is not None:
        return _on_spark(console, Path(keep), vehicles, seconds, seed)
    with TemporaryDirectory(prefix="tidelog-demo-") as folder:
        return _on_spark(console, Path(folder), vehicles, seconds, seed)


def _on_spark(console: Console, folder: Path, vehicles: int, seconds: int, seed: int) -> int:
    from tidelog.cli.run import run_file
    from tidelog.generate import traffic_pipeline

    if (folder / "pipeline.toml").exists():
        raise click.UsageError(f"{folder} holds a pipeline already; choose another folder")
    path = traffic_pipeline.write(folder, vehicles, seconds, seed=seed)
    console.print("[bold]The pipeline[/bold]\n")
    console.print(path.read_text(encoding="utf-8"), markup=False)
    began = perf_counter()
    code = run_file(str(path), plan=True)
    if code:
        return code
    rows = [json.loads(line) for part in sorted(folder.glob("run/jams/batch=*/*.json")) for line in part.open()]
    _draw(console, [_jam(row) for row in rows], seconds)
    console.print(f"\n{len(rows)} jams, {perf_counter() - began:.0f} s; seconds count from {traffic_pipeline.BEGIN}")
    return 0


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

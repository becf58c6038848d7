"""`tidelog demo`: rules over generated traffic, with the answers drawn along the time axis."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidelog.language.syntax import Fact

_DRAWN = ("Jam", "Warned", "Divert")
_WIDTH = 60


@click.command(short_help="Reason over generated traffic, with nothing to configure.")
@click.option("--vehicles", type=click.IntRange(min=1), default=40, show_default=True)
@click.option("--seconds", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other traffic.")
def demo(vehicles: int, seconds: int, seed: int) -> None:
    """Generate traffic on a ring of roads, one of which is blocked for a while, and find short stops, jams, and the
    roads to warn.

    \b
    Example:
      tidelog demo --vehicles 20
    """
    from rich.console import Console
    from rich.table import Table

    from tidelog.data.dataset import Dataset
    from tidelog.generate import traffic
    from tidelog.language.facts import format_value
    from tidelog.language.program import Program
    from tidelog.reasoning import materialise

    console = Console(highlight=False)
    console.print("[bold]The rules[/bold]\n")
    console.print(traffic.program(), markup=False)
    program = Program.parse(traffic.program(), source="traffic.dmtl")
    lines = list(traffic.facts(vehicles, seconds, seed=seed))
    began = perf_counter()
    data = Dataset.parse("\n".join(lines), source="generated traffic")
    model = materialise(program, data)
    took = perf_counter() - began
    facts = list(model)
    console.print(f"[bold]{len(lines):,} facts[/bold] in, {len(facts):,} out, {took:.2f} s\n")

    table = Table(box=None, pad_edge=False, caption_justify="left")
    for title in ("fact", f"seconds 0 to {seconds}", "holds at"):
        table.add_column(title)
    drawn = sorted((found for found in facts if found.predicate in _DRAWN), key=_atom_key)
    for (predicate, args), group in groupby(drawn, key=lambda found: (found.predicate, found.args)):
        same = list(group)
        intervals = " ".join(str(found.interval) for found in same)
        table.add_row(f"{predicate}({','.join(map(format_value, args))})", _bar(same, seconds), intervals)
    console.print(table)
    stops = [found for found in facts if found.predicate == "ShortStop"]
    console.print(f"\n{len(stops)} short stops by {len({found.args for found in stops})} of {vehicles} vehicles")


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

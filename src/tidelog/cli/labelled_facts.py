"""Tables of facts with a label in front: the number of their model, or whether they hold in all or in some models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelog.data.fact_sheet import Kind, Sheet, build_fact_sheet, render_csv, render_parquet
from tidelog.language.syntax import Fact
from tidelog.streaming.alerts import render_alerts

if TYPE_CHECKING:
    from tidelog.cli.fact_output import OutputForm
    from tidelog.model import Repeat


@dataclass(frozen=True)
class LabelledFact:
    """A fact with its label; `repeat` says how it repeats for ever, if it does."""

    label: str | int
    fact: Fact
    repeat: Repeat | None = None


def render_labelled(rows: Sequence[LabelledFact], title: str, form: OutputForm, iso: bool) -> bytes:
    """Write facts as CSV, Parquet or JSON Lines; `title` is the name of the label."""
    if form == "jsonl":
        lines = render_alerts([row.fact for row in rows], "jsonl", iso).splitlines()
        objects = (
            {title: row.label, **json.loads(line), **_repeat(row)} for row, line in zip(rows, lines, strict=True)
        )
        return "".join(json.dumps(found, ensure_ascii=False) + "\n" for found in objects).encode()
    sheet = build_fact_sheet(row.fact for row in rows)
    cells: list[tuple[Any, ...]] = [(str(row.label), *found) for row, found in zip(rows, sheet.rows, strict=True)]
    names, kinds = (title, *sheet.names), ("text", *sheet.kinds)
    if any(row.repeat for row in rows):
        names = (*names, "every", "from", "before")
        more: tuple[Kind, ...] = ("constant", "time", "time")
        kinds = (*kinds, *more)
        cells = [(*found, *_repeat_cells(row)) for row, found in zip(rows, cells, strict=True)]
    table = Sheet(names, kinds, cells)
    return render_csv(table, iso) if form == "csv" else render_parquet(table, iso)


def _repeat_cells(row: LabelledFact) -> tuple[Any, ...]:
    repeat = row.repeat
    if repeat is None:
        return (None, None, None)
    return (repeat.every, *((None, repeat.start) if repeat.before else (repeat.start, None)))


def _repeat(row: LabelledFact) -> dict[str, str]:
    repeat = row.repeat
    if repeat is None:
        return {}
    return {"every": str(repeat.every), "before" if repeat.before else "from": str(repeat.start)}

"""Where the facts of a command go, and in which form: `--format`, `--json` and `--output`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tidelog.cli.standard_output import write_stdout

if TYPE_CHECKING:
    from tidelog.data.schema import Schema
    from tidelog.model import Model

#: The forms of output; all but Parquet are text.
OutputForm = Literal["text", "jsonl", "csv", "parquet"]
_FORMS: dict[str, OutputForm] = {
    "facts": "text",
    "text": "text",
    "jsonl": "jsonl",
    "csv": "csv",
    "parquet": "parquet",
}
_SUFFIXES: dict[str, OutputForm] = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class FactOutput:
    """The form of the facts, and the file that they are written to; None for standard output."""

    form: OutputForm
    file: str | None = None

    def write(self, text: bytes) -> None:
        """Write all output of a command at once."""
        if self.file is None:
            write_stdout(text)
        else:
            Path(self.file).write_bytes(text)


def choose_output(form: str | None, as_json: bool, file: str | None) -> FactOutput:
    """Choose the form from the options, or from the suffix of the file; refuse Parquet on a terminal."""
    if as_json and form not in (None, "jsonl"):
        raise click.UsageError(f"--json is short for --format jsonl, and --format {form} is given too")
    file = None if file == "-" else file
    if as_json:
        chosen: OutputForm = "jsonl"
    elif form is not None:
        chosen = _FORMS[form]
    else:
        chosen = _SUFFIXES.get(Path(file).suffix.lower(), "text") if file else "text"
    if chosen == "parquet" and file is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is not text for a terminal: name a file with --output FILE")
    return FactOutput(chosen, file)


def render_model(model: Model, form: OutputForm, iso: bool | None, schema: Schema | None = None) -> bytes:
    """Write a model in any form; the table of a single predicate has the columns that a schema declares for it."""
    predicates = model.predicates
    names = schema.column_names(predicates[0]) if schema and len(predicates) == 1 else None
    if names is not None and form in ("csv", "parquet"):
        from tidelog.data.fact_sheet import render_csv, render_parquet

        dates = model.dates if iso is None else iso
        return (render_csv if form == "csv" else render_parquet)(model.to_sheet(names), dates)
    if form == "parquet":
        return model.to_parquet(iso=iso)
    text = model.render(form, iso=iso)
    return add_column_names(text, schema) if form == "jsonl" and schema else text


def add_column_names(lines: bytes, schema: Schema) -> bytes:
    """Add the arguments by name, as `columns`, to the JSON of facts whose columns a schema declares."""
    return b"".join(_add_names(line, schema) + b"\n" for line in lines.splitlines())


def _add_names(line: bytes, schema: Schema) -> bytes:
    fact = json.loads(line)
    args = fact.get("args", [])
    names = schema.column_names(fact.get("predicate", ""), len(args))
    if not names:
        return line
    return json.dumps({**fact, "columns": dict(zip(names, args, strict=True))}, ensure_ascii=False).encode()

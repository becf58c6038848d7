"""Write the answers of `tidelog hypothesise`, or their changes, as text, as JSON Lines, or as one table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.standard_output import write_stdout
from tidelog.data.fact_sheet import Kind, Sheet, render_csv, render_parquet

if TYPE_CHECKING:
    from typing import IO

    from tidelog.cli.fact_output import FactOutput
    from tidelog.hypothetical.answer_changes import AnswerChange
    from tidelog.hypothetical.schemas import Query, Schema
    from tidelog.hypothetical.supported_answers import Moment, SupportedAnswer


class MomentOutput:
    """Writes moments or changes as they come; a table of CSV or Parquet is written by `close`."""

    def __init__(self, target: FactOutput, file: IO[bytes] | None, query: Query) -> None:
        from tidelog.hypothetical.supported_answers import make_answer_formatter

        self._target, self._file, self._query = target, file, query
        self._format_answer = make_answer_formatter(query)
        self._rows: list[tuple[int, str, SupportedAnswer]] = []

    def add_changes(self, tau: int, changes: Sequence[AnswerChange]) -> None:
        """Write the changes of one time point."""
        form = self._target.form
        if form == "jsonl":
            lines = [json.dumps(change.to_json(tau), ensure_ascii=False) + "\n" for change in changes]
            self._write("".join(lines).encode())
        elif form == "text":
            self._write("".join([change.to_text(tau, self._format_answer) for change in changes]).encode())
        else:
            self._rows += [(tau, change.change, change.answer) for change in changes]

    def add(self, moment: Moment) -> None:
        """Write the answers of one time point."""
        form = self._target.form
        if form == "jsonl":
            self._write(moment.to_json().encode() + b"\n")
        elif form == "text":
            self._write(moment.to_text(self._query).encode())
        else:
            self._rows += [(moment.tau, "certain", answer) for answer in moment.answers]
            self._rows += [(moment.tau, "possible", answer) for answer in moment.hypothetical]

    def close(self) -> None:
        """Write the table."""
        if self._target.form in ("csv", "parquet"):
            sheet = self._build_sheet()
            self._target.write(render_csv(sheet) if self._target.form == "csv" else render_parquet(sheet))

    def _write(self, text: bytes) -> None:
        if self._file:
            self._file.write(text)
        else:
            write_stdout(text)

    def _build_sheet(self) -> Sheet:
        """Build a table: when an answer is certain or possible, its variables, and what it rests on and waits for."""
        names = list(dict.fromkeys(name for _, _, answer in self._rows for name in answer.bindings))
        rows: list[tuple[Any, ...]] = []
        for tau, status, answer in self._rows:
            values = [answer.bindings.get(name) for name in names]
            cells = [Fraction(value) if isinstance(value, int) else value for value in values]
            lists = ("; ".join(part) for part in (answer.evidence, answer.hypotheses, answer.conditions))
            decided = None if answer.decided_by is None else Fraction(answer.decided_by)
            confidence = None if answer.confidence is None else str(answer.confidence)
            rows.append((Fraction(tau), status, *cells, *lists, decided, confidence))
        columns = ("tau", "status", *names, "evidence", "hypotheses", "conditions", "decided_by", "confidence")
        constant: Kind = "constant"
        text: Kind = "text"
        kinds = (constant, text, *(constant,) * len(names), text, text, text, constant, text)
        return Sheet(columns, kinds, rows)


def write_schemas(query: Query, schemas: Sequence[Schema], target: FactOutput) -> None:
    """Write the schemas of a query as rules, or as JSON Lines."""
    from tidelog.hypothetical.supported_answers import schema_to_json, schema_to_text

    if target.form in ("csv", "parquet"):
        raise click.UsageError(f"--schemas prints rules or JSON Lines, not {target.form}")
    if target.form == "jsonl":
        lines = [json.dumps(schema_to_json(query, schema), ensure_ascii=False) for schema in schemas]
    else:
        lines = [schema_to_text(query, schema) for schema in schemas]
    target.write("".join(line + "\n" for line in lines).encode())


@contextmanager
def open_moment_output(target: FactOutput, query: Query) -> Iterator[MomentOutput]:
    """Open the output file, if there is one; write what is left at the end, also after an error."""
    is_table = target.form in ("csv", "parquet")
    file = open(target.file, "wb") if target.file and not is_table else None  # noqa: SIM115
    output = MomentOutput(target, file, query)
    try:
        yield output
    finally:
        output.close()
        if file:
            file.close()

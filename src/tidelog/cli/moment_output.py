"""Write the answers of `tidelog hypothesise` as text, as JSON Lines, or as one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidelog.cli.standard_output import write_stdout
from tidelog.data.fact_sheet import Kind, Sheet, render_csv, render_parquet

if TYPE_CHECKING:
    from typing import IO

    from tidelog.cli.fact_output import FactOutput
    from tidelog.hypothetical.schemas import Query
    from tidelog.hypothetical.supported_answers import Moment, SupportedAnswer


class MomentOutput:
    """Writes moments as they come; a table of CSV or Parquet is written by `close`."""

    def __init__(self, target: FactOutput, file: IO[bytes] | None) -> None:
        self._target, self._file = target, file
        self._rows: list[tuple[int, str, SupportedAnswer]] = []

    def add(self, moment: Moment, query: Query) -> None:
        """Write the answers of one time point."""
        form = self._target.form
        if form == "jsonl":
            self._write(moment.to_json().encode() + b"\n")
        elif form == "text":
            self._write(moment.to_text(query).encode())
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


@contextmanager
def open_moment_output(target: FactOutput) -> Iterator[MomentOutput]:
    """Open the output file, if there is one; write what is left at the end, also after an error."""
    is_table = target.form in ("csv", "parquet")
    file = open(target.file, "wb") if target.file and not is_table else None  # noqa: SIM115
    output = MomentOutput(target, file)
    try:
        yield output
    finally:
        output.close()
        if file:
            file.close()

"""Turn the lines of an input into facts as they arrive: fact text, CSV, or JSON Lines with a schema."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.data.bad_rows import BadRows
from tidelog.data.data_files import name_source, parse_path, require_fact_text, strip_predicate
from tidelog.data.dataset import Dataset
from tidelog.data.fact_scanner import scan_facts
from tidelog.data.row_recovery import scan_good_lines
from tidelog.data.schema import Schema
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_lines import LINE_FORMS, TableLines
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.file_errors import check_utf8


def is_line_form(path: str) -> bool:
    """Whether the lines of an input are facts or rows, so that it can be read while it grows."""
    source = parse_path(path)
    return source.form in (None, *LINE_FORMS) and not source.path.lower().endswith(".gz")


def require_line_form(path: str) -> None:
    """Refuse an input that cannot be read line by line while it grows."""
    if not is_line_form(path):
        message = f"{strip_predicate(path)} cannot be read while it grows: its end says how to read it"
        help = "leave --follow out, or write fact text, CSV or JSON Lines, not compressed"
        raise TidelogError(Diagnostic("TL207", message, help=help))


class LineDecoder:
    """The lines of one input. `path` is the input as the user named it, `name` its name in messages.

    >>> decoder = LineDecoder("Beat=-.csv")
    >>> data, error = decoder.decode(b"node,time\\nn1,3\\n", 1)
    >>> print(data, end="")
    Beat(n1)@3
    """

    def __init__(self, path: str, schema: Schema | None = None, bad_rows: BadRows | None = None) -> None:
        source = parse_path(path)
        self.path, self.name, self._bad_rows = path, name_source(path), bad_rows
        if source.form is None:
            require_fact_text(source)
        self.table = TableLines(source, schema) if source.form else None

    @property
    def needs_header(self) -> bool:
        """Whether the first line of the input has to be decoded before any other."""
        return self.table is not None and self.table.header is None

    def decode(self, text: bytes, line: int) -> tuple[Dataset, TidelogError | None]:
        """Return the facts of whole lines, the first of which has this number.

        If there are bad lines and no place for them, return the facts before the first one, and all errors.
        """
        if self.table is None:
            return scan_lines(text, self.name, line, self._bad_rows)
        table = self.table
        return _read_to_first_error(lambda part: table.read(part, line, self._bad_rows), text, line)


def scan_lines(
    text: bytes, source: str, line: int, bad_rows: BadRows | None = None
) -> tuple[Dataset, TidelogError | None]:
    """Return the facts of whole lines: all of them, or those before the first bad line together with all errors."""
    if bad_rows is not None:
        symbols = Symbols()
        return Dataset(symbols, scan_good_lines(text, symbols, source, line, bad_rows)), None

    def scan(part: bytes) -> Dataset:
        symbols = Symbols()
        check_utf8(part, source, line)
        return Dataset(symbols, scan_facts(part, symbols, source, ordered=True, line=line))

    return _read_to_first_error(scan, text, line)


def _read_to_first_error(
    read: Callable[[bytes], Dataset], text: bytes, line: int
) -> tuple[Dataset, TidelogError | None]:
    """Read all lines; if some are bad, read those before the first one, and return the errors of all."""
    error: TidelogError | None = None
    while True:
        try:
            return read(text), error
        except TidelogError as found:
            if not all(d.place for d in found.diagnostics):
                raise
            first = min(d.place.line for d in found.diagnostics if d.place)
            error = error or found
            text = b"\n".join(text.split(b"\n", first - line)[:-1])

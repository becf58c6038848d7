"""Read the change log of a stream with corrections, and fold it into the answers that stood at some clock."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.file_errors import check_utf8, read_input
from tidelog.language.syntax import Fact, Value
from tidelog.language.time_like import to_time
from tidelog.language.time_text import parse_time, read_number
from tidelog.streaming.answer_changes import AnswerChange
from tidelog.timeline.interval import CLOSED_ENDS, INF, Interval, Time

_LAW = "a change log has for every change `change` (+ or -) and `known`, the clock at which it was reported"
_HELP = "write the log with `tidelog stream --corrections H --format jsonl` (or csv, parquet)"


def fold_changes(changes: Iterable[AnswerChange], clock: Time) -> set[Fact]:
    """Return the answers as they stood at a clock: those added by then and not taken back by then.

    >>> first, second = parse_log('''
    ... {"change": "+", "known": "3", "fact": "Q(a)", "start": "1", "end": "2", "closed": "both"}
    ... {"change": "-", "known": "5", "fact": "Q(a)", "start": "1", "end": "2", "closed": "both"}
    ... ''')
    >>> len(fold_changes([first, second], Fraction(4))), len(fold_changes([first, second], Fraction(5)))
    (1, 0)
    """
    standing: set[Fact] = set()
    for change in changes:
        if change.known <= clock:
            (standing.add if change.change == "+" else standing.discard)(change.fact)
    return standing


def sort_answers(answers: Iterable[Fact]) -> list[Fact]:
    """Sort answers as facts are printed: by predicate, arguments (numbers first) and time."""
    return sorted(
        answers,
        key=lambda fact: (
            fact.predicate,
            [(isinstance(value, str), value) for value in fact.args],
            (fact.interval.lo, not fact.interval.lo_closed),
        ),
    )


def read_log(path: str) -> tuple[list[AnswerChange], bool]:
    """Read a change log in JSON Lines, CSV or Parquet; return the changes in order, and whether times are dates."""
    data = read_input(path)
    if data[:4] == b"PAR1":
        from io import BytesIO

        from pyarrow import parquet

        rows = parquet.read_table(BytesIO(data)).to_pylist()
        dates = any(isinstance(row.get("known"), datetime) for row in rows)
        return [_read_row(row, path, number) for number, row in enumerate(rows, 1)], dates
    check_utf8(data, path)
    text = data.decode("utf-8-sig")
    changes = parse_log(text, path)
    first = next(iter(_records(text, path)), (0, {}))[1]
    return changes, bool(first) and parse_time(str(first["known"]))[1]


def parse_log(text: str, source: str = "<log>") -> list[AnswerChange]:
    """Parse a change log in JSON Lines or CSV."""
    return [_read_row(row, source, line) for line, row in _records(text, source)]


def _records(text: str, source: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the records of a log with their lines."""
    if text.lstrip()[:1] == "{":
        for line, record in enumerate(text.split("\n"), 1):
            if record.strip():
                try:
                    value = json.loads(record)
                except ValueError:
                    raise _log_error("this is not a JSON object", source, line, record) from None
                yield line, value if isinstance(value, dict) else {}
        return
    rows = csv.DictReader(io.StringIO(text))
    if text.strip() and "known" not in (rows.fieldnames or ()):
        raise _log_error("this log does not say when changes were known", source, 1, text.split("\n", 1)[0])
    for row in rows:
        yield rows.line_num, row


def _read_row(row: Mapping[str, Any], source: str, line: int) -> AnswerChange:
    """Read one change."""
    missing = [name for name in ("change", "known", "start", "end", "closed") if name not in row]
    if missing or row["change"] not in ("+", "-") or row["closed"] not in CLOSED_ENDS:
        problem = f"there is no `{missing[0]}`" if missing else "`change` is + or -, and `closed` a word like both"
        raise _log_error(problem, source, line, str(dict(row)))
    lo_closed, hi_closed = CLOSED_ENDS[row["closed"]]
    interval = Interval(_read_end(row["start"], -INF), _read_end(row["end"], INF), bool(lo_closed), bool(hi_closed))
    if "fact" in row:
        fact = parse_fact(row["fact"], source, line)[0]
        predicate, args = fact.predicate, fact.args
    else:
        fixed = ("change", "known", "predicate", "start", "end", "closed")
        predicate = row["predicate"]
        args = tuple(_read_value(value) for name, value in row.items() if name not in fixed and value is not None)
    return AnswerChange(predicate, args, interval, row["change"], _read_end(row["known"], INF))


def _read_end(value: Any, infinite: float) -> Time:
    if value is None:
        return infinite
    return parse_time(value)[0] if isinstance(value, str) else to_time(value)


def _read_value(value: Any) -> Value:
    if isinstance(value, str):
        number = read_number(value)
        return value if number is None else number
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _log_error(problem: str, source: str, line: int, text: str) -> TidelogError:
    return TidelogError(Diagnostic("TL409", problem, Place(source, line, 1, 1, text), _LAW, _HELP))

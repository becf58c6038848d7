"""The change log of a job with corrections: how changes of answers leave a bucket.

A change leaves as an answer, or as its deletion (`tidelog.data.deletions`), behind the clock at which it was reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.data import wire_format
from tidelog.data.deletions import is_deletion, name_deletions
from tidelog.data.wire_format import FactBlock
from tidelog.model import relation_of
from tidelog.spark.worker.alert_rows import pack_alerts
from tidelog.spark.worker.packed_rows import frame_parts, unframe_parts
from tidelog.streaming.alerts import Alert, WithdrawableChange
from tidelog.streaming.answer_changes import AnswerChange, AnswerChanges, Sign
from tidelog.timeline.interval import Time, format_time, read_time

_SIGNS: tuple[Sign, ...] = ("-", "+")


def pack_changes(predicate: str, changes: AnswerChanges, dates: bool, known: Time) -> Iterator[bytes]:
    """Pack the changes of a step that were known at a clock; answers that are taken back come first."""
    for name, answers in ((name_deletions(predicate), changes.removed), (predicate, changes.added)):
        rows, grid, symbols = answers.block()
        if len(rows):
            block = wire_format.pack(symbols, grid.denominator, dates, relation_of(name, rows, grid))
            yield frame_parts([format_time(known).encode(), block])


def pack_alert_changes(alerts: Sequence[Alert], dates: bool, known: Time) -> Iterator[bytes]:
    """Pack alerts that were withdrawn or added in a step."""
    for sign in _SIGNS:
        found = [a for a in alerts if isinstance(a, AnswerChange | WithdrawableChange) and a.change == sign]
        if found:
            yield frame_parts([format_time(known).encode(), pack_alerts(found, dates, deleted=sign == "-")])


def unpack_changes(payload: bytes) -> tuple[Sign, Time, FactBlock]:
    """Return the sign of packed changes, the clock at which they were reported, and their answers."""
    known, block = unframe_parts(payload)
    found = wire_format.unpack(block)
    return "-" if is_deletion(found.predicate) else "+", read_time(known.decode()), found

"""Update the live page of a streaming job: the figures of every batch, and some of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidelog.data import wire_format
from tidelog.data.deletions import strip_mark
from tidelog.language.fact_text import format_fact
from tidelog.spark.worker import packed_rows
from tidelog.spark.worker.answer_columns import AnswerColumns
from tidelog.spark.worker.change_log import unpack_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidelog.page.live_board import Board

#: How many packed rows of a batch are read, and how many answers of each.
_ROWS, _SHOWN = 4, 50


def update_board(
    board: Board, batch: DataFrame, found: Mapping[str, Any], clock: str | None, columns: AnswerColumns
) -> None:
    """Add a written batch to a board; `found` are its figures, `clock` the time up to which all is answered."""
    dates = columns.time.startswith("timestamp")
    board.count(
        facts=found["facts_in"],
        answers=found["answers"],
        late=found["late"],
        aside=found.get("aside", 0),
        seconds=found["seconds"],
    )
    board.set_state(found["held"], None if clock in (None, "inf", "-inf") else Fraction(clock), dates)
    board.add_rule_costs(found.get("rules", ()))
    if found["answers"]:
        packed = batch.where(batch.kind == packed_rows.ANSWER).select("payload").limit(_ROWS).collect()
        board.add_answers(text for row in packed for text in _format_answers(bytes(row[0]), dates, columns.corrections))


def _format_answers(payload: bytes, dates: bool, corrections: bool) -> list[str]:
    sign, _, block = unpack_changes(payload) if corrections else ("", None, wire_format.unpack(payload))
    facts = sorted(wire_format.to_dataset([block]), key=lambda fact: fact.interval.hi, reverse=True)
    lines = [sign + strip_mark(format_fact(fact, dates)) for fact in islice(facts, _SHOWN)]
    return lines[::-1]

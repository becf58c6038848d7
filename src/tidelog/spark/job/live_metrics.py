"""Update the live page of a streaming job: the figures of every batch, and some of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidelog.data import wire_format
from tidelog.language.fact_text import format_fact
from tidelog.spark.worker import packed_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidelog.page.live_board import Board

#: How many packed rows of a batch are read, and how many answers of each.
_ROWS, _SHOWN = 4, 50


def update_board(board: Board, batch: DataFrame, found: Mapping[str, Any], clock: str | None, dates: bool) -> None:
    """Add a written batch to a board; `found` are its figures, `clock` the time up to which all is answered."""
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
        board.add_answers(text for row in packed for text in _format_answers(bytes(row[0]), dates))


def _format_answers(payload: bytes, dates: bool) -> list[str]:
    facts = sorted(
        wire_format.to_dataset([wire_format.unpack(payload)]), key=lambda fact: fact.interval.hi, reverse=True
    )
    return [format_fact(fact, dates) for fact in islice(facts, _SHOWN)][::-1]

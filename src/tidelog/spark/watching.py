"""A streaming job as its page shows it while it runs: the figures of every batch, and some of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidelog.data import pieces
from tidelog.language.facts import format_fact
from tidelog.spark import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidelog.page.board import Board

#: So many packed rows of a batch are looked at, and so many answers of each.
_ROWS, _SHOWN = 4, 50


def tell(board: Board, batch: DataFrame, found: Mapping[str, Any], clock: str | None, dates: bool) -> None:
    """Tell a board of a batch that was written; `found` are its figures, `clock` up to when all is answered."""
    board.count(
        facts=found["facts_in"],
        answers=found["answers"],
        late=found["late"],
        aside=found.get("aside", 0),
        seconds=found["seconds"],
    )
    board.stands(found["held"], None if clock in (None, "inf", "-inf") else Fraction(clock), dates)
    board.worked(found.get("rules", ()))
    if found["answers"]:
        packed = batch.where(batch.kind == rows.ANSWER).select("payload").limit(_ROWS).collect()
        board.answered(text for row in packed for text in _texts(bytes(row[0]), dates))


def _texts(payload: bytes, dates: bool) -> list[str]:
    facts = sorted(pieces.dataset([pieces.unpacked(payload)]), key=lambda fact: fact.interval.hi, reverse=True)
    return [format_fact(fact, dates) for fact in islice(facts, _SHOWN)][::-1]

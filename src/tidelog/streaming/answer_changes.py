"""The output of a stream with corrections: answers that are added, and answers that are taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.language.time_text import format_iso
from tidelog.streaming.answers import AnswerColumns, Answers, StreamStep
from tidelog.timeline.interval import Time, format_time

if TYPE_CHECKING:
    from tidelog.data.fact_sheet import Sheet
    from tidelog.language.fact_text import FactFormat

Sign = Literal["+", "-"]


@dataclass(frozen=True)
class AnswerChange(Fact):
    """An answer that was added (`+`) or taken back (`-`), and the clock at which that was reported."""

    change: Literal["+", "-"]
    known: Time

    def __str__(self) -> str:
        return self.change + format_fact(self)

    @property
    def fact(self) -> Fact:
        """The answer itself."""
        return Fact(self.predicate, self.args, self.interval)


class AnswerChanges(Answers):
    """The changes of a step: answers that are taken back, then answers that are added, each in time order."""

    __slots__ = ("_known", "added", "removed")

    def __init__(self, removed: Answers, added: Answers, known: Time) -> None:
        super().__init__(len(removed) + len(added), added._found, added._first, added._symbols)
        self.removed = removed
        self.added = added
        self._known = known

    def __iter__(self) -> Iterator[Fact]:
        parts: tuple[tuple[Sign, Answers], ...] = (("-", self.removed), ("+", self.added))
        for sign, facts in parts:
            for fact in facts:
                yield AnswerChange(fact.predicate, fact.args, fact.interval, sign, self._known)

    def render(self, format: FactFormat = "text", iso: bool = False) -> bytes:
        """Print the changes, one per line, as `"text"`, `"jsonl"` or `"csv"`. Any other format raises a ValueError."""
        if format == "csv":
            from tidelog.data.fact_sheet import render_csv

            return render_csv(build_change_sheet(self), iso)
        known = format_iso(self._known) if iso else format_time(self._known)
        lines: list[bytes] = []
        parts: tuple[tuple[Sign, Answers], ...] = (("-", self.removed), ("+", self.added))
        for sign, facts in parts:
            if not len(facts):
                continue
            front = sign.encode() if format == "text" else f'{{"change": "{sign}", "known": "{known}", '.encode()
            skipped = 0 if format == "text" else 1
            lines += [front + line[skipped:] for line in facts.render(format, iso).splitlines(keepends=True)]
        return b"".join(lines)


def build_change_sheet(
    changes: Iterable[object],
    arity: int = 0,
    names: Sequence[str] | None = None,
    times: tuple[int, ...] = (),
) -> Sheet:
    """Build the table of changes: like that of answers, with the columns `change` and `known` in front."""
    from tidelog.data.fact_sheet import build_fact_sheet

    found = [change for change in changes if isinstance(change, AnswerChange)]
    return add_change_columns(build_fact_sheet(found, arity, names, times), [(c.change, c.known) for c in found])


def add_change_columns(plain: Sheet, changes: Sequence[tuple[Sign, Time]]) -> Sheet:
    """Add the columns `change` and `known` to the rows of a table."""
    from tidelog.data.fact_sheet import Sheet

    rows = [(*change, *row) for change, row in zip(changes, plain.rows, strict=True)]
    return Sheet(("change", "known", *plain.names), ("text", "time", *plain.kinds), rows)


class ChangeStep(StreamStep):
    """The record of a step whose answers are changes: `answers` has those taken back, then those added."""

    #: None if no answer was taken back, and if the changes were known at the clock of the step.
    _removed: tuple[AnswerColumns, int, int] | None = None
    _known: Time | None = None

    @staticmethod
    def of(
        step: StreamStep,
        removed: tuple[AnswerColumns, int, int],
        added: AnswerColumns,
        known: Time | None = None,
    ) -> ChangeStep:
        """Return a step with the changes of its answers, which were known at a clock: its own unless given."""
        plain = step.with_answers(added)
        changed = ChangeStep(plain._shared, plain._numbers, plain._late)
        changed._removed, changed._known = removed, known
        return changed

    def take_back(self, removed: tuple[AnswerColumns, int, int]) -> None:
        """Set the answers that are taken back."""
        self._removed = removed

    def __len__(self) -> int:
        added = self._numbers[6] - self._numbers[5]
        return added if self._removed is None else added + self._removed[2] - self._removed[1]

    @property
    def answers(self) -> AnswerChanges:
        """The changes of the answers."""
        return AnswerChanges(self.removed, self.added, self.time if self._known is None else self._known)

    @property
    def removed(self) -> Answers:
        """The answers that are taken back."""
        found, first, last = self._removed or (self._shared.found, 0, 0)
        return Answers(last - first, found, first, found.symbols)

    @property
    def added(self) -> Answers:
        """The answers that are added."""
        return super().answers

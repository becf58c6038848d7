"""Stable models as they are shown: facts in LO..HI, and what repeats after and before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidelog.language.facts import format_fact
from tidelog.language.syntax import Fact, Value
from tidelog.language.times import format_iso
from tidelog.model import Repeat
from tidelog.stable import courses
from tidelog.stable.courses import Course, Repetition
from tidelog.stable.grounding import Ground
from tidelog.stable.problem import GRID, Pair

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Repeats:
    """What repeats for ever: `facts` in one period, which begins at `start` or, before the data, ends right before
    it."""

    start: Fraction
    every: Fraction
    facts: tuple[Fact, ...]


class StableModel:
    """A stable model: its facts in LO..HI, and what repeats for ever after and before.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Due :- Diamondminus[3,3] Due, not Off.")
    >>> (model,) = tl.stable_models(program, tl.Dataset.parse("Due@0"), between=(0, 4))
    >>> [str(fact.interval) for fact in model.facts], model.repeats_after.every
    (['0', '3'], Fraction(3, 1))
    """

    def __init__(self, found: dict[Ground, Course], symbols: Symbols, dates: bool, lo: int, hi: int) -> None:
        ranks = symbols.ranks()
        self._found = dict(sorted(found.items(), key=lambda item: (item[0][0], [int(ranks[a]) for a in item[0][1]])))
        self._symbols, self._dates = symbols, dates
        self.lo, self.hi = lo, hi

    def _repr_html_(self) -> str:
        from tidelog.data.notebook import facts_html

        again = [repeat.text(self._dates) for repeat in self.repeats]
        return facts_html(self.facts, len(self.facts), iso=self._dates, more=again)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """All relational facts in LO..HI, maximal intervals, sorted by predicate, arguments and time."""
        return self.within(self.lo, self.hi)

    def within(self, lo: int, hi: int) -> tuple[Fact, ...]:
        """All relational facts from lo to hi, wherever that is."""
        return tuple(self._facts([course.within(lo, hi) for course in self._found.values()]))

    @cached_property
    def repeats_after(self) -> Repeats | None:
        return self._repeats(courses.after([course.after for course in self._found.values()], self.lo))

    @cached_property
    def repeats_before(self) -> Repeats | None:
        return self._repeats(courses.before([course.before for course in self._found.values()], self.lo))

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """What repeats, atom by atom, each with its own period."""
        found: list[Repeat] = []
        for atom, course in self._found.items():
            for is_before, repetition in (
                (True, courses.before([course.before], self.lo)),
                (False, courses.after([course.after], self.lo)),
            ):
                if repetition is not None:
                    every, at = Fraction(repetition.every), Fraction(repetition.at)
                    facts = (Fact(atom[0], self._values(atom), GRID.interval(*part)) for part in repetition.parts[0])
                    found += (Repeat(fact, every, at, is_before) for fact in facts)
        return tuple(found)

    def text(self, iso: bool | None = None) -> str:
        """The facts, one a line, and what repeats as comments."""
        iso = self._dates if iso is None else iso
        lines = [format_fact(fact, iso) for fact in self.facts]
        return "".join(f"{line}\n" for line in lines + [repeat.text(iso) for repeat in self.repeats])

    def to_json(self, iso: bool | None = None) -> dict[str, Any]:
        """The object that `tidelog stable --json` prints."""
        iso = self._dates if iso is None else iso

        def repeats(found: Repeats | None, word: str) -> dict[str, Any] | None:
            if found is None:
                return None
            facts = [format_fact(fact, iso) for fact in found.facts]
            at = format_iso(found.start) if iso else int(found.start)
            return {word: at, "every": int(found.every), "facts": facts}

        return {
            "facts": [format_fact(fact, iso) for fact in self.facts],
            "repeats_after": repeats(self.repeats_after, "from"),
            "repeats_before": repeats(self.repeats_before, "before"),
        }

    def _repeats(self, found: Repetition | None) -> Repeats | None:
        if found is None:
            return None
        return Repeats(Fraction(found.at), Fraction(found.every), tuple(self._facts(found.parts)))

    def _facts(self, parts: Sequence[Sequence[Pair]]) -> Iterator[Fact]:
        for atom, pairs in zip(self._found, parts, strict=True):
            if pairs:
                values = self._values(atom)
                yield from (Fact(atom[0], values, GRID.interval(*pair)) for pair in pairs)

    def _values(self, atom: Ground) -> tuple[Value, ...]:
        return tuple(self._symbols.value(a) for a in atom[1])

    def __repr__(self) -> str:
        return f"<StableModel of {len(self.facts)} facts in [{self.lo},{self.hi}]>"

"""Stable models as users see them: facts in LO..HI, and what repeats after and before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from tidelog.compiler.flat_rules import Pair
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact, Value
from tidelog.language.time_text import format_iso
from tidelog.language.wording import plural
from tidelog.model import Repeat
from tidelog.stable.atom_history import AtomHistory, JointRepetition, find_repetition_after, find_repetition_before
from tidelog.stable.grounding import GroundAtom
from tidelog.stable.problem import GRID

if TYPE_CHECKING:
    from tidelog.data.symbol_table import Symbols


@dataclass(frozen=True, slots=True)
class RepeatedFacts:
    """The facts that repeat for ever, in one period.

    The period begins at `start` or, for what repeats before the data, ends right before it.
    """

    start: Fraction
    every: Fraction
    facts: tuple[Fact, ...]


class StableModel:
    """A stable model: its facts in LO..HI, and what repeats for ever after and before it.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Due :- Diamondminus[3,3] Due, not Off.")
    >>> (model,) = tl.stable_models(program, tl.Dataset.parse("Due@0"), between=(0, 4))
    >>> [str(fact.interval) for fact in model.facts], model.repeats_after.every
    (['0', '3'], Fraction(3, 1))
    """

    def __init__(
        self,
        histories: dict[GroundAtom, AtomHistory],
        symbols: Symbols,
        dates: bool,
        lo: int,
        hi: int,
        cost: Fraction | None = None,
    ) -> None:
        ranks = symbols.ranks()
        self._histories = dict(
            sorted(histories.items(), key=lambda item: (item[0][0], [int(ranks[a]) for a in item[0][1]]))
        )
        self._symbols, self._dates = symbols, dates
        self.lo, self.hi = lo, hi
        #: What the model costs on LO..HI, where there are weights.
        self.cost = cost

    def _repr_html_(self) -> str:
        from tidelog.data.notebook_view import facts_to_html

        again = [repeat.text(self._dates) for repeat in self.repeats]
        return facts_to_html(self.facts, len(self.facts), iso=self._dates, more=again)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """All relational facts in LO..HI, in maximal intervals, sorted by predicate, arguments and time."""
        return self.within(self.lo, self.hi)

    def within(self, lo: int, hi: int) -> tuple[Fact, ...]:
        """Return all relational facts from lo to hi, at any distance from the data."""
        return tuple(self._facts([history.within(lo, hi) for history in self._histories.values()]))

    @cached_property
    def repeats_after(self) -> RepeatedFacts | None:
        """What repeats for ever after some time, all atoms together; None where nothing holds there."""
        tails = [history.after for history in self._histories.values()]
        return self._repeated_facts(find_repetition_after(tails, self.lo))

    @cached_property
    def repeats_before(self) -> RepeatedFacts | None:
        """What repeats for ever before some time, all atoms together; None where nothing holds there."""
        tails = [history.before for history in self._histories.values()]
        return self._repeated_facts(find_repetition_before(tails, self.lo))

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """What repeats, atom by atom, each with its own period."""
        repeats: list[Repeat] = []
        for atom, history in self._histories.items():
            for is_before, repetition in (
                (True, find_repetition_before([history.before], self.lo)),
                (False, find_repetition_after([history.after], self.lo)),
            ):
                if repetition is not None:
                    every, at = Fraction(repetition.every), Fraction(repetition.at)
                    facts = (Fact(atom[0], self._values(atom), GRID.to_interval(*pair)) for pair in repetition.pairs[0])
                    repeats += (Repeat(fact, every, at, is_before) for fact in facts)
        return tuple(repeats)

    def text(self, iso: bool | None = None) -> str:
        """Return the facts, one per line, followed by what repeats, as comments."""
        iso = self._dates if iso is None else iso
        lines = [format_fact(fact, iso) for fact in self.facts]
        return "".join(f"{line}\n" for line in lines + [repeat.text(iso) for repeat in self.repeats])

    def to_json(self, iso: bool | None = None) -> dict[str, Any]:
        """Return the object that `tidelog stable --json` prints."""
        iso = self._dates if iso is None else iso

        def repeats(repeated: RepeatedFacts | None, word: str) -> dict[str, Any] | None:
            if repeated is None:
                return None
            facts = [format_fact(fact, iso) for fact in repeated.facts]
            at = format_iso(repeated.start) if iso else int(repeated.start)
            return {word: at, "every": int(repeated.every), "facts": facts}

        found = {
            "facts": [format_fact(fact, iso) for fact in self.facts],
            "repeats_after": repeats(self.repeats_after, "from"),
            "repeats_before": repeats(self.repeats_before, "before"),
        }
        if self.cost is None:
            return found
        return found | {"cost": int(self.cost) if self.cost.denominator == 1 else str(self.cost)}

    def _repeated_facts(self, repetition: JointRepetition | None) -> RepeatedFacts | None:
        if repetition is None:
            return None
        return RepeatedFacts(Fraction(repetition.at), Fraction(repetition.every), tuple(self._facts(repetition.pairs)))

    def _facts(self, pairs_by_atom: Sequence[Sequence[Pair]]) -> Iterator[Fact]:
        to_interval = cache(GRID.to_interval)  # many atoms hold at the same times
        for atom, pairs in zip(self._histories, pairs_by_atom, strict=True):
            if pairs:
                values = self._values(atom)
                yield from (Fact(atom[0], values, to_interval(*pair)) for pair in pairs)

    def _values(self, atom: GroundAtom) -> tuple[Value, ...]:
        return tuple(self._symbols.value(a) for a in atom[1])

    def __repr__(self) -> str:
        return f"<StableModel of {plural(len(self.facts), 'fact')} in [{self.lo},{self.hi}]>"

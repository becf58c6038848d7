"""Warn of arrivals that look like mistakes: facts that no rule reads, and predicates without any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from tidelog.analysis.program_warnings import find_data_warnings, make_strict
from tidelog.cli.warning_output import show_warnings
from tidelog.data.dataset import Dataset
from tidelog.data.input_warnings import find_sort_warnings
from tidelog.hypothetical.ground_facts import GroundFact, to_value
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.language.wording import suggest
from tidelog.timeline.interval import Interval

#: How many facts of rigid predicates are looked at.
_MAX_RIGID = 1000
_ALWAYS = Interval(-inf, inf, False, False)


@dataclass
class ArrivalWarnings:
    """Notes the predicates of facts as they arrive. If strict, facts that no rule reads are refused at once."""

    program: Program
    query: str
    strict: bool
    #: The predicates that have facts, in the background or among the arrivals.
    predicates: set[str]
    _rigid: list[Fact] = field(default_factory=list)
    #: Whether all arrivals were read.
    _ended: bool = False

    def watch(self, arrivals: Iterator[tuple[int, GroundFact]]) -> Iterator[tuple[int, GroundFact]]:
        """Pass arrivals on, and note their predicates."""
        rigid = {name for name, _ in self.program.temporal.rigid} if self.program.temporal else set()
        for arrival, fact in arrivals:
            name = fact[0]
            if name not in self.predicates:
                self.predicates.add(name)
                if self.strict:
                    make_strict(find_data_warnings(self.program, {name}, [self.query], complete=False))
            if name in rigid and len(self._rigid) < _MAX_RIGID:
                self._rigid.append(Fact(name, tuple(map(to_value, fact[1])), _ALWAYS))
            yield arrival, fact
        self._ended = True

    def show(self) -> None:
        """Show what was found; names that look misspelt only if all arrivals were read, and there were some."""
        complete = self._ended and bool(self.predicates)
        # Facts that are still missing are what hypothetical answers are about, unless their name looks misspelt.
        absent = {name for name in self.program.predicates if suggest(name, self.predicates) is None}
        names = find_data_warnings(self.program, self.predicates | absent, [self.query], complete)
        sorts = find_sort_warnings(self.program, Dataset.from_facts(self._rigid))
        show_warnings((*names, *sorts), self.strict)

"""Prepare facts for a program: the one way from users' data into every engine.

Temporal Datalog keeps time in the last argument, arities must agree, integer timelines take integer times only, and
times become positions on the grid of the compiled program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.compiled_program import EngineName
from tidelog.compiler.validate import program_arities, require_arities, require_integer_times
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.core_rules import compares_with_value
from tidelog.language.fact_text import format_fact
from tidelog.language.program import Program
from tidelog.language.queries import Query
from tidelog.language.syntax import Fact
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.data.data_frames import DataLike
    from tidelog.data.dataset import Dataset

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class InputFormat:
    """What an engine expects of the facts for a program."""

    program: Program
    arities: Mapping[str, int]
    timeline: TimelineName
    engine: EngineName

    @staticmethod
    def of(program: Program, timeline: TimelineName, engine: EngineName) -> InputFormat:
        """Return the format for a program on a timeline."""
        return InputFormat(program, program_arities(program), timeline, engine)

    def prepare(self, data: Dataset, asked: Iterable[Fact | Query] = ()) -> Dataset:
        """Return data as the program reads it; raise where it does not fit rules, timeline or what is asked for."""
        data = read_time_arguments(self.program, data)
        self.check(data, asked)
        return data

    def check(self, data: Dataset, asked: Iterable[Fact | Query] = ()) -> None:
        """Raise where data whose times have been read does not fit."""
        self._refuse_deletions(data)
        self._refuse_generated(data)
        require_arities(self.arities, data, asked)
        if self.timeline == "integer":
            require_integer_times(data, self.engine)

    def _refuse_deletions(self, data: Dataset) -> None:
        """Raise TL407 for a deletion: who takes deletions has separated them before."""
        from tidelog.data.deletions import has_deletions, is_deletion

        given = dict(data.relations.keys())
        column = next(
            (
                source
                for source in data.sources
                if source.column == "op" and self.arities.get(source.predicate, -1) + 1 == given.get(source.predicate)
            ),
            None,
        )
        if has_deletions(data.relations):
            name = next(name for name, _ in data.relations if is_deletion(name))
            first = next(fact for fact in data if fact.predicate == name)
            problem = f"`{format_fact(first, data.dates)}` deletes a fact"
        elif column is not None:
            problem = f"the column `op` of {column.source} says which rows delete a fact"
        else:
            return
        help = "a set of facts has no deletions: leave out what does not hold, or update a `tl.View` with delete="
        if self.engine == "stream":
            help = "say for how long corrections are taken: --corrections 1h, or corrections= in Python"
        raise TidelogError(Diagnostic("TL407", problem, help=help))

    def _refuse_generated(self, data: Dataset) -> None:
        """Raise TL124 for facts of a predicate that tidelog generates for this program."""
        name = next((name for name, _ in data.relations if name in self.program.calendars), None)
        if name is not None:
            help = "give these facts another name, in the data and in the rules that are to read them"
            raise TidelogError(Diagnostic("TL124", f"the data has facts of {name}, which tidelog generates", help=help))


def with_program_facts(program: Program, data: DataLike | None) -> Dataset:
    """Return data, which may be none, together with the facts in the rule file."""
    from tidelog.data.data_frames import to_dataset
    from tidelog.data.dataset import Dataset

    data = (None if data is None else to_dataset(data)) or Dataset()
    return read_time_arguments(program, data | Dataset.from_facts(program.facts) if program.facts else data)


def read_time_arguments(program: Program, data: Dataset) -> Dataset:
    """Return facts with their times where the program has them: in temporal Datalog, in the last argument."""
    return data.with_time_arguments(program.temporal.temporal) if program.temporal else data


def needed_denominator(program: Program, data: Dataset) -> int:
    """Return the denominator of the grid that data needs: that of its times and, if rules compare durations with values
    from the data, that of its numbers."""
    if not any(compares_with_value(step) for step in program.core.aggregations):
        return data.denominator
    from tidelog.numeric.numbers import Numbers

    found = Numbers(data.symbols).constants().denominators
    return lcm(data.denominator, *np.unique(found[found > 0]).tolist())


def to_timeline(lo: Int64s, hi: Int64s, dense: bool) -> tuple[Int64s, Int64s]:
    """Return ends on the doubled grid as ends on the timeline; on the integers an interval may be empty (lo > hi)."""
    if dense:
        return lo, hi
    return np.where(lo == NEG_INF, NEG_INF, (lo + 1) >> 1), np.where(hi == POS_INF, POS_INF, hi >> 1)

"""The data of a timeline: the maximal intervals of every atom, and which parts of them were given.

Ends are positions on the doubled grid, on either timeline: time n (in ticks) is 2n, the open gap after it 2n+1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidelog.language.fact_text import format_value
from tidelog.language.syntax import Value
from tidelog.page.packed_columns import pack_column
from tidelog.timeline.grid import NEG_INF, POS_INF

Longs = npt.NDArray[np.int64]

#: Flags of an interval: where it comes from; GIVEN and DERIVED together if it has parts of both kinds.
GIVEN, DERIVED, AWAITED = 1, 2, 4
#: Flags of an interval: it has no beginning, or no end.
NO_START, NO_END = 8, 16


@dataclass(frozen=True, eq=False)
class Spans:
    """Intervals; `of` is the number of the row, or atom, that each belongs to."""

    of: Longs
    lo: Longs
    hi: Longs

    def __len__(self) -> int:
        return len(self.of)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Atoms and their intervals, sorted by predicate, arguments and time; `dates` if times are printed as dates."""

    denominator: int
    dates: bool
    #: Name and arity.
    predicates: list[tuple[str, int]]
    values: list[Value]
    #: The number of each atom's predicate.
    atoms: Longs
    #: The numbers of the constants of all atoms, atom by atom.
    args: Longs
    rows: Spans
    kinds: Longs
    #: The given parts of those rows that are only partly given.
    given: Spans
    repeats: list[dict[str, Any]]

    def first_args(self) -> Longs:
        """Return where the arguments of each atom begin in `args`, and where the last ones end."""
        arities = np.array([arity for _, arity in self.predicates], np.int64)
        return np.append(0, np.cumsum(arities[self.atoms]))

    def atom_texts(self) -> Iterator[str]:
        """Yield every atom as it is printed."""
        constants = [format_value(value) for value in self.values]
        firsts = self.first_args()
        for atom, predicate in enumerate(self.atoms):
            args = ",".join(constants[c] for c in self.args[firsts[atom] : firsts[atom + 1]])
            name = self.predicates[predicate][0]
            yield f"{name}({args})" if args else name

    def to_json(self) -> dict[str, Any]:
        """Build the JSON object that the page reads."""
        return {
            "denominator": str(self.denominator),
            "dates": self.dates,
            "predicates": [{"name": name, "arity": arity} for name, arity in self.predicates],
            "constants": [format_value(value) for value in self.values],
            "atoms": {"predicate": pack_column(self.atoms), "args": pack_column(self.args)},
            "rows": pack_spans(self.rows, self.kinds),
            "given": pack_spans(self.given, np.zeros(len(self.given), np.int64)),
            "repeats": self.repeats,
        }


def pack_spans(spans: Spans, kinds: Longs) -> dict[str, Any]:
    """Pack intervals for the page. Infinite ends are flags, so that finite ones need few bytes."""
    no_start, no_end = spans.lo == NEG_INF, spans.hi == POS_INF
    finite = np.concatenate([spans.lo[~no_start], spans.hi[~no_end]])
    filler = int(finite.min()) if len(finite) else 0
    return {
        "of": pack_column(spans.of),
        "lo": pack_column(np.where(no_start, filler, spans.lo)),
        "hi": pack_column(np.where(no_end, filler, spans.hi)),
        "flags": pack_column(kinds | np.where(no_start, NO_START, 0) | np.where(no_end, NO_END, 0)),
    }

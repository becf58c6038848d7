"""`stable_consequences`: the facts of a predicate that hold in some stable model, or in all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.data.data_frames import DataLike, to_dataset
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.syntax import Fact, Value
from tidelog.language.time_like import TimeLike, to_time
from tidelog.stable.clingo_control import create_control
from tidelog.stable.grounding import GroundAtom
from tidelog.stable.problem import (
    GRID,
    Problem,
    prepare_problem,
    require_finite_range,
    require_integer_timeline,
)
from tidelog.stable.search_limits import MOST_WINDOWS, Progress, SearchLimit
from tidelog.stable.solver_choice import SolvedComponent, Solver, find_conflict, name_atoms, solve_with_first
from tidelog.timeline.interval import TimelineName
from tidelog.timeline.time_sets import coalesce

if TYPE_CHECKING:
    from tidelog.compiler.flat_rules import Pair
    from tidelog.language.program import Program

#: In a pattern, stands for any constant.
ANY = "_"


@dataclass(frozen=True)
class Consequences:
    """The facts that hold in some or in all stable models from `lo` to `hi`, sorted; none where there is no model."""

    facts: tuple[Fact, ...]
    satisfiable: bool
    lo: int
    hi: int
    #: Where there is no model: the atoms, as text, of a part of the program that has none.
    conflict: tuple[str, ...] = ()


def stable_consequences(
    program: Program,
    data: DataLike,
    pattern: str,
    *,
    mode: str = "cautious",
    between: tuple[TimeLike, TimeLike] | None = None,
    timeline: TimelineName | None = None,
    progress: Progress | None = None,
    most: int = MOST_WINDOWS,
) -> Consequences:
    """Return the facts of a predicate that hold in some stable model or in all of them, at each time by itself.

    The pattern is a predicate, or an atom with `_` for arguments that may be anything: `On`, `On(kitchen,_)`.
    `mode="brave"` asks about some model, `mode="cautious"` about all. Times are those of `between`, or of the data's
    range. Raises `Undecided` if the search visits more than `most` windows.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("P(X) :- A(X), not Q(X). Q(X) :- A(X), not P(X). Bottom :- Q(b).")
    >>> data = tl.Dataset.from_facts(["A(a)@[0,3]", "A(b)@[2,5]"])
    >>> found = tl.stable.stable_consequences(program, data, "P", mode="cautious")
    >>> [(fact.predicate, fact.args, str(fact.interval)) for fact in found.facts]
    [('P', ('b',), '[2,5]')]
    """
    if mode not in ("brave", "cautious"):
        raise ValueError(f"mode is brave or cautious, not {mode!r}")
    require_integer_timeline(timeline)
    create_control()  # fail early if clingo is missing
    data = to_dataset(data)
    asked = parse_fact_pattern(program, pattern)
    known = known_predicates(program, (predicate for predicate, _ in data.relations))
    require_known_predicates([asked.predicate], known)
    problem = prepare_problem(program, data, query=asked.predicate)
    lo, hi = problem.range() if between is None else require_finite_range(*(to_time(end) for end in between))

    def ask(solver: Solver) -> tuple[SolvedComponent | None, dict[GroundAtom, tuple[Pair, ...]]]:
        components = list(solver.solve(lo, hi))
        conflict = find_conflict(components)
        if conflict is not None:
            return conflict, {}
        found: dict[GroundAtom, tuple[Pair, ...]] = {}
        for component in components:
            if any(component.atoms[i][0] == asked.predicate for i in component.visible):
                found.update(_collect(component, mode == "brave", (lo, hi)))
        return None, found

    conflict, derived = solve_with_first(problem, SearchLimit(most, progress), ask)
    if conflict is not None:
        return Consequences((), False, lo, hi, name_atoms(conflict, problem))
    return Consequences(tuple(_select_facts(problem, asked, derived, lo, hi)), True, lo, hi)


def parse_fact_pattern(program: Program, text: str) -> Fact:
    """Parse a pattern as a fact; a predicate alone stands for all its facts."""
    fact = program.to_fact(text)
    arity = program.predicates.get(fact.predicate, 0)
    return fact if fact.args else Fact(fact.predicate, (ANY,) * arity, fact.interval)


def is_fact_pattern(program: Program, text: str, has_range: bool) -> bool:
    """Tell whether a question asks for all facts that match, rather than about one fact.

    A predicate without arguments is a fact that holds always, unless a range of times is given with it."""
    if "@" in text:
        return False
    fact = program.to_fact(text)
    return ANY in fact.args or (not fact.args and (has_range or bool(program.predicates.get(fact.predicate))))


def _collect(component: SolvedComponent, brave: bool, shown: Pair) -> Iterator[tuple[GroundAtom, tuple[Pair, ...]]]:
    """Yield the visible atoms of a component with the intervals in which they hold in some or in all models."""
    lo, hi = shown
    by_atom: dict[int, list[Pair]] = {}
    for first, last, slice in component.consequences(brave):
        for i in component.visible:
            if slice >> i & 1:
                a, b = first - component.offsets[i], last - component.offsets[i]
                if component.mirrored:
                    a, b = -b, -a
                if a <= hi and b >= lo:
                    by_atom.setdefault(i, []).append((max(a, lo), min(b, hi)))
    for i, pairs in by_atom.items():
        yield component.atoms[i], tuple(coalesce(sorted(pairs)))


def _select_facts(
    problem: Problem, asked: Fact, derived: dict[GroundAtom, tuple[Pair, ...]], lo: int, hi: int
) -> Iterator[Fact]:
    """Yield the facts that match the pattern, given or derived, sorted by arguments and time."""
    symbols = problem.data.symbols
    ranks = symbols.ranks()
    found = dict(derived)
    for atom, pairs in problem.facts.items():
        if not is_hidden(atom[0]):
            clipped = [(max(a, lo), min(b, hi)) for a, b in pairs if a <= hi and b >= lo]
            found[atom] = tuple(coalesce(sorted([*clipped, *found.get(atom, ())])))
    for atom in sorted(found, key=lambda atom: (atom[0], [int(ranks[a]) for a in atom[1]])):
        predicate, args = atom
        values = tuple(symbols.value(a) for a in args)
        if predicate == asked.predicate and _matches(asked, values):
            yield from (Fact(predicate, values, GRID.to_interval(*pair)) for pair in found[atom])


def _matches(pattern: Fact, values: tuple[Value, ...]) -> bool:
    return len(values) == len(pattern.args) and all(
        wanted in (ANY, value) for wanted, value in zip(pattern.args, values, strict=True)
    )

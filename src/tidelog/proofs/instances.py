"""Instances of rules: the bindings under which a rule's body holds at some time of a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidelog.analysis.flatten import decided
from tidelog.language.syntax import Comparison, Constant, Term, Value
from tidelog.proofs.clauses import Clause, Leaf, Part, added_to, leaves
from tidelog.proofs.evaluation import ANY, Lookup, holds
from tidelog.proofs.facts import Ids, Table
from tidelog.proofs.sets import Pair, Times, complement, intersection, meeting
from tidelog.timeline.grid import negated


class Model:
    """All facts of a model, given and derived, and the constants that their numbers stand for."""

    def __init__(self, tables: dict[str, Table], value: Callable[[int], Value], dense: bool) -> None:
        self.tables = tables
        self.value = value
        self.dense = dense

    def times(self, predicate: str, ids: Ids) -> Times:
        table = self.tables.get(predicate)
        return table.times(ids) if table else []

    def lookup(self, predicate: str, ids: Ids, window: Pair) -> Sequence[Pair]:
        return meeting(self.times(predicate, ids), window)

    def matching(self, leaf: Leaf, binding: dict[str, int], window: Pair) -> Iterator[dict[str, int]]:
        """The binding with the leaf's variables bound, for every atom of it that holds in the window."""
        table = self.tables.get(leaf.predicate)
        if table is None:
            return
        pattern = tuple(binding.get(arg) if isinstance(arg, str) else arg for arg in leaf.args)
        for ids in table.matching(pattern, window):
            found = matched(leaf, ids, binding)
            if found is not None:
                yield found


def matched(leaf: Leaf, ids: Ids, binding: dict[str, int]) -> dict[str, int] | None:
    """The binding with what makes the leaf this atom; None where nothing does."""
    found = dict(binding)
    for arg, value in zip(leaf.args, ids, strict=True):
        if (found.setdefault(arg, value) if isinstance(arg, str) else arg) != value:
            return None
    return found


def instances(clause: Clause, ids: Ids, window: Pair, model: Model) -> Iterator[tuple[dict[str, int], Times]]:
    """The bindings under which a clause derives an atom at some time of a window, with the body's times for it."""
    binding = matched(clause.head, ids, {})
    if binding is None:
        return
    times = [added_to(window, negated(clause.shift), model.dense)]
    yield from _joined(clause, list(clause.positive), binding, times, model)


def _joined(
    clause: Clause, rest: list[Part], binding: dict[str, int], times: Times, model: Model
) -> Iterator[tuple[dict[str, int], Times]]:
    if not rest:
        times = _denied(clause, binding, times, model)
        if times and all(compared(c, binding, model.value) for c in clause.comparisons):
            yield binding, times
        return
    # The literal with the fewest open variables is the cheapest to look up.
    part = min(rest, key=lambda part: len(part.binders - binding.keys()))
    others = [other for other in rest if other is not part]
    for extended in bindings(part, binding, (times[0][0], times[-1][1]), model):
        left = satisfied(part, extended, times, model.lookup, model.dense)
        if left:
            yield from _joined(clause, others, extended, left, model)


def _denied(clause: Clause, binding: dict[str, int], times: Times, model: Model) -> Times:
    for part in clause.negative:
        if times:
            times = satisfied(part, binding, times, model.lookup, model.dense)
    return times


def satisfied(part: Part, binding: dict[str, int], times: Sequence[Pair], lookup: Lookup, dense: bool) -> Times:
    """Those of the times at which a literal holds."""
    held = holds(part.reading, binding, (times[0][0], times[-1][1]), lookup, dense)
    return intersection(times, complement(held) if part.literal.negated else held)


def bindings(part: Part, binding: dict[str, int], window: Pair, model: Model) -> Iterator[dict[str, int]]:
    """Extensions of a binding to a literal's variables under which it may hold in a window."""
    if all(name in binding for name in part.variables):
        yield binding
        return
    seen: set[tuple[int, ...]] = set()
    looked = list(leaves(part.reading, window, model.dense, left=False))
    aside = [found for found in leaves(part.reading, window, model.dense) if found not in looked]
    for bound in _matched(looked, binding, model):
        # What only a left operand mentions may be anything where that operand is not needed.
        free = {name: ANY for name in part.variables if name not in bound}
        for extended in (*(_matched(aside, bound, model) if free else ()), {**bound, **free}):
            key = tuple(extended.get(name, ANY) for name in part.variables)
            if key not in seen:
                seen.add(key)
                yield {**free, **extended}


def _matched(looked: Sequence[tuple[Leaf, Pair]], binding: dict[str, int], model: Model) -> Iterator[dict[str, int]]:
    if not looked:
        yield binding
        return
    (leaf, window), *rest = looked
    if all(arg in binding for arg in leaf.args if isinstance(arg, str)):
        yield from _matched(rest, binding, model)
        return
    for extended in model.matching(leaf, binding, window):
        yield from _matched(rest, extended, model)


def compared(comparison: Comparison, binding: dict[str, int], value: Callable[[int], Value]) -> bool:
    """Whether a comparison holds under a binding."""
    left, right = (bound_term(term, binding, value) for term in (comparison.left, comparison.right))
    return decided(Comparison(comparison.op, left, right))


def bound_term(term: Term, binding: dict[str, int], value: Callable[[int], Value]) -> Term:
    """A term with the value that a binding gives to it, if it does."""
    if isinstance(term, Constant) or binding.get(term.name, ANY) == ANY:
        return term
    return Constant(value(binding[term.name]))

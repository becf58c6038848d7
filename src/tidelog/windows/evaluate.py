"""Plain evaluation of forward-propagating rules, one time point after the other.

Small and direct, for small sets of facts: bodies that were frozen, witnesses that are replayed, and the atoms that
can be reached at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tidelog.language.syntax import Comparison, Constant, Term, Value, Variable
from tidelog.windows.query import PastRule
from tidelog.windows.terms import compare

#: The arguments of the facts that hold, by predicate, in the order in which they came: the same in every run.
Facts = dict[str, dict[tuple[Value, ...], None]]
Binding = dict[Variable, Value]
Compare = Callable[[str, Value, Value], bool]


def instance(args: Iterable[Term], binding: Binding) -> tuple[Value, ...]:
    return tuple(binding[term] if isinstance(term, Variable) else term.value for term in args)


def matches(
    atoms: Sequence[tuple[tuple[Term, ...], Mapping[tuple[Value, ...], None]]],
    comparisons: Sequence[Comparison] = (),
    compare: Compare = compare,
) -> Iterator[Binding]:
    """The bindings under which each atom's arguments are among its facts, and the comparisons hold."""

    def extend(position: int, binding: Binding) -> Iterator[Binding]:
        if position == len(atoms):
            yield binding
            return
        args, facts = atoms[position]
        if all(isinstance(term, Constant) or term in binding for term in args):
            if instance(args, binding) in facts:
                yield from extend(position + 1, binding)
            return
        for values in facts:
            if (found := _unified(args, values, binding)) is not None:
                yield from extend(position + 1, found)

    for binding in extend(0, {}):
        if all(compare(c.op, *instance((c.left, c.right), binding)) for c in comparisons):
            yield binding


def _unified(args: tuple[Term, ...], values: tuple[Value, ...], binding: Binding) -> Binding | None:
    found = dict(binding)
    for term, value in zip(args, values, strict=True):
        if isinstance(term, Constant):
            if term.value != value:
                return None
        elif found.setdefault(term, value) != value:
            return None
    return found


def close(
    rules: Iterable[PastRule], now: Facts, past: Mapping[int, Facts], rigid: Facts, compare: Compare = compare
) -> None:
    """Adds to `now` all that the temporal rules derive for the present; `past` holds what was true by lag."""
    rules = [rule for rule in rules if rule.temporal]
    grown = True
    while grown:
        grown = False
        for rule in rules:
            atoms = [(atom.args, _read(atom.predicate, atom.lag, now, past, rigid)) for atom in rule.body]
            for binding in list(matches(atoms, rule.comparisons, compare)):
                grown |= add(now, rule.predicate, instance(rule.args, binding))


def _read(
    predicate: str, lag: int | None, now: Facts, past: Mapping[int, Facts], rigid: Facts
) -> dict[tuple[Value, ...], None]:
    held = rigid if lag is None else now if lag == 0 else past.get(lag, {})
    return held.get(predicate, {})


def close_rigid(rules: Iterable[PastRule], rigid: Facts, compare: Compare = compare) -> None:
    """Adds all that the plain Datalog rules derive."""
    rules = [rule for rule in rules if not rule.temporal]
    grown = True
    while grown:
        grown = False
        for rule in rules:
            atoms = [(atom.args, rigid.get(atom.predicate, {})) for atom in rule.body]
            for binding in list(matches(atoms, rule.comparisons, compare)):
                grown |= add(rigid, rule.predicate, instance(rule.args, binding))


def add(facts: Facts, predicate: str, args: tuple[Value, ...]) -> bool:
    """Whether the fact is new."""
    known = facts.setdefault(predicate, {})
    if args in known:
        return False
    known[args] = None
    return True


def run(
    rules: Sequence[PastRule], rigid: Facts, stream: Mapping[int, Facts], until: int, compare: Compare = compare
) -> dict[int, Facts]:
    """All that holds at each time from the first of the stream to `until`; rigid facts are closed in place."""
    close_rigid(rules, rigid, compare)
    longest = max((rule.radius for rule in rules), default=0)
    held: dict[int, Facts] = {}
    for t in range(min(stream, default=until), until + 1):
        now = {name: dict(found) for name, found in stream.get(t, {}).items()}
        past = {lag: held[t - lag] for lag in range(1, longest + 1) if t - lag in held}
        close(rules, now, past, rigid, compare)
        held[t] = now
    return held

"""Evaluate forward-propagating rules naively, one time point after another.

Small and direct, for small sets of facts: frozen bodies, replayed witnesses, and the atoms that are derivable at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tidelog.language.comparisons import compare
from tidelog.language.syntax import Comparison, Constant, Term, Value, Variable
from tidelog.windows.forward_query import ForwardRule, LaggedAtom, order_rules

#: The arguments of facts by predicate, in insertion order, so that every run gives the same result.
Facts = dict[str, dict[tuple[Value, ...], None]]
Binding = dict[Variable, Value]
Comparator = Callable[[str, Value, Value], bool]


def instantiate(args: Iterable[Term], binding: Binding) -> tuple[Value, ...]:
    """Return the values of terms under a binding of all their variables."""
    return tuple(binding[term] if isinstance(term, Variable) else term.value for term in args)


def find_matches(
    atoms: Sequence[tuple[tuple[Term, ...], Mapping[tuple[Value, ...], None]]],
    comparisons: Sequence[Comparison] = (),
    compare: Comparator = compare,
) -> Iterator[Binding]:
    """Yield the bindings under which each atom matches one of its facts and all comparisons hold."""

    def extend(position: int, binding: Binding) -> Iterator[Binding]:
        if position == len(atoms):
            yield binding
            return
        args, facts = atoms[position]
        if all(isinstance(term, Constant) or term in binding for term in args):
            if instantiate(args, binding) in facts:
                yield from extend(position + 1, binding)
            return
        for values in facts:
            if (found := _match_args(args, values, binding)) is not None:
                yield from extend(position + 1, found)

    for binding in extend(0, {}):
        if all(compare(c.op, *instantiate((c.left, c.right), binding)) for c in comparisons):
            yield binding


def _match_args(args: tuple[Term, ...], values: tuple[Value, ...], binding: Binding) -> Binding | None:
    found = dict(binding)
    for term, value in zip(args, values, strict=True):
        if isinstance(term, Constant):
            if term.value != value:
                return None
        elif found.setdefault(term, value) != value:
            return None
    return found


def derive_present(
    layers: Iterable[Sequence[ForwardRule]],
    now: Facts,
    past: Mapping[int, Facts],
    rigid: Facts,
    compare: Comparator = compare,
) -> None:
    """Add to `now` all facts that temporal rules, in their layers, derive for the present; `past` has the earlier facts
    by lag."""

    def read(atom: LaggedAtom) -> dict[tuple[Value, ...], None]:
        held = rigid if atom.lag is None else now if atom.lag == 0 else past.get(atom.lag, {})
        return held.get(atom.predicate, {})

    _derive(layers, now, read, compare)


def derive_rigid(rules: Iterable[ForwardRule], rigid: Facts, compare: Comparator = compare) -> None:
    """Add all facts that the plain Datalog rules derive."""
    layers = order_rules(rule for rule in rules if not rule.temporal)
    _derive(layers, rigid, lambda atom: rigid.get(atom.predicate, {}), compare)


def _derive(
    layers: Iterable[Sequence[ForwardRule]],
    facts: Facts,
    read: Callable[[LaggedAtom], Mapping[tuple[Value, ...], None]],
    compare: Comparator,
) -> None:
    """Add what rules derive, layer by layer; `read` returns the facts that an atom is matched with."""
    for rules in layers:
        grown = True
        while grown:
            grown = False
            for rule in rules:
                atoms = [(atom.args, read(atom)) for atom in rule.body]
                for binding in list(find_matches(atoms, rule.comparisons, compare)):
                    if not any(instantiate(atom.args, binding) in read(atom) for atom in rule.negated):
                        grown |= add_fact(facts, rule.predicate, instantiate(rule.args, binding))


def add_fact(facts: Facts, predicate: str, args: tuple[Value, ...]) -> bool:
    """Add a fact; return whether it is new."""
    known = facts.setdefault(predicate, {})
    if args in known:
        return False
    known[args] = None
    return True


def evaluate_stream(
    rules: Sequence[ForwardRule], rigid: Facts, stream: Mapping[int, Facts], until: int, compare: Comparator = compare
) -> dict[int, Facts]:
    """Return all facts that hold at each time from the first of the stream to `until`; derived rigid facts are added to
    `rigid`."""
    derive_rigid(rules, rigid, compare)
    longest = max((rule.radius for rule in rules), default=0)
    layers = order_rules(rule for rule in rules if rule.temporal)
    held: dict[int, Facts] = {}
    for t in range(min(stream, default=until), until + 1):
        now = {name: dict(found) for name, found in stream.get(t, {}).items()}
        past = {lag: held[t - lag] for lag in range(1, longest + 1) if t - lag in held}
        derive_present(layers, now, past, rigid, compare)
        held[t] = now
    return held

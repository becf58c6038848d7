"""Hypothetical answers computed slowly, from their definition.

For a program without recursion over a small domain, every ground atom gets the minimal sets of facts, arrived or still
possible, that derive it, bottom-up over all ground rules. Hypotheses, evidence and answers follow from the definitions.
Nothing here unifies or resolves. The only code shared with the reasoner is the syntax of programs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from tidelog.language.syntax import (
    Comparison,
    Constant,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    Value,
    Variable,
)

Ground = tuple[str, tuple[Value, ...], int]
Support = frozenset[Ground]
#: A binding of the query, as sorted pairs.
AnswerValues = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Domain:
    """Constants, the times of facts, and the times that variables range over."""

    constants: tuple[Value, ...]
    facts: range
    times: range


#: By binding: the minimal sets of hypotheses, each with its minimal sets of evidence.
HypotheticalAnswers = dict[AnswerValues, dict[Support, set[Support]]]


def compute_hypothetical(
    program: TemporalProgram,
    query: TemporalAtom,
    arrived: set[Ground],
    delay: Callable[[Ground], int],
    tau: int,
    domain: Domain,
) -> HypotheticalAnswers:
    """Return the hypothetical answers to a query at `tau`, given the facts that have arrived."""
    derived = {rule.head.predicate for rule in program.rules if rule.head and rule.body}
    supports: dict[Ground, set[Support]] = {}
    for name, arity in program.temporal:
        if name not in derived:
            for args in product(domain.constants, repeat=arity):
                for time in domain.facts:
                    fact = (name, args, time)
                    if fact in arrived or tau < time + delay(fact):
                        supports[fact] = {frozenset([fact])}
    for rule in program.facts:
        assert rule.head is not None
        supports[ground_atom(rule.head, {})] = {frozenset()}
    for name in _order(program, derived):
        for rule in program.rules:
            if rule.head and rule.head.predicate == name:
                _derive(rule, supports, domain)
    found: HypotheticalAnswers = {}
    for binding in bindings_of([query], domain):
        sets = supports.get(ground_atom(query, binding))
        if sets:
            theta = tuple(sorted((k, v) for k, v in binding.items() if not k.startswith("_")))
            by_hypotheses = found.setdefault(theta, {})
            for awaited in _minimal(support - arrived for support in sets):
                evidence = {support & arrived for support in sets if support - arrived == awaited}
                by_hypotheses.setdefault(awaited, set()).update(evidence)
    return {theta: _keep_minimal(by_hypotheses) for theta, by_hypotheses in found.items()}


def _keep_minimal(entries: dict[Support, set[Support]]) -> dict[Support, set[Support]]:
    return {awaited: _minimal(entries[awaited]) for awaited in _minimal(entries)}


def _minimal(sets: Iterable[Support]) -> set[Support]:
    kept: list[Support] = []
    for candidate in sorted(set(sets), key=len):
        if not any(smaller <= candidate for smaller in kept):
            kept.append(candidate)
    return set(kept)


def _derive(rule: TemporalRule, supports: dict[Ground, set[Support]], domain: Domain) -> None:
    assert rule.head is not None
    atoms = [part.atom for part in rule.body if isinstance(part, TemporalLiteral)]
    new: dict[Ground, set[Support]] = {}
    for binding, facts in _joins(atoms, {}, supports):
        if not all(comparison_holds(part, binding) for part in rule.body if isinstance(part, Comparison)):
            continue
        ways = {frozenset[Ground]().union(*choice) for choice in product(*(supports[fact] for fact in facts))}
        for rest in bindings_of([rule.head], domain, binding):
            head = ground_atom(rule.head, {**binding, **rest})
            new.setdefault(head, set()).update(ways)
    for head, ways in new.items():
        supports[head] = _minimal(supports.get(head, set()) | ways)


def match_atom(atom: TemporalAtom, fact: Ground, binding: dict[str, Value | int]) -> dict[str, Value | int] | None:
    """Return the binding under which an atom is a fact, extending another one; None if there is none."""
    if fact[0] != atom.predicate:
        return None
    found = dict(binding)
    if atom.time and atom.time.variable:
        found.setdefault(atom.time.variable, fact[2] - atom.time.offset)
    for term, value in zip(atom.args, fact[1], strict=True):
        if isinstance(term, Variable):
            found.setdefault(term.name, value)
    return found if ground_atom(atom, found) == fact else None


def _joins(
    atoms: list[TemporalAtom], binding: dict[str, Value | int], supports: dict[Ground, set[Support]]
) -> Iterator[tuple[dict[str, Value | int], list[Ground]]]:
    """Yield every binding under which all atoms have a support, with the ground atoms."""
    if not atoms:
        yield binding, []
        return
    first, rest = atoms[0], atoms[1:]
    for fact in supports:
        found = match_atom(first, fact, binding)
        if found is not None:
            for whole, facts in _joins(rest, found, supports):
                yield whole, [fact, *facts]


def bindings_of(
    atoms: list[TemporalAtom], domain: Domain, known: Container[str] = ()
) -> Iterator[dict[str, Value | int]]:
    """Yield all values of the variables of the atoms, except of those that are known."""
    objects = dict.fromkeys(t.name for atom in atoms for t in atom.args if isinstance(t, Variable))
    times = dict.fromkeys(atom.time.variable for atom in atoms if atom.time and atom.time.variable)
    objects = {name: None for name in objects if name not in known}
    times = {name: None for name in times if name not in known}
    for values in product(*([domain.constants] * len(objects)), *([domain.times] * len(times))):
        yield dict(zip([*objects, *times], values, strict=True))


def ground_atom(atom: TemporalAtom, binding: dict[str, Value | int]) -> Ground:
    args = tuple(binding[t.name] if isinstance(t, Variable) else t.value for t in atom.args)
    time = 0
    if atom.time:
        start = binding[atom.time.variable] if atom.time.variable else 0
        assert isinstance(start, int)
        time = start + atom.time.offset
    return atom.predicate, args, time  # type: ignore[return-value]


def comparison_holds(comparison: Comparison, binding: dict[str, Value | int]) -> bool:
    left, right = (
        term.value if isinstance(term, Constant) else binding[term.name] for term in (comparison.left, comparison.right)
    )
    a, b = ((isinstance(value, str), value) for value in (left, right))
    return {"<": a < b, "<=": a <= b, "=": a == b, "!=": a != b, ">": a > b, ">=": a >= b}[comparison.op]


def _order(program: TemporalProgram, derived: set[str]) -> list[str]:
    """Return the derived predicates, each after those that it depends on."""
    order: list[str] = []
    while len(order) < len(derived):
        for name in sorted(derived - set(order)):
            needs = {
                part.atom.predicate
                for rule in program.rules
                if rule.head and rule.head.predicate == name
                for part in rule.body
                if isinstance(part, TemporalLiteral)
            }
            if needs & derived <= set(order):
                order.append(name)
                break
        else:
            raise ValueError("the program is recursive")
    return order


def parse_printed_fact(text: str) -> Ground:
    """Parse a fact as it is printed; constants are plain names and numbers."""
    name, _, rest = text.partition("(")
    *args, time = rest.removesuffix(")").split(",")
    return name, tuple(Fraction(a) if a.isdigit() else a.strip('"') for a in args), int(time)

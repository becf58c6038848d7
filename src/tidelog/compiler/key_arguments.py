"""Find an argument by which a compiled query falls apart: one key after the other gives the answers of all together.

The theory is that of `analysis.rule_locality`, for rules in normal form. A predicate is *keyed* by one of its
arguments, or *shared* by all keys. Every rule must be local: its keyed atoms, with the head, have the same term at
their keyed arguments, and a shared head follows from shared atoms alone. The facts of one key, with all shared ones,
then give exactly the facts of that key.

No guard is needed, since nothing but the facts of the keys in question is ever taken from such an evaluation. But rules
that wait for time to pass (those with negation) are evaluated for the atoms that have changed, so each of them needs a
positive keyed atom: after a correction it is one of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import Op
from tidelog.language.core_rules import Aggregation
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.syntax import Term, Variable

#: The keyed argument of each predicate, from 0; None where it is shared.
KeyArguments = Mapping[str, int | None]
_Domains = dict[str, set[int | None]]


class _Atom(NamedTuple):
    predicate: str
    args: tuple[Term, ...]


class _Shape(NamedTuple):
    """A rule or numeric step: its head, its body, and for a rule that waits the atoms that hold where it does."""

    head: _Atom
    body: tuple[_Atom, ...]
    guards: tuple[_Atom, ...] | None = None


def find_key_arguments(compiled: CompiledProgram) -> KeyArguments | None:
    """Return by which argument each predicate of a standing query is keyed; None if the query does not fall apart.

    >>> from tidelog.compiler.compiled_program import Target
    >>> from tidelog.compiler.passes import compile_program
    >>> from tidelog.language.program import Program
    >>> rules = Program.parse("Hot(X) :- Temp(X, V), High(V), not Off(X).")
    >>> find_key_arguments(compile_program(rules, Target("stream", ("Hot",))))
    {'Hot': 0, 'Temp': 0, 'High': None, 'Off': 0}
    """
    if any(map(is_violation, compiled.names)):
        return None
    shapes = list(_describe(compiled))
    found = [
        key
        for position in range(compiled.arities[compiled.query])
        if (key := _choose(shapes, compiled, position)) is not None
    ]
    heads = {shape.head.predicate for shape in shapes}
    return max(found, key=lambda key: sum(key[name] is not None for name in key if name not in heads), default=None)


def _describe(compiled: CompiledProgram) -> Iterator[_Shape]:
    """Yield the rules, calculations and aggregations of a program."""
    for place, rule in enumerate(compiled.rules):
        body = tuple(_Atom(literal.predicate, literal.args) for literal in rule.body)
        guards = tuple(
            _Atom(literal.predicate, literal.args)
            for literal in rule.body
            if not literal.negated and literal.op in (Op.HOLDS, Op.DIAMOND, Op.BOX)
        )
        waits = place in compiled.bounds.waits
        yield _Shape(_Atom(rule.predicate, rule.args), body, guards if waits else None)
    for step in compiled.calculations:
        inner = _Atom(step.input.predicate, step.input.args)
        yield _Shape(_Atom(step.head.predicate, step.head.args), (inner,))
    yield from map(_describe_aggregation, compiled.aggregations)


def _describe_aggregation(step: Aggregation) -> _Shape:
    columns: list[Term] = [Variable(f"column {place}") for place in range(len(step.input.args))]
    results = [*(columns[place] for place in step.group), Variable("value")]
    head = tuple(results[place] for place in step.output)
    return _Shape(_Atom(step.head.predicate, head), (_Atom(step.input.predicate, tuple(columns)),))


def _choose(shapes: list[_Shape], compiled: CompiledProgram, position: int) -> dict[str, int | None] | None:
    """Choose keyed arguments, with the query keyed at a position; None if that is not possible."""
    domains: _Domains = {name: {*range(arity), None} for name, arity in compiled.arities.items()}
    domains[compiled.query] = {position}
    while True:
        key = {name: min((at for at in domain if at is not None), default=None) for name, domain in domains.items()}
        if sum(_narrow(shape, key, domains) for shape in shapes) == 0:
            return key if all(_is_guarded(shape, key) for shape in shapes) else None
        if not all(domains.values()):
            return None


def _narrow(shape: _Shape, key: KeyArguments, domains: _Domains) -> bool:
    """Leave out the arguments by which the body of a rule cannot be keyed, given its head; return whether any were."""
    at = key[shape.head.predicate]
    term = None if at is None else shape.head.args[at]
    narrowed = False
    for atom in shape.body:
        allowed = {None, *(i for i, other in enumerate(atom.args) if term is not None and other == term)}
        if not domains[atom.predicate] <= allowed:
            domains[atom.predicate] &= allowed
            narrowed = True
    return narrowed


def _is_guarded(shape: _Shape, key: KeyArguments) -> bool:
    """Return whether a rule that waits has a positive keyed atom, or no keyed atom at all."""
    if shape.guards is None or key[shape.head.predicate] is None:
        return True
    return any(key[atom.predicate] is not None for atom in shape.guards)

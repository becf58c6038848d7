"""Certain and possible answers from all continuations of a stream, by brute force.

A continuation adds some of the facts that may still arrive. An answer is certain if it holds in every continuation, and
possible if it holds in some. Rules are evaluated bottom-up over a small domain, stratum by stratum. The only code
shared with the reasoner is the syntax of programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, product
from typing import Any

from hypothetical_oracle import AnswerValues, Domain, Ground, bindings_of, comparison_holds, ground_atom, match_atom
from tidelog.language.syntax import Comparison, TemporalAtom, TemporalLiteral, TemporalProgram, TemporalRule


def find_facts_to_come(
    program: TemporalProgram, arrived: set[Ground], delay: Callable[[Ground], int], tau: int, domain: Domain
) -> list[Ground]:
    """Return the facts of the domain that may still arrive after `tau`."""
    derived = {rule.head.predicate for rule in program.rules if rule.head and rule.body}
    found = []
    for name, arity in sorted(program.temporal):
        if name not in derived:
            for args in product(domain.constants, repeat=arity):
                facts: list[Ground] = [(name, args, time) for time in domain.facts]
                found += [fact for fact in facts if fact not in arrived and tau < fact[2] + delay(fact)]
    return found


def find_answers(
    program: TemporalProgram, query: TemporalAtom, facts: Iterable[Ground], domain: Domain
) -> set[AnswerValues]:
    """Return the answers to a query over facts."""
    model = evaluate(program, facts, domain)
    return {
        tuple(sorted((k, v) for k, v in binding.items() if not k.startswith("_")))
        for binding in bindings_of([query], domain)
        if ground_atom(query, binding) in model
    }


def find_certain_and_possible(
    program: TemporalProgram, query: TemporalAtom, arrived: set[Ground], to_come: list[Ground], domain: Domain
) -> tuple[set[AnswerValues], set[AnswerValues]]:
    """Return the answers that hold in every continuation, and those that hold in some."""
    certain: set[AnswerValues] | None = None
    possible: set[AnswerValues] = set()
    for more in chain.from_iterable(combinations(to_come, n) for n in range(len(to_come) + 1)):
        answers = find_answers(program, query, arrived | set(more), domain)
        certain = answers if certain is None else certain & answers
        possible |= answers
    assert certain is not None
    return certain, possible


def evaluate(program: TemporalProgram, facts: Iterable[Ground], domain: Domain) -> set[Ground]:
    """Return all atoms that follow from facts, for a stratified program."""
    model = set(facts) | {ground_atom(rule.head, {}) for rule in program.facts if rule.head}
    strata = _find_strata(program)
    for level in range(max(strata.values(), default=0) + 1):
        rules = [rule for rule in program.rules if rule.head and strata[rule.head.predicate] == level]
        while True:
            new = {atom for rule in rules for atom in _fire(rule, model, domain)} - model
            if not new:
                break
            model |= new
    return model


def _fire(rule: TemporalRule, model: set[Ground], domain: Domain) -> Iterator[Ground]:
    assert rule.head is not None
    literals = [part for part in rule.body if isinstance(part, TemporalLiteral)]
    for binding in _joins([part.atom for part in literals if not part.negated], {}, model):
        if not all(comparison_holds(part, binding) for part in rule.body if isinstance(part, Comparison)):
            continue
        if any(ground_atom(part.atom, binding) in model for part in literals if part.negated):
            continue
        for rest in bindings_of([rule.head], domain, binding):
            head = ground_atom(rule.head, {**binding, **rest})
            if head[2] in domain.times:
                yield head


def _joins(atoms: list[TemporalAtom], binding: dict[str, Any], model: set[Ground]) -> Iterator[dict[str, Any]]:
    if not atoms:
        yield binding
        return
    for fact in model:
        found = match_atom(atoms[0], fact, binding)
        if found is not None:
            yield from _joins(atoms[1:], found, model)


def _find_strata(program: TemporalProgram) -> dict[str, int]:
    """Return a stratum for every predicate, above those that it depends on negatively."""
    strata = {rule.head.predicate: 0 for rule in program.rules if rule.head}
    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            for part in rule.body:
                if rule.head and isinstance(part, TemporalLiteral) and part.atom.predicate in strata:
                    least = strata[part.atom.predicate] + part.negated
                    if strata[rule.head.predicate] < least:
                        strata[rule.head.predicate] = least
                        changed = True
    return strata

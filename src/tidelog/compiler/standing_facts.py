"""Decide which facts of a stream stand: those that hold until something that they depend on changes.

A fact that a rule with negation derives goes on holding while nothing changes: `Down(X) :- Node(X), not Alive(X).` If
such facts were extended at every step, a step would cost as much as there are of them. A fact that stands is stored
with an end that says "up to where rules have been evaluated", and costs nothing until an atom of a body that it follows
from changes. For that, all rules of its predicate, and all rules that read it, are evaluated by the agenda
(`engine.agenda`), like rules with negation: only where something changes, and for the times that have become complete.

A rule with a single literal pushes: an interval that has ended gives all that follows from it at once, so that it need
not be kept for the operator.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from tidelog.compiler.bound_memory import compute_bounds
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatRule, Op
from tidelog.language.hidden_predicates import is_violation
from tidelog.timeline.grid import LIMIT


def choose_standing(compiled: CompiledProgram) -> CompiledProgram:
    """Pass, for streams only: choose the predicates whose facts stand, and the rules that the agenda evaluates."""
    if compiled.target.engine != "stream" or not compiled.target.standing:
        return compiled
    # Recursions through time go forward in slices, and aggregations take each piece of a row once.
    if not compiled.bounds.waits or compiled.slice or compiled.numeric:
        return compiled
    candidates = {rule.predicate for rule in compiled.rules}
    while True:
        standing, agenda = _close(compiled, frozenset(candidates))
        bounds = compute_bounds(compiled, agenda, standing)
        if not standing or bounds.delay[compiled.query] != compiled.bounds.delay[compiled.query]:
            return compiled
        waits: dict[str, set[int]] = {}
        for place in agenda:
            waits.setdefault(compiled.rules[place].predicate, set()).add(bounds.waits[place])
        uneven = {name for name in standing if len(waits[name]) > 1}
        if not uneven:
            return replace(compiled, bounds=bounds)
        candidates -= uneven


def _close(compiled: CompiledProgram, candidates: frozenset[str]) -> tuple[frozenset[str], frozenset[int]]:
    """Return the predicates among the candidates that can stand, and the positions of the rules for the agenda."""
    rules, standing = compiled.rules, candidates
    negations = frozenset(compiled.bounds.waits)
    while True:
        # Start from the negations, and go up: heads that stand because everything below them does.
        agenda, grown = negations, frozenset[str]()
        while True:
            heads = {rules[place].predicate for place in agenda} & standing
            agenda |= {
                place
                for place, rule in enumerate(rules)
                if rule.predicate in heads or any(b.predicate in heads for b in rule.body)
            }
            if heads == grown:
                break
            grown = frozenset(heads)
        wrong = {name for name in grown if not _can_stand(compiled, name, grown)}
        if not wrong:
            return grown, agenda
        standing = grown - wrong


def _can_stand(compiled: CompiledProgram, name: str, standing: AbstractSet[str]) -> bool:
    """Return whether facts of a predicate can stand, if those of `standing` do."""
    if name in compiled.recursive or is_violation(name):
        return False
    for place, rule in enumerate(compiled.rules):
        negation = place in compiled.bounds.waits
        if rule.predicate == name:
            # Its facts end where its bodies end.
            positive = any(not literal.negated for literal in rule.body)
            if rule.range != (0, 0) or not positive or not (negation or _is_for_agenda(compiled, rule, standing)):
                return False
        reads = any(literal.predicate == name for literal in rule.body)
        if reads and not (negation or _is_for_agenda(compiled, rule, standing)):
            return False
    return True


def _is_for_agenda(compiled: CompiledProgram, rule: FlatRule, standing: AbstractSet[str]) -> bool:
    """Return whether a rule without negation may be evaluated by the agenda instead of by new facts."""
    if rule.predicate in compiled.recursive or any(literal.op in (Op.SINCE, Op.UNTIL) for literal in rule.body):
        return False
    if len(rule.body) == 1:
        # What it reads is not kept for longer than before. A head that does not stand would need that.
        literal = rule.body[0]
        return literal.range == (0, 0) or (rule.predicate in standing and literal.range[0] > -LIMIT)
    # Facts that are looked back at for ever would be kept for ever.
    return all(abs(end) < LIMIT for literal in rule.body for end in literal.range)

"""Check proofs by the definitions, with the oracle's semantics; no code is shared with the search for proofs.

A step by a rule is correct if the rule, applied only to the facts that the step names, derives its fact: positive
conditions see those facts alone, negated ones see the whole model. A proof is correct if all its steps are, every fact
that it depends on has a step, and no fact depends on itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from formula_parts import atoms_of, computes, denominator_of, formulas_of, groups_of, times_of, variables_of
from judge import MOST_CELLS, Claim, claimed_truth
from numeric_proofs import NumericChecker, is_numeric
from oracle import (
    FRESH,
    Binding,
    Evaluator,
    Instance,
    Key,
    Truth,
    below_boxes,
    compare,
    domain_of,
    ground_atom,
    tables_of,
)
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Atom, Comparison, Condition, Fact, Literal, Rule, Unary, Value, Variable
from tidelog.proofs.proof_step import ProofStep
from tidelog.proofs.proof_tree import Proof
from tidelog.proofs.why_not import BlockedRule, WhyNot
from tidelog.timeline.interval import INF, Interval, Time
from truth_cells import Scope, Vector, disjunction, negation


class Checker:
    """Checks proofs against rules, data and the model as the engine claims it; other tests judge that claim."""

    def __init__(self, rules: Sequence[Rule], facts: Sequence[Fact], claim: Claim, *, integer: bool) -> None:
        self.rules = rules
        self.facts = facts
        heads = {fact.predicate for fact in (*claim.facts, *(repeat.fact for repeat in claim.repeats))}
        self.claim = Claim((*claim.facts, *(f for f in facts if f.predicate not in heads)), claim.repeats)
        self.integer = integer
        #: A condition over an infinite range may need infinitely many facts, which no proof can name.
        self.endless = any(t == INF for rule in rules for formula in formulas_of(rule) for t in times_of(formula))
        self.numbers = NumericChecker(rules, facts, self.claim, integer=integer)
        #: Facts whose steps were checked before; proofs share many.
        self.checked: set[Fact] = set()

    def complaints(self, proof: Proof) -> Iterator[str]:
        """Yield what is wrong with a proof."""
        if proof.fact not in proof.steps:
            yield "the fact itself has no step"
        for fact, step in proof.steps.items():
            if step.fact != fact:
                yield f"the step of {format_fact(fact)} is about {format_fact(step.fact)}"
            for premise in step.premises:
                if premise not in proof.steps:
                    yield f"{format_fact(premise)} has no step"
            if fact not in self.checked:
                self.checked.add(fact)
                for complaint in self.step_complaints(step):
                    yield f"{format_fact(fact)}: {complaint}"
        yield from find_cycles(proof)

    def step_complaints(self, step: ProofStep) -> Iterator[str]:
        match step.kind:
            case "given":
                if not self.covers(self.facts, step.fact):
                    yield "is not given"
            case "pieces":
                if not self.covers(step.parts, step.fact):
                    yield f"is not covered by {', '.join(map(format_fact, step.parts))}"
            case "derived":
                yield from self.derivation_complaints(step)
            case "repeats":
                yield from self.repetition_complaints(step)
            case "continues":
                if not self.endless:
                    yield "is not shown step by step"
            case _:
                yield f"has a step of the kind {step.kind}"

    def derivation_complaints(self, step: ProofStep) -> Iterator[str]:
        assert step.rule is not None
        if step.rule not in self.rules:
            yield f"{step.rule} is no rule of the program"
        if is_numeric(step.rule):
            yield from self.numbers.step_complaints(step)
            return
        binding = {name: FRESH for formula in formulas_of(step.rule) for name in variables_of(formula)}
        binding |= step.binding
        if not all(compare(c, binding) for c in step.rule.body if isinstance(c, Comparison)):
            yield "a comparison fails"
        head = step.rule.head
        while isinstance(head, Unary):
            head = head.arg
        assert isinstance(head, Atom)
        args = tuple(binding[t.name] if hasattr(t, "name") else t.value for t in head.args)
        if (head.predicate, args) != (step.fact.predicate, step.fact.args):
            yield "the head is another atom"
        premises = step.premises
        scope = self.scope([step.fact, *premises], step.rule)
        if len(scope.cells) > MOST_CELLS:
            return
        alone, derived = tables_of(premises, scope), scope.constant(False)
        for local in local_bindings(step.rule, step.binding, premises):
            instance = Instance(step.rule, binding | local)
            model = self.truth(negated_atoms(instance), scope)
            body = instance.body(scope, alone.definite, model.possible, definite=True)
            derived = disjunction(derived, below_boxes(scope, step.rule.head, body, definite=True))
        wanted = scope.of_interval(step.fact.interval, definite=False)
        if any(want and not have for want, have in zip(wanted, derived, strict=True)):
            named = ", ".join(map(format_fact, premises))
            yield f"does not follow by {step.rule.text} with {step.binding} from {named}"

    def repetition_complaints(self, step: ProofStep) -> Iterator[str]:
        (near,) = step.parts
        if (near.predicate, near.args) != (step.fact.predicate, step.fact.args):
            yield "repeats another atom"
        shift = step.fact.interval.lo - near.interval.lo
        if step.fact.interval.lo == -INF:
            shift = step.fact.interval.hi - near.interval.hi
        if step.every is not None and Fraction(shift) % step.every != 0:
            yield f"{shift} is no multiple of {step.every}"
        if not self.holds(near) or not self.holds(step.fact):
            yield "does not hold"

    def holds(self, fact: Fact) -> bool:
        scope = self.scope([fact])
        return surely_holds(scope, fact, self.truth({(fact.predicate, fact.args)}, scope))

    def truth(self, keys: set[Key], scope: Scope) -> Truth:
        """Return when some atoms hold according to the claim."""
        facts = tuple(fact for fact in self.claim.facts if (fact.predicate, fact.args) in keys)
        repeats = tuple(r for r in self.claim.repeats if (r.fact.predicate, r.fact.args) in keys)
        return claimed_truth(Claim(facts, repeats), scope)

    def vectors(self, literal: Literal, binding: Mapping[str, Value], scope: Scope) -> Iterator[Vector]:
        """Yield where a literal holds, for every way to bind the variables that a binding leaves open."""
        names = [name for name in dict.fromkeys(variables_of(literal.formula)) if name not in binding]
        for values in itertools.product(domain_of(self.rules, self.claim.facts), repeat=len(names)):
            whole = {**binding, **dict(zip(names, values, strict=True))}
            keys = {ground_atom(atom, whole) for atom in atoms_of(literal.formula)}
            table = self.truth(keys, scope)
            held = Evaluator(scope, table.definite, definite=True)(literal.formula, whole)
            yield negation(held) if literal.negated else held

    def covers(self, facts: Iterable[Fact], fact: Fact) -> bool:
        """Tell whether facts of the same atom cover a fact."""
        scope = Scope(
            0, 0, 1 if self.integer else denominator_of(self.rules, [*self.facts, fact, *facts]), self.integer
        )
        own = [other for other in facts if (other.predicate, other.args) == (fact.predicate, fact.args)]
        at, last = cell_range(scope, fact.interval)
        for first, until in sorted(cell_range(scope, other.interval) for other in own):
            if first <= at:
                at = max(at, until + 1)
        return at > last or at == INF

    def scope(self, facts: Sequence[Fact], rule: Rule | None = None) -> Scope:
        """Return a window around facts that extends as far as a rule sees from them."""
        ends = [t for fact in facts for t in (fact.interval.lo, fact.interval.hi) if abs(t) != INF] or [Fraction(0)]
        ranges = [t for f in formulas_of(rule) for t in times_of(f) if t != INF] if rule else []
        reach = sum(Fraction(t) for t in ranges) + 1
        denominator = 1 if self.integer else denominator_of(self.rules, [*self.facts, *facts])
        lo, hi = math.floor(min(ends) - reach), math.ceil(max(ends) + reach)
        return Scope.between(lo, hi, denominator, integer=self.integer)


def cell_range(scope: Scope, interval: Interval) -> tuple[Time, Time]:
    """Return the first and the last cell of an interval."""
    if scope.integer:
        lo, hi = interval.lo, interval.hi
        first = lo if lo == -INF else Fraction(math.ceil(lo) + (lo % 1 == 0 and not interval.lo_closed))
        return first, hi if hi == INF else Fraction(math.floor(hi) - (hi % 1 == 0 and not interval.hi_closed))
    cells = 2 * scope.denominator
    return interval.lo * cells + (not interval.lo_closed), interval.hi * cells - (not interval.hi_closed)


def local_bindings(rule: Rule, binding: Mapping[str, Value], facts: Iterable[Fact]) -> Iterator[Binding]:
    """Yield the ways to bind variables that only a group mentions: a step names none, for some values it must hold."""
    groups = [group for formula in formulas_of(rule) for group in groups_of(formula)]
    hidden = {name for group in groups for name in variables_of(group)} - {
        term.name for group in groups for term in group.args if isinstance(term, Variable)
    }
    names = sorted(hidden - binding.keys())
    values = sorted({value for fact in facts for value in fact.args}, key=str)
    for chosen in itertools.product(values, repeat=len(names)):
        yield dict(zip(names, chosen, strict=True))


def negated_atoms(instance: Instance) -> set[Key]:
    """Return the atoms under a negation."""
    denied = [literal for literal in instance.rule.body if isinstance(literal, Literal) and literal.negated]
    return {ground_atom(atom, instance.binding) for literal in denied for atom in atoms_of(literal.formula)}


def surely_holds(scope: Scope, fact: Fact, truth: Truth) -> bool:
    """Tell whether a fact surely holds throughout its interval."""
    wanted = scope.of_interval(fact.interval, definite=False)
    have = truth.definite.get((fact.predicate, fact.args), scope.constant(False))
    return all(not want or has for want, has in zip(wanted, have, strict=True))


def find_cycles(proof: Proof) -> Iterator[str]:
    """Yield a complaint where a fact depends on itself."""
    done: set[Fact] = set()
    for root in proof.steps:
        path: dict[Fact, Iterator[Fact]] = {}
        waiting = [root] if root not in done else []
        while waiting:
            fact = waiting[-1]
            if fact not in path:
                path[fact] = iter(proof.steps[fact].premises if fact in proof.steps else ())
            premise = next(path[fact], None)
            if premise is None:
                done.add(waiting.pop())
                del path[fact]
            elif premise in path:
                yield f"{format_fact(premise)} depends on itself"
                return
            elif premise not in done:
                waiting.append(premise)


# Why not


def why_not_complaints(checker: Checker, found: WhyNot) -> Iterator[str]:
    """Yield what is wrong with the reasons why a fact does not hold."""
    scope = checker.scope([found.fact])
    truth = checker.truth({(found.fact.predicate, found.fact.args)}, scope)
    if any(cell_values(scope, truth.possible.get((found.fact.predicate, found.fact.args)), [found.fact.interval])):
        yield f"{format_fact(found.fact)} may hold"
    for blocked in found.blocked:
        for complaint in blocked_complaints(checker, blocked):
            yield f"{format_fact(found.fact)}: {complaint}"
        if blocked.because is not None:
            yield from why_not_complaints(checker, blocked.because)


def blocked_complaints(checker: Checker, blocked: BlockedRule) -> Iterator[str]:
    """Check that a condition fails where it is said to fail, and holds where it is said to hold."""
    literal = blocked.failing
    if (
        isinstance(literal, Condition)
        or computes(literal)
        or (isinstance(literal, Comparison) and is_numeric(blocked.rule))
    ):
        yield from checker.numbers.blocked_complaints(blocked)
        return
    if isinstance(literal, Comparison):
        if compare(literal, dict(blocked.binding)):
            yield f"{blocked.text} is true"
        return
    around = [Fact("", (), interval) for interval in (*blocked.when, *blocked.nearest)]
    scope = checker.scope(around, blocked.rule)
    if len(scope.cells) > MOST_CELLS or checker.endless:
        return
    fails = checker.vectors(literal, blocked.binding, scope)
    if any(any(cell_values(scope, vector, blocked.when)) for vector in fails):
        yield f"{blocked.text} does not fail"
    for interval in blocked.nearest:
        together = [
            any(cell) for cell in zip(*(cell_values(scope, vector, [interval]) for vector in fails), strict=True)
        ]
        if not all(together):
            yield f"{blocked.text} does not hold on {interval}"
    for text, binding in blocked.others:
        if not any(any(cell_values(scope, v, blocked.when)) for v in checker.vectors(literal, binding, scope)):
            yield f"{text} does not hold instead"


def cell_values(scope: Scope, vector: bytes | None, intervals: Iterable[Interval]) -> list[int]:
    """Return the values of a vector at the cells of some intervals."""
    if vector is None:
        return []
    wanted = [scope.of_interval(interval, definite=False) for interval in intervals]
    return [vector[i] for i in range(1, len(vector) - 1) if any(w[i] for w in wanted)]

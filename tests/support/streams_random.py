"""Random programs as streams: what is judged, and how a failure is shown."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import tidelog as tl
from examine import parse_case
from formula_parts import formulas_of, head_atom, head_predicates, times_of
from strategies import Case
from streams import Maker, Plan, complaints, oracle_complaints, run, set_up
from tidelog.compiler.compiled_program import Memory
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Atom, Binary, Fact, Formula, Literal, Rule, Unary, Variable
from tidelog.timeline.interval import INF, Interval


def examine_stream(maker: Maker, case: Case, plan: Plan) -> Iterator[str]:
    """What is wrong with a program over a stream; the query is one of its heads."""
    given = parse_case(case)
    heads = sorted(head_predicates(case.rules))
    if not heads:
        return
    query = random.Random(plan.seed).choice(heads)
    setup = set_up(given.program, query, case.facts, case.features.timeline)
    found = False
    for found_wrong in complaints(maker, setup, plan):
        found = True
        yield f"query {query}: {found_wrong}"
    if found or plan.seed % 4 or setup.look_ahead.look_ahead.distance == INF:
        return
    try:
        done = run(maker, setup, Plan(beyond=Fraction(1)))
    except tl.TidelogError:
        return
    if not done.inconsistent:
        for wrong in oracle_complaints(case.rules, setup, done.answers, setup.last + 1):
            yield f"query {query}, the oracle: {wrong}"


def describe(found: str, case: Case, plan: Plan) -> str:
    rules = str(tl.Program(case.rules, case.features.timeline))
    facts = "\n".join(map(format_fact, case.facts))
    return f"% {found}\n% {plan}\n--- rules\n{rules}--- facts\n{facts}\n% timeline {case.features.timeline}"


# What is held

#: The data of a case come again every so often, so that what is held must come to a level.
PERIOD, ROUNDS, SETTLED = 12, 16, 8


def memory_complaints(maker: Maker, case: Case, seed: int, memory: Memory | None) -> Iterator[str]:
    """Whether more is held than rules can look back at, and whether it grows."""
    program = parse_case(case).program
    heads = sorted(head_predicates(case.rules))
    if not heads:
        return
    facts = tuple(moved(fact, PERIOD * n) for n in range(ROUNDS) for fact in case.facts)
    setup = set_up(program, random.Random(seed).choice(heads), facts, case.features.timeline)
    done = run(maker, setup, Plan(seed, bulk=bool(seed % 2), step=Fraction(1) if seed % 3 else None, memory=memory))
    if done.inconsistent:
        return
    reach = sum(
        (Fraction(t) for rule in case.rules for f in formulas_of(rule) for t in times_of(f) if t != INF), Fraction(1)
    )
    visible = [*facts, *subformulas_held(case, facts)]
    for t, held, history in done.held:
        near = sum(fact.interval.hi >= t - reach and fact.interval.lo <= t + reach for fact in visible)
        if held > near:
            yield f"{held} facts are held at {t}, but only {near} are within {reach}"
            return
        if history > len({(fact.predicate, fact.args) for fact in visible}):
            yield f"the history holds {history} atoms at {t}"
            return
    late = [held for t, held, _ in done.held if t >= PERIOD * (ROUNDS - 4)]
    settled = [held for t, held, _ in done.held if PERIOD * (ROUNDS - 4 - SETTLED) <= t < PERIOD * (ROUNDS - 4)]
    # Moments are drawn, so that the highest of a few periods may be missed.
    if late and max(late) > 1.5 * max(settled) + 3:
        yield f"what is held grows from {max(settled)} to {max(late)}"


def moved(fact: Fact, by: int) -> Fact:
    held = fact.interval
    return Fact(fact.predicate, fact.args, Interval(held.lo + by, held.hi + by, held.lo_closed, held.hi_closed))


def subformulas_held(case: Case, facts: tuple[Fact, ...]) -> list[Fact]:
    """When each body, each literal and each subformula holds, and each head: all that an evaluation could store."""
    rules = list(case.rules)
    names = []
    for number, rule in enumerate(case.rules):
        parts: list[Literal] = []
        for literal in rule.body:
            if isinstance(literal, Literal):
                parts += [Literal(formula) for formula in inside(literal.formula)]
        for place, part in enumerate(parts):
            names.append(f"Part{number}x{place}")
            args = tuple(dict.fromkeys(bound_terms(part.formula)))
            rules.append(Rule(Atom(names[-1], args), (part,)))
        names.append(f"Body{number}")
        head = head_atom(rule.head)
        rules.append(Rule(Atom(names[-1], tuple(dict.fromkeys(bound_terms(head)))), rule.body))
    program = tl.Program(tuple(rules), case.features.timeline)
    end = PERIOD * (ROUNDS + 1)
    asked = [*names, *head_predicates(case.rules)]
    return list(tl.materialise(program, tl.Dataset.from_facts(facts), query=asked, between=(-INF, end)))


def inside(formula: Formula) -> Iterator[Formula]:
    yield formula
    match formula:
        case Unary(_, _, arg):
            yield from inside(arg)
        case Binary(_, _, left, right):
            yield from inside(left)
            yield from inside(right)


def bound_terms(formula: Formula) -> Iterator[Variable]:
    """The variables that a rule with this formula as its body may mention in its head, anonymous ones too."""
    match formula:
        case Atom(_, args):
            yield from (term for term in args if isinstance(term, Variable))
        case Unary(_, _, arg):
            yield from bound_terms(arg)
        case Binary(_, _, _, right):
            yield from bound_terms(right)

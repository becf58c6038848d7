"""Build the program that one bucket of a stage evaluates, and decode its output.

A stage with one output predicate is queried for that predicate. Otherwise it is queried for `#out`, which no user can
write: facts of P/2 come out as `#out("P/2", a, b)`, padded for predicates with fewer arguments than the widest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import count

from tidelog.analysis.distribution import Stage
from tidelog.analysis.rule_locality import Guard, RuleShape, alias_name, describe_rule, find_guard, needs_guard
from tidelog.analysis.split_search import collect_arities
from tidelog.language.aggregate_checks import map_aggregates
from tidelog.language.hidden_predicates import BUCKET, HERE, STAGE_OUTPUT, is_hidden
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    Binary,
    BodyLiteral,
    Bottom,
    Condition,
    Constant,
    Fact,
    Formula,
    Literal,
    Rule,
    Term,
    Unary,
    Value,
    Variable,
)
from tidelog.timeline.interval import Interval

_PADDING = Constant("")


def choose_stage_query(stage: Stage) -> str:
    """Return the predicate to query the program of a stage for."""
    if len(stage.outputs) == 1 and not is_hidden(stage.outputs[0]):
        return stage.outputs[0]
    return STAGE_OUTPUT


def build_stage_program(program: Program, stage: Stage, mine: Callable[[Value], bool] | None = None) -> Program:
    """Build the program of a stage: its rules, and those facts of the program itself that belong to the bucket.

    `program` is that of the distribution, and `mine` returns whether a constant belongs to the bucket; a stage with one
    bucket needs none. Rules keep their text and place. The caller chooses the facts from outside with
    `belongs_to_bucket`.
    """
    mine = mine or (lambda _: True)
    rules: list[Rule] = []
    constants: set[Value] = set()
    labels: set[Fraction] = set()
    for number in stage.rules:
        rule = program.rules[number]
        shape = describe_rule(number, rule)
        guard = _guard_of(stage, shape)
        if guard is not None and guard.atom is not None:
            rule = _rename_atom(rule, guard.atom, alias_name(guard.atom.predicate, guard.position))
        elif guard is not None and guard.constant is not None:
            rule = _add_literal(rule, Literal(Atom(HERE, (guard.constant,))), shape.part)
            constants.add(guard.constant.value)
        if shape.part and shape.head is not None:
            hashed = stage.key[shape.head.predicate] is not None
            labels.add(_find_label(mine) if hashed else Fraction(0))
        rules.append(rule)
    facts = [
        replace(fact, predicate=name)
        for name in stage.inputs
        for fact in program.facts
        if fact.predicate == stage.aliases.get(name, name) and belongs_to_bucket(stage, name, fact.args, mine)
    ]
    facts += [Fact(HERE, (value,), Interval.always()) for value in sorted(constants, key=str) if mine(value)]
    facts += [Fact(BUCKET, (label,), Interval.always()) for label in labels]
    arities = collect_arities(program)
    if choose_stage_query(stage) == STAGE_OUTPUT:
        rules += _output_rules(stage, arities)
    elif choose_stage_query(stage) in arities:
        # Makes the predicate known if no rule mentions it and no fact has arrived.
        padding = (_PADDING,) * arities[choose_stage_query(stage)]
        rules.append(Rule(Atom(choose_stage_query(stage), padding), (Literal(Bottom()),)))
    return replace(program, rules=tuple(rules), facts=tuple(facts))


def _guard_of(stage: Stage, shape: RuleShape) -> Guard | None:
    return find_guard(shape, stage.key, stage.derived) if needs_guard(shape, stage.key) else None


def _rename_atom(rule: Rule, atom: Atom, name: str) -> Rule:
    """Return the rule with another predicate for an atom that its body needs."""

    def rename(formula: Formula) -> Formula:
        match formula:
            case Atom():
                return replace(formula, predicate=name) if formula == atom else formula
            case Unary():
                return replace(formula, arg=rename(formula.arg))
            case Binary():
                return replace(formula, right=rename(formula.right))
        return formula

    def rename_in_body(body: tuple[BodyLiteral, ...]) -> tuple[BodyLiteral, ...]:
        return tuple(map(rename_in_literal, body))

    def rename_in_literal(literal: BodyLiteral) -> BodyLiteral:
        match literal:
            case Literal(formula, False):
                return replace(literal, formula=rename(formula))
            case Condition(_, left, right):
                return replace(literal, left=map_aggregates(left, in_braces), right=map_aggregates(right, in_braces))
        return literal

    def in_braces(aggregate: Aggregate) -> Aggregate:
        return replace(aggregate, body=rename_in_body(aggregate.body))

    return replace(rule, body=rename_in_body(rule.body))


def _add_literal(rule: Rule, literal: Literal, inside: bool) -> Rule:
    """Return the rule with one more literal in its body, or inside its braces."""
    if not inside:
        return replace(rule, body=(literal, *rule.body))

    def in_braces(aggregate: Aggregate) -> Aggregate:
        return replace(aggregate, body=(*aggregate.body, literal))

    body = tuple(
        replace(part, left=map_aggregates(part.left, in_braces), right=map_aggregates(part.right, in_braces))
        if isinstance(part, Condition)
        else part
        for part in rule.body
    )
    return replace(rule, body=body)


def _find_label(mine: Callable[[Value], bool]) -> Fraction:
    """Return the label of a bucket: the least natural number that belongs to it."""
    return next(label for label in map(Fraction, count()) if mine(label))


def belongs_to_bucket(stage: Stage, predicate: str, args: tuple[Value, ...], mine: Callable[[Value], bool]) -> bool:
    """Return whether a fact that the stage receives goes to the bucket that `mine` describes."""
    position = stage.key[predicate]
    return position is None or mine(args[position])


def decode_output(fact: Fact) -> Fact:
    """Convert an output fact of a stage to a fact of the program's own predicates."""
    if fact.predicate != STAGE_OUTPUT:
        return fact
    tag, *args = fact.args
    assert isinstance(tag, str)
    predicate, _, arity = tag.rpartition("/")
    return Fact(predicate, tuple(args[: int(arity)]), fact.interval)


def _output_rules(stage: Stage, arities: dict[str, int]) -> list[Rule]:
    widest = max((arities[name] for name in stage.outputs), default=0)
    rules = [Rule(Atom(STAGE_OUTPUT, (_PADDING,) * (widest + 1)), (Literal(Bottom()),))]
    for name in stage.outputs:
        args: tuple[Term, ...] = tuple(Variable(f"X{i}") for i in range(arities[name]))
        head = (Constant(f"{name}/{arities[name]}"), *args, *(_PADDING,) * (widest - len(args)))
        rules.append(Rule(Atom(STAGE_OUTPUT, head), (Literal(Atom(name, args)),)))
    return rules

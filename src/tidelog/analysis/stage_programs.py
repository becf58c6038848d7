"""The program of one stage, for an engine of one bucket, and what it gives back.

A stage that gives one predicate is asked for that one. Otherwise it is asked for `#out`, which no user can write: facts
of P/2 come out as `#out("P/2", a, b)`, with padding for predicates of fewer arguments than the widest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidelog.analysis.distribution import Stage
from tidelog.analysis.locality import Guard, Shape, alias, guard, needs_guard, shape
from tidelog.analysis.splitting import arities_of
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Atom,
    Binary,
    Bottom,
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

#: The predicate that carries all that a stage gives.
OUT = "#out"
#: Holds of a constant in its own bucket only: the guard of rules whose key is a constant.
HERE = "$here"

_PADDING = Constant("")


def stage_query(stage: Stage) -> str:
    """The predicate to ask the program of a stage for."""
    if len(stage.gives) == 1 and not stage.gives[0].startswith("$"):
        return stage.gives[0]
    return OUT


def stage_program(program: Program, stage: Stage, mine: Callable[[Value], bool] | None = None) -> Program:
    """The rules of a stage, with those facts of the program itself that belong to the bucket.

    `mine` says whether a constant belongs to the bucket; a stage of one bucket needs none. Rules keep their text and
    place. Facts from outside are for the caller to choose: `belongs` says which go to the bucket.
    """
    mine = mine or (lambda _: True)
    rules: list[Rule] = []
    constants: set[Value] = set()
    for number in stage.rules:
        rule = program.rules[number]
        found = _guard(stage, shape(number, rule))
        if found is not None and found.atom is not None:
            rule = _reading(rule, found.atom, alias(found.atom.predicate, found.position))
        elif found is not None and found.constant is not None:
            rule = replace(rule, body=(Literal(Atom(HERE, (found.constant,))), *rule.body))
            constants.add(found.constant.value)
        rules.append(rule)
    facts = [
        replace(fact, predicate=name)
        for name in stage.inputs
        for fact in program.facts
        if fact.predicate == stage.aliases.get(name, name) and belongs(stage, name, fact.args, mine)
    ]
    facts += [Fact(HERE, (value,), Interval.always()) for value in sorted(constants, key=str) if mine(value)]
    arities = arities_of(program)
    if stage_query(stage) == OUT:
        rules += _out(stage, arities)
    elif stage_query(stage) in arities:
        # So that the predicate is known where no rule speaks of it and no fact has come.
        nothing = (_PADDING,) * arities[stage_query(stage)]
        rules.append(Rule(Atom(stage_query(stage), nothing), (Literal(Bottom()),)))
    return replace(program, rules=tuple(rules), facts=tuple(facts))


def _guard(stage: Stage, s: Shape) -> Guard | None:
    return guard(s, stage.key, stage.derives) if needs_guard(s, stage.key) else None


def _reading(rule: Rule, atom: Atom, name: str) -> Rule:
    """The rule with a needed atom under another name."""

    def renamed(formula: Formula) -> Formula:
        match formula:
            case Atom():
                return replace(formula, predicate=name) if formula == atom else formula
            case Unary():
                return replace(formula, arg=renamed(formula.arg))
            case Binary():
                return replace(formula, right=renamed(formula.right))
        return formula

    body = tuple(
        replace(part, formula=renamed(part.formula)) if isinstance(part, Literal) and not part.negated else part
        for part in rule.body
    )
    return replace(rule, body=body)


def belongs(stage: Stage, predicate: str, args: tuple[Value, ...], mine: Callable[[Value], bool]) -> bool:
    """Whether a fact that the stage receives goes to the bucket that `mine` describes."""
    position = stage.key[predicate]
    return position is None or mine(args[position])


def given(fact: Fact) -> Fact:
    """A fact that a stage gives, as the program speaks of it."""
    if fact.predicate != OUT:
        return fact
    tag, *args = fact.args
    assert isinstance(tag, str)
    predicate, _, arity = tag.rpartition("/")
    return Fact(predicate, tuple(args[: int(arity)]), fact.interval)


def _out(stage: Stage, arities: dict[str, int]) -> list[Rule]:
    widest = max((arities[name] for name in stage.gives), default=0)
    rules = [Rule(Atom(OUT, (_PADDING,) * (widest + 1)), (Literal(Bottom()),))]
    for name in stage.gives:
        args: tuple[Term, ...] = tuple(Variable(f"X{i}") for i in range(arities[name]))
        head = (Constant(f"{name}/{arities[name]}"), *args, *(_PADDING,) * (widest - len(args)))
        rules.append(Rule(Atom(OUT, head), (Literal(Atom(name, args)),)))
    return rules

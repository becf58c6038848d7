"""How the engine goes about a program, in words: `tidelog check --plan`.

A program is run part by part. A part lists its rules, each as a plan: one look-up a line, in the order in which they
are joined. In a recursive part a rule has one more plan for each literal whose new facts set it off again.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from tidelog.analysis.components import head_atom, strata
from tidelog.analysis.flatten import ALWAYS, VIOLATION, FlatLiteral, FlatRule, Op, flatten
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.engine import machine
from tidelog.engine.fixpoint import Part, parts, relevant
from tidelog.engine.plan import Plan, Step, planned
from tidelog.language.facts import format_value
from tidelog.language.program import Program
from tidelog.language.syntax import Term, Variable
from tidelog.reasoning import ends_of, timeline_of
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid, negated

_WORDS = {
    Op.DIAMOND: ("Diamondminus", "Diamondplus"),
    Op.BOX: ("Boxminus", "Boxplus"),
    Op.SINCE: ("Since", "Since"),
    Op.UNTIL: ("Until", "Until"),
}


def plans(program: Program, query: str | None = None, *, timeline: str | None = None) -> str:
    """The plans of a program, or of the part of it that `query` needs, as text.

    >>> print(plans(Program.parse("Boxplus[0,2] A(X) :- B(X), not Diamondminus[1,1] C(X).")))
    part 1: A
      Boxplus[0,2] A(X)
        each B(X)
        without Diamondminus[1,1] C(X)
    """
    if query is not None:
        require_known([query], known_predicates(program))
    strata(program.rules)
    dense = timeline_of(program, timeline) == "rational"
    grid = Grid(dense, lcm(1, *(Fraction(end).denominator for end in ends_of(program))))
    heads = (head_atom(rule) for rule in program.rules)
    wanted = [query] if query is not None else [head.predicate for head in heads if head]
    return _Outline(program, relevant(flatten(program.rules, grid), wanted), grid).text()


class _Outline:
    def __init__(self, program: Program, rules: tuple[FlatRule, ...], grid: Grid) -> None:
        self.program, self.rules, self.grid = program, rules, grid
        self.by_head: dict[str, list[FlatRule]] = {}
        for rule in rules:
            self.by_head.setdefault(rule.predicate, []).append(rule)

    def text(self) -> str:
        lines: list[str] = []
        for number, part in enumerate(parts(self.rules, self.grid), 1):
            rules = part.rules
            if not rules:
                continue
            names = ", ".join(dict.fromkeys(self._name(rule) for rule in rules))
            lines.append(f"part {number}: {names}" + (" (recursive)" if part.recursive else ""))
            for rule in rules:
                lines += [f"  {line}" for plan in _plans(rule, part) for line in self._plan(plan)]
        return "\n".join(lines)

    def _plan(self, plan: Plan) -> list[str]:
        rule = plan.rule
        word = self._ranged("Boxplus", "Boxminus", rule.range) + " " if rule.range != (0, 0) else ""
        return [word + self._head(rule), *plan.outline(self._step)]

    def _head(self, rule: FlatRule) -> str:
        return "Bottom" if rule.predicate.startswith(VIOLATION) else self._atom(rule.predicate, rule.args)

    def _name(self, rule: FlatRule) -> str:
        """A part's title for the predicate of a rule: its name or, of a hidden one, what it stands for."""
        if rule.predicate.startswith(VIOLATION):
            place = self.program.rules[rule.origin].place
            return f"the constraint in line {place.line}" if place else "a constraint"
        return self._head(rule) if rule.predicate.startswith("$") else rule.predicate

    def _step(self, step: Step) -> str:
        literal = step.literal
        if literal.op in (Op.SINCE, Op.UNTIL):
            side = "right" if step.kind == machine.RIGHT_OPERAND else "left"
            return f"{self._atom(literal.predicate, literal.args)} as the {side} side of {self._word(literal)}"
        return self._literal(literal)

    def _literal(self, literal: FlatLiteral) -> str:
        atom = self._atom(literal.predicate, literal.args)
        return atom if literal.op is Op.HOLDS else f"{self._word(literal)} {atom}"

    def _word(self, literal: FlatLiteral) -> str:
        if (literal.op, literal.range) == (Op.DIAMOND, (NEG_INF, POS_INF)):
            return "at any time"
        return self._ranged(*_WORDS[literal.op], literal.range)

    def _ranged(self, back: str, ahead: str, pair: tuple[int, int]) -> str:
        """The operator for a range of distances, of which negative ones go the other way."""
        word, shown = (ahead, negated(pair)) if pair[1] <= 0 and pair[0] < 0 else (back, pair)
        return word + self.grid.interval(*shown).bracketed()

    def _atom(self, predicate: str, args: tuple[Term, ...]) -> str:
        """An atom; a hidden predicate is shown as the subformula that it names."""
        if predicate == ALWAYS:
            return "Top"
        meaning = self._meaning(predicate, args) if predicate.startswith("$") else None
        shown = ",".join(t.name if isinstance(t, Variable) else format_value(t.value) for t in args)
        return meaning or predicate + (f"({shown})" if args else "")

    def _meaning(self, predicate: str, args: tuple[Term, ...]) -> str | None:
        for rule in self.by_head.get(predicate, ()):
            names = {old: new for old, new in zip(rule.args, args, strict=True) if isinstance(old, Variable)}
            body = [_renamed(literal, names) for literal in rule.body]
            if len(body) == 2 and body[1].op in (Op.SINCE, Op.UNTIL):
                right, left = (self._atom(literal.predicate, literal.args) for literal in body)
                return f"({left} {self._word(body[1])} {right})"
            if len(body) == 1 and len(self.by_head[predicate]) == 1 and rule.range == (0, 0):
                return self._literal(body[0])
        return None


def _plans(rule: FlatRule, part: Part) -> list[Plan]:
    inside = set(part.predicates)
    again = [i for i, b in enumerate(rule.body) if part.recursive and b.predicate in inside and not b.negated]
    return [planned(rule, driver, lambda name: 0) for driver in (None, *again)]


def _renamed(literal: FlatLiteral, names: dict[Variable, Term]) -> FlatLiteral:
    args = tuple(names.get(arg, arg) if isinstance(arg, Variable) else arg for arg in literal.args)
    return FlatLiteral(literal.predicate, args, literal.op, literal.range, literal.negated)

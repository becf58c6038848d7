"""Compiled rules and plans as text: `str(compiled)` and `tidelog check --plan`.

A program is run component by component. Each component lists its rules, each as a plan: one look-up per line, in join
order. A rule has a plan for its whole body, or one for each literal whose new facts drive it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.compiler import opcodes
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair
from tidelog.compiler.order_joins import Plan, PlanStep, format_flat_term
from tidelog.language.groups import collect_groups
from tidelog.language.hidden_predicates import ALWAYS, is_hidden, is_violation
from tidelog.language.printer import format_formula
from tidelog.language.substitution import substitute_formula
from tidelog.language.syntax import Term, Variable
from tidelog.timeline.grid import NEG_INF, POS_INF, negate

_WORDS = {
    Op.DIAMOND: ("Diamondminus", "Diamondplus"),
    Op.BOX: ("Boxminus", "Boxplus"),
    Op.SINCE: ("Since", "Since"),
    Op.UNTIL: ("Until", "Until"),
}


def format_rules(compiled: CompiledProgram) -> str:
    """Format the rules of a compiled program, one per line; hidden predicates keep their names."""
    return "\n".join(_PlanPrinter(compiled, unfold=False).format_rule(rule) for rule in compiled.rules)


def format_plans(compiled: CompiledProgram, plans: Iterable[Plan]) -> str:
    """Format the plans of a compiled program, by component and rule."""
    return _PlanPrinter(compiled, unfold=True).format_components(list(plans))


class _PlanPrinter:
    """Prints plans; with `unfold`, a hidden predicate appears as the subformula that it stands for."""

    def __init__(self, compiled: CompiledProgram, unfold: bool) -> None:
        self.compiled = compiled
        self.unfold = unfold
        self.groups = collect_groups(compiled.source.rules)
        self.by_head: dict[str, list[FlatRule]] = {}
        for rule in compiled.rules:
            self.by_head.setdefault(rule.predicate, []).append(rule)

    def format_components(self, plans: list[Plan]) -> str:
        lines: list[str] = []
        for number, part in enumerate(self.compiled.components, 1):
            if not part.rules:
                continue
            titles = ", ".join(dict.fromkeys(self._title(rule) for rule in part.rules))
            lines.append(f"part {number}: {titles}" + (" (recursive)" if part.recursive else ""))
            for rule in part.rules:
                own = (plan for plan in plans if plan.rule is rule)
                lines += [f"  {line}" for plan in own for line in self._plan_lines(plan)]
        return "\n".join(lines)

    def format_rule(self, rule: FlatRule) -> str:
        body = [("not " if b.negated else "") + self._literal(b) for b in rule.body]
        body += [f"{format_flat_term(c.left)} {c.op} {format_flat_term(c.right)}" for c in rule.comparisons]
        return f"{self._boxed_head(rule)} :- {', '.join(body)}." if body else f"{self._boxed_head(rule)}."

    def _plan_lines(self, plan: Plan) -> list[str]:
        return [self._boxed_head(plan.rule), *plan.outline(self._step)]

    def _boxed_head(self, rule: FlatRule) -> str:
        box = self._format_operator("Boxplus", "Boxminus", rule.range) + " " if rule.range != (0, 0) else ""
        return box + self._head(rule)

    def _head(self, rule: FlatRule) -> str:
        return "Bottom" if is_violation(rule.predicate) else self._atom(rule.predicate, rule.args)

    def _title(self, rule: FlatRule) -> str:
        """Return the name of a rule's predicate or, if it is hidden, what it stands for."""
        if is_violation(rule.predicate):
            place = self.compiled.source.rules[rule.origin].place
            return f"the constraint in line {place.line}" if place else "a constraint"
        return self._head(rule) if is_hidden(rule.predicate) else rule.predicate

    def _step(self, step: PlanStep) -> str:
        literal = step.literal
        if literal.op in (Op.SINCE, Op.UNTIL):
            side = "right" if step.kind == opcodes.RIGHT_OPERAND else "left"
            return f"{self._atom(literal.predicate, literal.args)} as the {side} side of {self._operator(literal)}"
        return self._literal(literal)

    def _literal(self, literal: FlatLiteral) -> str:
        atom = self._atom(literal.predicate, literal.args)
        return atom if literal.op is Op.HOLDS else f"{self._operator(literal)} {atom}"

    def _operator(self, literal: FlatLiteral) -> str:
        if (literal.op, literal.range) == (Op.DIAMOND, (NEG_INF, POS_INF)):
            return "at any time"
        return self._format_operator(*_WORDS[literal.op], literal.range)

    def _format_operator(self, back: str, ahead: str, pair: Pair) -> str:
        """Return the operator for a range of distances; negative distances look the other way."""
        word, shown = (ahead, negate(pair)) if pair[1] <= 0 and pair[0] < 0 else (back, pair)
        return word + self.compiled.grid.to_interval(*shown).with_brackets()

    def _atom(self, predicate: str, args: tuple[Term, ...]) -> str:
        if predicate == ALWAYS:
            return "Top"
        formula = self._subformula(predicate, args) if self.unfold and is_hidden(predicate) else None
        return formula or predicate + (f"({','.join(map(format_flat_term, args))})" if args else "")

    def _subformula(self, predicate: str, args: tuple[Term, ...]) -> str | None:
        """Return the subformula that a hidden predicate stands for, if it is a group or one rule defines it."""
        if predicate in self.groups:
            group = self.groups[predicate]
            by = {old: new for old, new in zip(group.args, args, strict=True) if isinstance(old, Variable)}
            return format_formula(substitute_formula(group, by))
        for rule in self.by_head.get(predicate, ()):
            names = {old: new for old, new in zip(rule.args, args, strict=True) if isinstance(old, Variable)}
            body = [_rename(literal, names) for literal in rule.body]
            if len(body) == 2 and body[1].op in (Op.SINCE, Op.UNTIL):
                right, left = (self._atom(literal.predicate, literal.args) for literal in body)
                return f"({left} {self._operator(body[1])} {right})"
            if len(body) == 1 and len(self.by_head[predicate]) == 1 and rule.range == (0, 0):
                return self._literal(body[0])
        return None


def _rename(literal: FlatLiteral, names: dict[Variable, Term]) -> FlatLiteral:
    args = tuple(names.get(arg, arg) if isinstance(arg, Variable) else arg for arg in literal.args)
    return FlatLiteral(literal.predicate, args, literal.op, literal.range, literal.negated)

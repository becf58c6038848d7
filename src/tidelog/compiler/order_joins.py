"""Join orders: in which order the literals of a rule's body are looked up.

A plan begins with a driver: a literal whose new facts arrive, an atom that is given, or nothing, in which case the
first step lists all facts of its literal. Each further step looks up one literal by the arguments that are bound by
then: by the atom itself where all are bound, by an index otherwise. Comparisons and negations come at the first place
where their variables are bound. `str` of a plan prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tidelog.compiler import opcodes
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair, variables_of
from tidelog.language.fact_text import format_value
from tidelog.language.syntax import Comparison, Constant, Term, Variable

#: How many facts a predicate has.
SizeOf = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One look-up; `key` holds the positions of its arguments that are bound before it."""

    literal: FlatLiteral
    kind: int
    key: tuple[int, ...]
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A join order for a rule; `driven` if the first step is the literal whose new facts arrive.

    `cut` holds the bits of `opcodes` that say what happens at the horizon. `keeper` is the step whose atom is noted
    while the body goes on to hold. `stands` has the bits for facts that stand.
    """

    rule: FlatRule
    driven: bool
    steps: tuple[PlanStep, ...]
    cut: int = 0
    keeper: int = -1
    stands: int = opcodes.NOT_STANDING

    def __str__(self) -> str:
        head = f"{_format_atom(self.rule.predicate, self.rule.args)} {_format_range(self.rule.range)}".rstrip()
        return "\n".join([head, *self.outline(_format_step)])

    def outline(self, format_step: Callable[[PlanStep], str]) -> list[str]:
        """Return one line per step and per comparison: how the literal is looked up, and the formatted literal.

        The words are `new` for arriving facts, `for` a given atom, `each` fact, `the` one known atom, `by` some
        argument positions, `without` a negated literal.
        """
        lines: list[str] = []
        for number, step in enumerate(self.steps):
            args = step.literal.args
            if step.kind == opcodes.NEGATION:
                how = "without"
            elif step.kind == opcodes.GIVEN:
                how = "for"
            elif number == 0 and self.driven:
                how = "new"
            elif not step.key and args:
                how = "each"
            elif len(step.key) == len(args):
                how = "the"
            else:
                how = "by " + ",".join(str(position + 1) for position in step.key)
            lines.append(f"  {how} {format_step(step)}")
            lines += [f"    {format_flat_term(c.left)} {c.op} {format_flat_term(c.right)}" for c in step.comparisons]
        return lines


def order_joins(
    rule: FlatRule, driver: int | None, size_of: SizeOf, cut: int = 0, given: FlatLiteral | None = None
) -> Plan:
    """Choose the join order of a rule for a driver.

    `driver` is the position of the literal whose new facts arrive; without one, a literal is listed. With `given`, the
    plan is for one atom of that literal, whenever it holds.
    """
    work = _Ordering(rule, size_of)
    if given is not None:
        work.start_with_given(given)
    elif driver is not None:
        work.positive.remove(rule.body[driver])
        work.place(rule.body[driver], opcodes.LOOKUP, ())
    elif work.positive:
        work.place_first()
    while work.positive:
        work.place_next()
    work.place_negations(always=True)
    steps = tuple(work.steps)
    if given is None:
        return Plan(rule, driver is not None, steps, cut)
    lookups = (step for step in steps if step.kind == opcodes.LOOKUP)
    widest = max(lookups, key=lambda step: len(set(_variables(step.literal))))
    return Plan(rule, False, steps, cut, steps.index(widest))


class _Ordering:
    """The steps so far, the variables that they bind, and the literals that are left."""

    def __init__(self, rule: FlatRule, size_of: SizeOf) -> None:
        self.size_of = size_of
        self.positive = [literal for literal in rule.body if not literal.negated]
        self.negative = [literal for literal in rule.body if literal.negated]
        self.comparisons = list(rule.comparisons)
        self.bound: set[Variable] = set()
        self.steps: list[PlanStep] = []

    def start_with_given(self, literal: FlatLiteral) -> None:
        self.bound.update(_variables(literal))
        self.steps.append(PlanStep(literal, opcodes.GIVEN, ()))
        self.place_negations()

    def place_first(self) -> None:
        """List the cheapest literal; the operands of Since and Until keep their order."""
        first = self.positive[0]
        if not any(literal.op in (Op.SINCE, Op.UNTIL) for literal in self.positive):
            first = min(self.positive, key=self._start_cost)
        self.positive.remove(first)
        self.place(first, opcodes.LOOKUP, self._bound_positions(first))

    def place_next(self) -> None:
        best = min(self.positive, key=self._next_cost)
        self.positive.remove(best)
        kind, first = opcodes.LOOKUP, self.steps[0].literal
        if best.op in (Op.SINCE, Op.UNTIL):
            kind = opcodes.LEFT_OPERAND
        elif first.op in (Op.SINCE, Op.UNTIL):
            kind, best = opcodes.RIGHT_OPERAND, replace(best, op=first.op, range=first.range)
        self.place(best, kind, self._bound_positions(best))

    def place(self, literal: FlatLiteral, kind: int, key: tuple[int, ...]) -> None:
        """Add a step, with the comparisons and negations whose variables are bound by it."""
        self.bound.update(_variables(literal))
        ready = tuple(c for c in self.comparisons if _variables_in((c.left, c.right)) <= self.bound)
        for comparison in ready:
            self.comparisons.remove(comparison)
        self.steps.append(PlanStep(literal, kind, key, ready))
        self.place_negations()

    def place_negations(self, always: bool = False) -> None:
        for literal in [n for n in self.negative if always or set(_variables(n)) <= self.bound]:
            self.negative.remove(literal)
            self.steps.append(PlanStep(literal, opcodes.NEGATION, tuple(range(len(literal.args)))))

    def _start_cost(self, literal: FlatLiteral) -> tuple[bool, int]:
        """Prefer a literal that binds all others, which are then found without an index; then a small one."""
        covered = all(set(_variables(other)) <= set(_variables(literal)) for other in self.positive)
        return not covered, self.size_of(literal.predicate)

    def _next_cost(self, literal: FlatLiteral) -> tuple[bool, int, int, int]:
        """Prefer literals found without an index, then with most arguments bound, then small, then most recent ones.

        On a stream the most recent literal arrives last, so that a missing one ends the search at once.
        """
        known = len(self._bound_positions(literal))
        return known < len(literal.args), -known, self.size_of(literal.predicate), literal.range[1]

    def _bound_positions(self, literal: FlatLiteral) -> tuple[int, ...]:
        return tuple(i for i, arg in enumerate(literal.args) if isinstance(arg, Constant) or arg in self.bound)


def _variables(literal: FlatLiteral) -> tuple[Variable, ...]:
    return variables_of((literal,))


def _variables_in(terms: Iterable[Term]) -> set[Variable]:
    return {term for term in terms if isinstance(term, Variable)}


def _format_step(step: PlanStep) -> str:
    literal = step.literal
    word = literal.op.name.lower() + _format_range(literal.range, always=True) + " " if literal.op else ""
    return word + _format_atom(literal.predicate, literal.args)


def _format_atom(predicate: str, args: tuple[Term, ...]) -> str:
    return predicate + (f"({','.join(format_flat_term(arg) for arg in args)})" if args else "")


def format_flat_term(term: Term) -> str:
    """Format a term of a flat rule; anonymous variables have names of their own."""
    return term.name if isinstance(term, Variable) else format_value(term.value)


def _format_range(pair: Pair, always: bool = False) -> str:
    return f"+[{pair[0]},{pair[1]}]" if always or pair != (0, 0) else ""

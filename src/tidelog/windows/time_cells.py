"""DatalogMTL rules as rules over time cells, for a reasoner that keeps each predicate for some time.

**Cells.** Over the integers a cell is a time point. Over the rationals, if all times of the stream are multiples of a
tick that also divides the ranges of the operators, every fact holds throughout a cell or nowhere in it: a cell is a
multiple of the tick or the open gap after it. Step n consists of the point n and, over the rationals, the gap after n.
A predicate becomes one predicate for each kind of cell, and rules become forward-propagating rules over steps.

**What is kept.** A predicate that is kept for r ticks is visible, at time t, from t - r to t. The body of a rule is
evaluated at t over what is visible then. If t is a point, t - r is the border of a cell. If t lies in a gap, t - r lies
inside another. So a body in a gap is evaluated over finer cells: the points at whole ticks from t divide every gap into
a first part, such a point, and a second part. All ranges and t - r end at borders of these.

A formula is evaluated as a circuit: a hidden predicate says that it holds at a position, counted in (finer) cells from
t back. Hidden predicates are read at the present only, so that a circuit remembers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.analysis.fragments import range_on_timeline, subformulas
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.printer import format_formula
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Comparison,
    Formula,
    Literal,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.validation import formula_atoms, rule_atoms
from tidelog.timeline.interval import INF, Interval, TimelineName
from tidelog.windows.forward_query import ForwardQuery, ForwardRule, LaggedAtom

#: At most this many rules over cells; longer ranges have to be measured in coarser ticks.
MAX_RULES = 20_000
#: The kinds of cells: a point, and the open gap after it.
POINT, GAP = "", " gap"
_PAST = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS, BinaryOp.SINCE)


class TooManyCells(Exception):
    """The ranges have too many ticks to be written as rules over cells."""


def find_cell_obstacle(rules: Iterable[Rule]) -> str | None:
    """Return why rules cannot be written over cells, naming the rule; None if they can."""
    for rule in rules:
        reason = _find_rule_obstacle(rule)
        if reason:
            line = f"line {rule.place.line}" if rule.place else f"`{rule.text}`"
            return f"{line} {reason}"
    return None


def _find_rule_obstacle(rule: Rule) -> str | None:
    for node in subformulas(rule.head):
        if not isinstance(node, Atom) and not (isinstance(node, Unary) and node.op is UnaryOp.BOX_PLUS):
            return f"has `{format_formula(rule.head)}` in its head"
    for part in rule.body:
        if isinstance(part, Comparison):
            continue
        if not isinstance(part, Literal):
            return "computes with numbers"
        if part.negated:
            return "negates"
        for node in subformulas(part.formula):
            if isinstance(node, Unary | Binary) and node.op not in _PAST:
                return "looks ahead"
    ranges = [
        node.range
        for formula in (rule.head, *(part.formula for part in rule.body if isinstance(part, Literal)))
        for node in subformulas(formula)
        if isinstance(node, Unary | Binary)
    ]
    if any(each.hi == INF for each in ranges):
        return "has a range without an end"
    if not any(atom for part in rule.body if isinstance(part, Literal) for atom in formula_atoms(part.formula)):
        return "has no atom in its body" if rule.body else "is a fact"
    return None


def translate_to_cells(
    rules: Sequence[Rule], output: str, timeline: TimelineName, tick: Fraction, kept: Mapping[str, int]
) -> list[ForwardQuery]:
    """Return the query over cells, one for each kind of cell in which its answers lie; `kept` has the ticks for which
    predicates are kept, and others are kept as long as they are read.

    Raise `TooManyCells` if there would be too many rules."""
    plain = [part for number, rule in enumerate(rules) for part in _lower_head(rule, number)]
    arities = {atom.predicate: len(atom.args) for rule in plain for atom in rule_atoms(rule)}
    derived = {head.predicate for rule in plain if (head := head_atom(rule)) is not None}
    kinds = (POINT,) if timeline == "integer" else (POINT, GAP)
    found: list[ForwardRule] = []
    for kind in kinds:
        circuit = _Circuit(kind, timeline, tick, kept, found)
        for rule in plain:
            circuit.add_rule(rule)
    known = {atom.predicate: len(atom.args) for rule in found for atom in rule.atoms}
    known |= {name + kind: arity for name, arity in arities.items() for kind in kinds}
    inputs = tuple(name + kind for name in arities if name not in derived for kind in kinds)
    return [ForwardQuery(output + kind, tuple(found), frozenset(), known, frozenset(known), inputs) for kind in kinds]


def _lower_head(rule: Rule, number: int) -> Iterator[Rule]:
    """Yield a rule with boxes in its head as two: the body holds, and its head held throughout what the boxes say."""
    if isinstance(rule.head, Atom):
        yield rule
        return
    head = head_atom(rule)
    assert head is not None
    formula: Formula = Atom(hidden_name(f"head {number}"), head.args)
    yield Rule(formula, rule.body)
    for node in subformulas(rule.head):
        if isinstance(node, Unary):
            formula = Unary(UnaryOp.DIAMOND_MINUS, node.range, formula)
    yield Rule(head, (Literal(formula),))


@dataclass
class _Circuit:
    """Rules that evaluate bodies in one kind of cell. Positions count back from the present, which is 0."""

    kind: str
    timeline: TimelineName
    tick: Fraction
    kept: Mapping[str, int]
    rules: list[ForwardRule]
    nodes: dict[tuple[Formula, int], LaggedAtom | bool] = field(default_factory=dict)

    @property
    def unit(self) -> int:
        """The number of positions in a tick."""
        return 1 if self.timeline == "integer" else 2 if self.kind == POINT else 4

    def add_rule(self, rule: Rule) -> None:
        """Add the rules that derive a rule's head in cells of this kind."""
        head = rule.head
        assert isinstance(head, Atom)
        parts = [self.evaluate(part.formula, 0) for part in rule.body if isinstance(part, Literal)]
        comparisons = tuple(part for part in rule.body if isinstance(part, Comparison))
        if False not in parts:
            self._add(head.predicate + self.kind, head.args, parts, comparisons)

    def evaluate(self, formula: Formula, at: int) -> LaggedAtom | bool:
        """Return an atom that holds where a formula does, at a position; or its truth value, if that is known."""
        match formula:
            case Atom(predicate=predicate, args=args):
                if -at > self.kept.get(predicate, -at) * self.unit:
                    return False
                return self._read(predicate, args, at)
            case Top():
                return True
        if (formula, at) not in self.nodes:
            self.nodes[formula, at] = self._evaluate_operator(formula, at)
        return self.nodes[formula, at]

    def _read(self, predicate: str, args: tuple[Term, ...], at: int) -> LaggedAtom:
        if self.unit == 1:
            return LaggedAtom(predicate, args, -at)
        place = at + (0 if self.kind == POINT else 2)
        kind = GAP if place % self.unit else POINT
        return LaggedAtom(predicate + kind, args, -(place // self.unit))

    def _evaluate_operator(self, formula: Formula, at: int) -> LaggedAtom | bool:
        variables = dict.fromkeys(t for atom in formula_atoms(formula) for t in atom.args if isinstance(t, Variable))
        args: tuple[Term, ...] = tuple(variables)
        name = hidden_name(f"{format_formula(formula)} at {at}{self.kind}")
        cases = [parts for parts in self._find_cases(formula, at) if False not in parts]
        if any(all(part is True for part in parts) for parts in cases):
            return True
        for parts in cases:
            self._add(name, args, parts)
        return LaggedAtom(name, args, 0) if cases else False

    def _find_cases(self, formula: Formula, at: int) -> Iterator[list[LaggedAtom | bool]]:
        """Yield conjunctions; one of them must hold."""
        match formula:
            case Unary(op=UnaryOp.DIAMOND_MINUS, arg=arg):
                yield from ([self.evaluate(arg, seen)] for seen in self._look(formula.range, at))
            case Unary(op=UnaryOp.BOX_MINUS, arg=arg):
                yield [self.evaluate(arg, seen) for seen in self._look(formula.range, at)]
            case Binary(left=left, right=right):
                for seen in self._look(formula.range, at):
                    between = [self.evaluate(left, place) for place in self._between(formula.range, seen, at)]
                    yield [self.evaluate(right, seen), *between]

    def _look(self, span: Interval, at: int) -> range:
        """Return the positions that an operator with this range sees."""
        closed = range_on_timeline(span, self.timeline)
        if closed is None:
            return range(0)
        low, high = (int(Fraction(end) / self.tick) * self.unit for end in (closed.lo, closed.hi))
        # From inside a gap, open and closed ends meet the same cells.
        edge = self.unit > 1 and at % 2 == 0
        return range(at - high + (edge and not closed.hi_closed), at - low - (edge and not closed.lo_closed) + 1)

    def _between(self, span: Interval, seen: int, at: int) -> range:
        """Return the positions strictly between the two; a gap lies partly between its points and others."""
        if self.unit == 1:
            return range(seen + 1, at)
        if seen == at and span.lo == 0 and span.lo_closed:
            return range(0)
        return range(seen + (seen % 2 == 0), at + (at % 2))

    def _add(
        self,
        name: str,
        args: tuple[Term, ...],
        parts: Iterable[LaggedAtom | bool],
        comparisons: tuple[Comparison, ...] = (),
    ) -> None:
        """Add a rule for a name; parts of its body that are true are left out."""
        if len(self.rules) >= MAX_RULES:
            raise TooManyCells
        body = tuple(dict.fromkeys(part for part in parts if isinstance(part, LaggedAtom)))
        self.rules.append(ForwardRule(name, args, True, body, comparisons))

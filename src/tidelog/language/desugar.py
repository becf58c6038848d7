"""Translate rules with numbers into core form: ordinary rules, calculations and aggregations.

An aggregate becomes a predicate of its own. Its body is a rule for the rows, `$rows(G, L) :- body`, an aggregation
gives `$agg(G, V)`, and the rule reads that atom instead. A group without rows has count and sum 0 where all group
variables are bound outside the braces: a second rule then reads `not $some(G)`, with 0 for the value.

What remains are expressions over variables: the rule is cut in two, `$in(X) :- ...` before the computation and a rule
or the head itself behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import (
    atom_variables,
    bound_inside,
    group_variables,
    has_value_without_rows,
    literal_variables,
    outer_variables,
    rule_aggregates,
)
from tidelog.language.comparisons import FLIPPED, compare
from tidelog.language.conjunction_steps import (
    GivenPart,
    find_step,
    is_ready,
    remove_renamings,
    variables_after,
    variables_used_after,
)
from tidelog.language.core_rules import OR_ELSE, Aggregation, Assign, Calculation, CoreProgram, Test
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    BodyLiteral,
    Comparison,
    Condition,
    Constant,
    Expression,
    Formula,
    Literal,
    Operation,
    Rule,
    Term,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.validation import formula_atoms
from tidelog.timeline.interval import Interval

_ZERO = Constant(Fraction(0))
#: The value of an undefined expression in a sum, which is skipped and counted as every other text.
UNDEFINED_VALUE = Constant("")

#: Aggregates that only look at the times at which a group has a row.
_OVER_TIME = (AggregateFunction.DURATION, AggregateFunction.START)
_NUMERIC = (AggregateFunction.SUM, AggregateFunction.AVG)


def desugar(rules: tuple[Rule, ...]) -> CoreProgram:
    """Return the core form of rules that passed all checks."""
    if not any(_needs_desugaring(rule) for rule in rules):
        return CoreProgram(rules, tuple(range(len(rules))))
    work = _Desugaring()
    for number, rule in enumerate(rules):
        work.add(number, rule)
    return CoreProgram(tuple(work.rules), tuple(work.origins), tuple(work.calculations), tuple(work.aggregations))


def _needs_desugaring(rule: Rule) -> bool:
    if any(isinstance(literal, Condition) for literal in rule.body):
        return True
    bound = atom_variables(rule.body)
    comparisons = (literal for literal in rule.body if isinstance(literal, Comparison))
    return any(variable not in bound for c in comparisons for variable in literal_variables(c))


@dataclass(frozen=True)
class _Option:
    """A way to read an aggregate: a literal, and conditions on its value."""

    literal: Literal
    conditions: tuple[Condition, ...] = ()


class _Desugaring:
    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.origins: list[int] = []
        self.calculations: list[Calculation] = []
        self.aggregations: list[Aggregation] = []
        #: Whether the value of an aggregate of the present rule is 0 in a group without rows.
        self.zeros: dict[Aggregate, bool] = {}
        self.number = 0
        self.count = 0

    def add(self, number: int, rule: Rule) -> None:
        self.number, self.count = number, 0
        if not _needs_desugaring(rule):
            self._emit(rule)
            return
        head, literals = remove_renamings(rule.head, rule.body)
        rule = replace(rule, head=head, body=tuple(literals))
        self.zeros = {aggregate: has_value_without_rows(aggregate, rule) for aggregate in rule_aggregates(rule)}
        self._translate(rule)

    def _translate(self, rule: Rule) -> None:
        """Add a rule whose aggregates need nothing of each other, or else what they need first."""
        rule = self._give_values_first(rule)
        head = rule.head
        options: list[list[_Option]] = []
        body: list[BodyLiteral] = []
        for literal in rule.body:
            if isinstance(literal, Condition):
                rest = self._without_aggregates(literal, rule, options)
                if rest is not None:
                    body.append(rest)
            else:
                body.append(literal)
        if len(options) == 1 and len(options[0]) == 1 and not body and self._gives_head(options[0][0], head):
            return
        for choice in product(*options):
            chosen: list[BodyLiteral] = []
            for option in choice:
                chosen += [option.literal, *option.conditions]
            self._conjunction(rule.head, [*body, *chosen], rule)

    def _give_values_first(self, rule: Rule) -> Rule:
        """Return a rule in which no aggregate needs a value of another one.

        If the braces of an aggregate need such a value, everything that can be computed without them gets a rule and a
        predicate of its own, which the returned rule reads.
        """
        if len(self.zeros) < 2:  # there is no other aggregate
            return rule
        given = GivenPart.of(rule)
        if not given.waiting or not given.conditions:
            return rule
        args = tuple(variable for variable in outer_variables(rule) if variable in given.variables)
        values = Atom(self._name("values"), args, rule.place)
        self._translate(replace(rule, head=values, body=(*given.positive, *given.conditions)))
        taken = {*given.positive, *given.conditions}
        rest = tuple(literal for literal in rule.body if literal not in taken)
        return self._give_values_first(replace(rule, body=(Literal(values), *rest)))

    def _gives_head(self, option: _Option, head: Formula) -> bool:
        """Let the last aggregation derive the head itself, if the rule says nothing else; return whether it does."""
        atom = option.literal.formula
        if not isinstance(head, Atom) or not isinstance(atom, Atom) or option.conditions:
            return False
        variables = [term for term in atom.args if isinstance(term, Variable)]
        if len({*variables}) != len(atom.args) or set(head.args) != set(atom.args) or len(head.args) != len(atom.args):
            return False
        output = tuple(atom.args.index(term) for term in head.args)
        self.aggregations[-1] = replace(self.aggregations[-1], head=head, output=output)
        return True

    def _emit(self, rule: Rule) -> None:
        self.rules.append(rule)
        self.origins.append(self.number)

    def _rule(self, head: Formula, body: Iterable[BodyLiteral], source: Rule) -> None:
        self._emit(Rule(head, tuple(body), source.text, source.place))

    def _name(self, kind: str) -> str:
        self.count += 1
        return hidden_name(f"{kind}{self.number}.{self.count}")

    # Aggregates

    def _without_aggregates(self, condition: Condition, rule: Rule, options: list[list[_Option]]) -> BodyLiteral | None:
        """Return a condition with variables in place of its aggregates, and add their options; None if none is left."""
        left, op, right = condition.left, condition.op, condition.right
        if isinstance(right, Aggregate) and not isinstance(left, Aggregate | Operation) and op in FLIPPED:
            left, op, right = right, FLIPPED[op], left
        if isinstance(left, Aggregate) and isinstance(right, Variable | Constant):
            if op == "=" and left.function is not AggregateFunction.DURATION:
                options.append(self._options(left, right, rule))
                return None
            if left.function is AggregateFunction.DURATION or (
                isinstance(right, Constant)
                and isinstance(right.value, Fraction)
                and left.function in (*_NUMERIC, AggregateFunction.COUNT)
            ):
                options.append(self._compared_options(left, op, right, rule))
                return None
        left, right = self._replace_aggregates(left, rule, options), self._replace_aggregates(right, rule, options)
        if isinstance(left, Variable | Constant) and isinstance(right, Variable | Constant) and op in FLIPPED:
            return Comparison(op, left, right, condition.place)
        return replace(condition, op=op, left=left, right=right)

    def _replace_aggregates(self, expression: Expression, rule: Rule, options: list[list[_Option]]) -> Expression:
        if isinstance(expression, Operation):
            args = tuple(self._replace_aggregates(arg, rule, options) for arg in expression.args)
            return replace(expression, args=args)
        if isinstance(expression, Aggregate):
            value = Variable(f"$v{len(options)}")
            options.append(self._options(expression, value, rule))
            return value
        return expression

    def _options(self, aggregate: Aggregate, value: Term, rule: Rule) -> list[_Option]:
        """Return the ways to read an aggregate whose value is a variable or a constant."""
        group = group_variables(aggregate, rule)
        head = Atom(self._name("agg"), (*group, Variable("$value")), aggregate.place)
        aggregation = self._aggregation(head, aggregate, group, None, rule)
        options = [_Option(Literal(Atom(head.predicate, (*group, value), aggregate.place)))]
        if self.zeros[aggregate]:
            empty = self._no_rows(aggregation, aggregate, group, rule)
            options.append(_Option(empty, (Condition("=", value, _ZERO, place=aggregate.place),)))
        elif _may_skip_all_rows(aggregate):
            skipped = self._no_values(aggregation, aggregate, group, rule)
            options.append(_Option(skipped, (Condition("=", value, _ZERO, place=aggregate.place),)))
        return options

    def _compared_options(self, aggregate: Aggregate, op: str, value: Term, rule: Rule) -> list[_Option]:
        """Return the ways to read a comparison of an aggregate with a number or, for durations, a value."""
        group = group_variables(aggregate, rule)
        # A value that the duration is compared with is the last key.
        keys = group if isinstance(value, Constant) else (*(v for v in group if v != value), value)
        head = Atom(self._name("agg"), keys, aggregate.place)
        aggregation = self._aggregation(head, aggregate, keys, (op, value), rule)
        options = [_Option(Literal(head))]
        if self.zeros[aggregate]:
            if isinstance(value, Variable):
                empty = self._no_rows(aggregation, aggregate, keys, rule)
                options.append(_Option(empty, (Condition(op, _ZERO, value, place=aggregate.place),)))
            elif compare(op, Fraction(0), value.value):
                options.append(_Option(self._no_rows(aggregation, aggregate, keys, rule)))
        elif _may_skip_all_rows(aggregate) and isinstance(value, Constant) and compare(op, Fraction(0), value.value):
            options.append(_Option(self._no_values(aggregation, aggregate, group, rule)))
        return options

    def _aggregation(
        self,
        head: Atom,
        aggregate: Aggregate,
        group: tuple[Variable, ...],
        compared: tuple[str, Term] | None,
        rule: Rule,
    ) -> Aggregation:
        """Add an aggregation, with a rule for its rows unless they are those of one atom."""
        inside = {v: None for literal in aggregate.body for v in literal_variables(literal)}
        local = [v for v in inside if v not in group]
        values, computed = self._values(aggregate)
        # At one point in time rows count only by their values, if equal values count once.
        merges = aggregate.range is None and (
            aggregate.distinct or aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX)
        )
        if aggregate.function in _OVER_TIME:
            columns = list(group)
        elif merges:
            columns = list(dict.fromkeys([*group, *values]))
        else:
            columns = list(dict.fromkeys([*group, *local, *values]))
        domains = list(self._domains(aggregate, group, rule))
        read = [*columns, *(v for condition in computed for v in literal_variables(condition))]
        body = [*self._separate_negation(aggregate, domains, read, rule), *computed, *domains]
        rows = _as_plain_atom(body, columns)
        if rows is None:
            rows = Atom(self._name("rows"), tuple(columns), aggregate.place)
            self._conjunction(rows, body, rule)
        positions = {term: i for i, term in enumerate(rows.args)}
        found = Aggregation(
            head,
            rows,
            aggregate.function,
            tuple(positions[v] for v in group),
            tuple(positions[v] for v in values),
            aggregate.range,
            aggregate.distinct,
            compared,
            tuple(range(len(head.args))),
            self.number,
        )
        self.aggregations.append(found)
        return found

    def _values(self, aggregate: Aggregate) -> tuple[list[Variable], list[Condition]]:
        """Return the variables that hold the values of an aggregate, and conditions that compute them."""
        values: list[Variable] = []
        computed: list[Condition] = []
        for place, expression in enumerate(aggregate.values):
            if isinstance(expression, Variable):
                values.append(expression)
                continue
            if aggregate.function in _NUMERIC and isinstance(expression, Operation):
                expression = Operation(OR_ELSE, (expression, UNDEFINED_VALUE), aggregate.place)
            values.append(Variable(f"$w{place}"))
            computed.append(Condition("=", values[-1], expression, place=aggregate.place))
        return values, computed

    def _domains(self, aggregate: Aggregate, group: Sequence[Variable], rule: Rule) -> Iterator[Literal]:
        """Yield a literal that binds the group variables that the braces do not bind, with all values outside of them.

        It holds at all times, so that it changes nothing about when a row holds.
        """
        bound = bound_inside(aggregate, ())
        missing = tuple(variable for variable in group if variable not in bound)
        if missing:
            domain = Atom(self._name("domain"), missing, aggregate.place)
            self._conjunction(domain, list(_binders(missing, rule)), rule)
            yield Literal(domain)

    def _separate_negation(
        self, aggregate: Aggregate, domains: Sequence[Literal], needed: Sequence[Variable], rule: Rule
    ) -> list[BodyLiteral]:
        """Return the literals of the braces, those without an outside value as one atom if one of them is negated.

        A stream can look back over a rule without negation when a new outside value arrives, but not over one with it.
        """
        body = list(aggregate.body)
        outside = {v for domain in domains for v in literal_variables(domain)}
        apart = [literal for literal in body if outside.isdisjoint(literal_variables(literal))]
        rest = [literal for literal in body if literal not in apart]
        bound = bound_inside(replace(aggregate, body=tuple(apart)), ())
        read = {*needed, *(v for literal in rest for v in literal_variables(literal))}
        tested = [literal for literal in apart if not isinstance(literal, Literal) or literal.negated]
        used = {v for literal in apart for v in literal_variables(literal) if v in read or literal in tested}
        denies = any(isinstance(literal, Literal) for literal in tested)
        if not outside or not denies or not used <= bound.keys():
            return body
        part = Atom(self._name("part"), tuple(v for v in bound if v in read), aggregate.place)
        self._conjunction(part, apart, rule)
        return [Literal(part), *rest]

    def _no_rows(
        self, aggregation: Aggregation, aggregate: Aggregate, group: tuple[Variable, ...], rule: Rule
    ) -> Literal:
        """Return the literal that says that a group has no row, or no occurrence in the window."""
        return replace(self._some_row(aggregation, aggregate, group, rule), negated=True)

    def _no_values(
        self, aggregation: Aggregation, aggregate: Aggregate, group: tuple[Variable, ...], rule: Rule
    ) -> Literal:
        """Return the literal that says that a group has rows, but none of them has a value."""
        plain = replace(aggregate, values=(), distinct=False)
        rows = self._aggregation(Atom(self._name("rows"), group), plain, group, None, rule)
        self.aggregations.remove(rows)
        head = Atom(self._name("none"), group, aggregate.place)
        some = self._some_row(rows, plain, group, rule)
        self._rule(head, (some, self._no_rows(aggregation, aggregate, group, rule)), rule)
        return Literal(head)

    def _some_row(
        self, aggregation: Aggregation, aggregate: Aggregate, group: tuple[Variable, ...], rule: Rule
    ) -> Literal:
        """Return the literal that says that a group has a row, or an occurrence in the window."""
        head = Atom(self._name("some"), group, aggregate.place)
        rows = aggregation.input
        if aggregate.range is None:
            self._rule(head, (Literal(rows),), rule)
        elif aggregate.function is AggregateFunction.DURATION:
            ever = Unary(UnaryOp.DIAMOND_MINUS, aggregate.range, rows, aggregate.place)
            self._rule(head, (Literal(ever),), rule)
        else:
            self.aggregations.append(replace(aggregation, head=head, function=None, values=(), compared=None))
        return Literal(head)

    # Expressions

    def _conjunction(self, head: Formula, body: Sequence[BodyLiteral], source: Rule) -> None:
        """Add rules for a body without aggregates: one, or two with a calculation between them."""
        head, body = remove_renamings(head, body)
        bound = atom_variables(body)
        waiting = [literal for literal in body if not is_ready(literal, bound)]
        steps: list[Assign | Test] = []
        known = set(bound)
        conditions = [literal for literal in waiting if not isinstance(literal, Literal)]
        while conditions:
            found = next((c for c in conditions if find_step(c, known) is not None), None)
            if found is None:
                break
            step = find_step(found, known)
            assert step is not None
            steps.append(step)
            conditions.remove(found)
            if isinstance(step, Assign):
                known.add(step.variable)
        ready = [literal for literal in body if literal not in waiting]
        if not steps:
            self._rule(head, ready, source)
            return
        late = [literal for literal in waiting if isinstance(literal, Literal)]
        assigned = {step.variable: None for step in steps if isinstance(step, Assign)}
        used = variables_used_after(steps, late, head)
        inputs = Atom(self._name("in"), tuple(v for v in bound if v in used))
        self._rule(inputs, ready, source)
        if isinstance(head, Atom) and not late:
            self.calculations.append(Calculation(head, inputs, tuple(steps), self.number))
            return
        after = variables_after(late, head)
        computed = Atom(self._name("out"), tuple(v for v in (*inputs.args, *assigned) if v in after))
        self.calculations.append(Calculation(computed, inputs, tuple(steps), self.number))
        self._rule(head, [Literal(computed), *late], source)


def _may_skip_all_rows(aggregate: Aggregate) -> bool:
    """Return whether an aggregate may be 0 in a group with rows, because none of their values is defined.

    A sum skips such rows itself.
    """
    computed = any(isinstance(value, Operation) for value in aggregate.values)
    return aggregate.function is AggregateFunction.COUNT and computed


def _binders(variables: Sequence[Variable], rule: Rule) -> Iterator[BodyLiteral]:
    """Yield the literals of a body that bind variables, at any time: some atoms, or equations and all atoms."""
    atoms = [
        atom
        for literal in rule.body
        if isinstance(literal, Literal) and not literal.negated
        for atom in formula_atoms(literal.formula, left=False)
    ]
    computed = any(all(variable not in atom.args for atom in atoms) for variable in variables)
    known: set[Term] = set()
    for atom in atoms:
        if computed or any(variable in atom.args and variable not in known for variable in variables):
            known.update(atom.args)
            yield Literal(Unary(UnaryOp.DIAMOND_MINUS, Interval.always(), atom, atom.place))
    if computed:
        for literal in rule.body:
            is_equation = isinstance(literal, Comparison | Condition) and literal.op == "="
            if is_equation and not any(body_aggregates([literal])):
                yield literal


def _as_plain_atom(body: Sequence[BodyLiteral], columns: Sequence[Variable]) -> Atom | None:
    """Return the atom that a body consists of, if its arguments are exactly these variables, each once."""
    if len(body) != 1 or not isinstance(body[0], Literal) or body[0].negated:
        return None
    atom = body[0].formula
    if isinstance(atom, Atom) and len(atom.args) == len(columns) and set(atom.args) == set(columns):
        return atom
    return None

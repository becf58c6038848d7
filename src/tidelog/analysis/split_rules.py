"""Rewrite rules with numbers so that more of them can be evaluated bucket by bucket.

The rewritten rules give the same answers. They differ from the written ones in hidden predicates between the parts of a
rule, which may then be evaluated in different stages:

- **Rows.** The body in a pair of braces with several atoms gets a predicate of its own, which may have another key than
  the group: `Queue(R, N) :- N = count{ Waiting(X), On(X, R) }` is split by X up to the rows, and by R from there.
- **Parts.** An aggregate without a group reads all rows. Each bucket counts its own, under a label that is different in
  every bucket, and the rule adds up: `N = sum{ V : $part(B, V) }` with `$part(B, V) :- V = count{ $bucket(B), ... }`. A
  row is in exactly one bucket, and so are all its occurrences, so the parts add up to the whole at every time. Sums are
  added in the same way, and the least of the least values is the least of all. `distinct` values become facts first.
- **Computed heads.** `Over :- Card(C), sum{ A : Open(C, A) } > 9` is split by C up to the head, which has no C. The
  body becomes a predicate with all its variables, and only its facts go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from tidelog.analysis.predicate_graph import find_predicate_components
from tidelog.analysis.rule_locality import find_equal_terms
from tidelog.language.aggregate_checks import body_aggregates, map_aggregates
from tidelog.language.bindings import (
    atom_variables,
    bound_outside,
    group_variables,
    literal_variables,
    outer_variables,
)
from tidelog.language.hidden_predicates import BUCKET, hidden_name, is_hidden
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    BodyLiteral,
    Condition,
    Constant,
    Formula,
    Literal,
    Rule,
    Variable,
)
from tidelog.language.validation import body_atoms

#: How the values of parts make the value of the whole.
_MERGED = {
    AggregateFunction.COUNT: AggregateFunction.SUM,
    AggregateFunction.SUM: AggregateFunction.SUM,
    AggregateFunction.MIN: AggregateFunction.MIN,
    AggregateFunction.MAX: AggregateFunction.MAX,
}
#: What the hidden predicates of each kind are for a reader.
_WORDS = {"part": "parts", "seen": "values", "rows": "rows", "computed": "results"}
_CONSTRAINT = "Bottom"
_ONE = Constant(Fraction(1))
_LABEL, _VALUE = Variable("$bucket"), Variable("$part")


def split_rules(program: Program) -> Program:
    """Return the program with rules that split better; without numbers, it is the same.

    >>> from tidelog.language.printer import format_rule
    >>> rules = split_rules(Program.parse("Total(N) :- N = count{ Paid(Id, A) }.")).rules
    >>> len(rules), format_rule(rules[1])
    (2, 'Total(N) :- N = sum{ $part : $part Total.1($bucket, $part) }.')
    """
    if not any(isinstance(literal, Condition) for rule in program.rules for literal in rule.body):
        return program
    work = _Rewriting()
    components = find_predicate_components(program.rules)
    together_with = {name: set(group.predicates) for group in components for name in group.predicates}
    for rule in program.rules:
        head = head_atom(rule)
        together = together_with[head.predicate] if head else set()
        if any(atom.predicate in together for atom, _ in body_atoms(rule.body)):
            # The rules of a recursion stay in one stage in any case.
            work.rules.append(rule)
        else:
            work.add(rule)
    return replace(program, rules=tuple(work.rules))


def describe_hidden(predicate: str) -> str | None:
    """Describe a predicate that `split_rules` has added; None for all others.

    >>> describe_hidden("$rows Queue.1")
    'rows of Queue'
    """
    kind, _, rest = predicate.removeprefix(hidden_name("")).partition(" ")
    if not is_hidden(predicate) or kind not in _WORDS or not rest:
        return None
    of = rest.rpartition(".")[0]
    return f"{_WORDS[kind]} of {'a constraint' if of == _CONSTRAINT else of}"


def is_part(predicate: str) -> bool:
    """Return whether a predicate holds the parts of an aggregate that buckets compute."""
    return (describe_hidden(predicate) or "").startswith(_WORDS["part"])


class _Rewriting:
    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.names: Counter[tuple[str, str]] = Counter()

    def add(self, rule: Rule) -> None:
        """Add the rules for a rule: those that its aggregates need before it."""

        def rewrite(aggregate: Aggregate) -> Aggregate:
            return self._rewrite(aggregate, rule)

        body = tuple(
            replace(literal, left=map_aggregates(literal.left, rewrite), right=map_aggregates(literal.right, rewrite))
            if isinstance(literal, Condition)
            else literal
            for literal in rule.body
        )
        changed = replace(rule, body=body)
        cut = _find_cut(changed)
        if cut:
            steps = Atom(self._name("computed", rule), cut)
            self._add_rule(steps, body, rule)
            changed = replace(rule, body=(Literal(steps),))
        self.rules.append(changed)

    def _name(self, kind: str, rule: Rule) -> str:
        """Make a name that does not depend on other rules than those for the same predicate."""
        head = head_atom(rule)
        of = head.predicate if head else _CONSTRAINT
        self.names[kind, of] += 1
        return hidden_name(f"{kind} {of}.{self.names[kind, of]}")

    def _add_rule(self, head: Formula, body: Iterable[BodyLiteral], source: Rule) -> None:
        self.rules.append(Rule(head, tuple(body), source.text, source.place))

    def _rewrite(self, aggregate: Aggregate, rule: Rule) -> Aggregate:
        """Return the aggregate that a rule reads instead of one of its own, and add the rules that it needs."""
        function = aggregate.function
        if group_variables(aggregate, rule) or function not in _MERGED or not _is_safe(aggregate.body):
            return self._with_rows(aggregate, rule)
        if not aggregate.distinct:
            return self._in_parts(aggregate, rule)
        if function in (AggregateFunction.MIN, AggregateFunction.MAX):
            return self._in_parts(replace(aggregate, distinct=False), rule)
        if all(isinstance(value, Variable) for value in aggregate.values):
            return self._in_parts(self._without_distinct(aggregate, rule), rule)
        return self._with_rows(aggregate, rule)

    def _in_parts(self, aggregate: Aggregate, rule: Rule) -> Aggregate:
        """Return an aggregate over the parts that the buckets compute, and add the rule for a part."""
        part = Atom(self._name("part", rule), (_LABEL, _VALUE), aggregate.place)
        bucket = Literal(Atom(BUCKET, (_LABEL,)))
        of_bucket = replace(aggregate, body=(bucket, *aggregate.body))
        self._add_rule(part, (Condition("=", _VALUE, of_bucket, place=aggregate.place),), rule)
        return Aggregate(
            _MERGED[aggregate.function], (_VALUE,), (Literal(part, place=aggregate.place),), place=aggregate.place
        )

    def _without_distinct(self, aggregate: Aggregate, rule: Rule) -> Aggregate:
        """Return an aggregate over facts for the distinct values, and add the rule for them."""
        values = tuple(dict.fromkeys(value for value in aggregate.values if isinstance(value, Variable)))
        seen = Atom(self._name("seen", rule), values, aggregate.place)
        if aggregate.range is None:
            self._add_rule(seen, aggregate.body, rule)
        else:
            one = Aggregate(AggregateFunction.COUNT, (), aggregate.body, aggregate.range, place=aggregate.place)
            self._add_rule(seen, (Condition(">=", one, _ONE, place=aggregate.place),), rule)
        counts = aggregate.function is AggregateFunction.COUNT
        return Aggregate(
            aggregate.function, () if counts else aggregate.values, (Literal(seen),), place=aggregate.place
        )

    def _with_rows(self, aggregate: Aggregate, rule: Rule) -> Aggregate:
        """Return an aggregate over facts for its rows, if its body joins several atoms."""
        body = aggregate.body
        if len(list(body_atoms(body))) < 2 or not _is_safe(body):
            return aggregate
        rows = Atom(self._name("rows", rule), tuple(_variables(body)), aggregate.place)
        self._add_rule(rows, body, rule)
        return replace(aggregate, body=(Literal(rows),))


def _variables(body: Iterable[BodyLiteral]) -> dict[Variable, None]:
    return {variable: None for literal in body for variable in literal_variables(literal)}


def _is_safe(body: tuple[BodyLiteral, ...]) -> bool:
    """Return whether a body binds all its variables by itself."""
    bound = bound_outside(Rule(Atom("", ()), body))
    return all(variable in bound for variable in _variables(body))


def _find_cut(rule: Rule) -> tuple[Variable, ...]:
    """Return the variables that a rule has before its head, if the head keeps none that it could be split by."""
    head = head_atom(rule)
    outer = outer_variables(rule)
    bound = atom_variables(rule.body)
    aggregates = list(body_aggregates(rule.body))
    for aggregate in aggregates:
        bound |= {variable: None for variable in atom_variables(aggregate.body) if variable in outer}
    named = [variable for variable in bound if not variable.anonymous]
    if head is None or not named:
        return ()
    equal = find_equal_terms(rule.body)
    keys = {equal.get(variable, variable) for variable in bound}
    kept = {equal.get(term, term) for term in head.args}
    computed = [term for term in head.args if isinstance(term, Variable)]
    if keys & kept or not (computed or any(group_variables(aggregate, rule) for aggregate in aggregates)):
        return ()
    return tuple(dict.fromkeys([*named, *computed]))

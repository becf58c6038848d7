"""Forward-propagating queries: the temporal Datalog rules that windows are defined for, and their radius.

A rule is forward-propagating if it is plain Datalog (all predicates rigid), or if its head is temporal, its only time
variable is that of the head and occurs in an atom that is not negated, it names no time point, and no body atom is
later than the head. The `lag` of a body atom is then how much earlier than the head it is read. The radius of a rule is
its largest lag (0 for plain Datalog), also of negated atoms; the radius of a query is the largest radius of its rules.
Only rules that the output predicate depends on belong to a query.

Negation is stratified: no predicate depends on its own negation at the same time. So at each time, rules are applied
layer by layer (`order_rules`), each after the layers that it negates. A time point without input and without a past
derives nothing, since every temporal rule has a temporal atom that is not negated.

Input facts belong to predicates that no rule derives. Rigid facts in the rule file always hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tidelog.analysis.predicate_graph import find_components, restrict_to_query
from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.analysis.temporal_dependencies import needed_predicates, temporal_body_atoms
from tidelog.analysis.temporal_recursion import find_unordered_negation
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.printer import format_temporal_atom, format_temporal_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Comparison, Constant, TemporalAtom, TemporalRule, Term, Value


@dataclass(frozen=True, slots=True)
class LaggedAtom:
    """A body atom and how much earlier than the head it is read; the lag of a rigid atom is None."""

    predicate: str
    args: tuple[Term, ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class ForwardRule:
    """A forward-propagating rule; `source` is the rule as the user wrote it."""

    predicate: str
    args: tuple[Term, ...]
    temporal: bool
    body: tuple[LaggedAtom, ...]
    comparisons: tuple[Comparison, ...] = ()
    negated: tuple[LaggedAtom, ...] = ()
    source: TemporalRule | None = field(default=None, compare=False, repr=False)

    @property
    def radius(self) -> int:
        return max((atom.lag for atom in (*self.body, *self.negated) if atom.lag is not None), default=0)

    @property
    def ordered(self) -> bool:
        """Whether the rule compares constants by order, and so distinguishes constants that it does not name."""
        return any(part.op not in ("=", "!=") for part in self.comparisons)

    @property
    def atoms(self) -> tuple[LaggedAtom, ...]:
        """The head, with lag 0, and the body atoms, also the negated ones."""
        return LaggedAtom(self.predicate, self.args, 0 if self.temporal else None), *self.body, *self.negated

    def __str__(self) -> str:
        return format_temporal_rule(self.source) if self.source else repr(self)


@dataclass(frozen=True)
class ForwardQuery:
    """An output predicate and the rules that it depends on.

    `arities` (not counting time) and `temporal` cover every predicate of the rules. `inputs` are the predicates that no
    rule derives. `facts` are the rigid facts of the rule file."""

    output: str
    rules: tuple[ForwardRule, ...]
    facts: frozenset[tuple[str, tuple[Value, ...]]]
    arities: dict[str, int]
    temporal: frozenset[str]
    inputs: tuple[str, ...]

    @property
    def radius(self) -> int:
        return max((rule.radius for rule in self.rules), default=0)

    @property
    def constants(self) -> frozenset[Value]:
        """The constants of the rules and facts."""
        terms = [term for rule in self.rules for atom in rule.atoms for term in atom.args]
        terms += [term for rule in self.rules for part in rule.comparisons for term in (part.left, part.right)]
        found = {term.value for term in terms if isinstance(term, Constant)}
        return frozenset(found.union(*(values for _, values in self.facts)))

    @property
    def ordered(self) -> bool:
        """Whether the rules compare constants by order, and so distinguish constants that they do not name."""
        return any(rule.ordered for rule in self.rules)

    @property
    def negates(self) -> bool:
        """Whether some rule has a negated atom, so that more facts may mean fewer answers."""
        return any(rule.negated for rule in self.rules)

    def restrict_to(self, window: int) -> ForwardQuery:
        """Return the query with only the rules of radius at most `window`: the query that the streaming algorithm
        with this window answers (theorem 8)."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.radius <= window))


def build_forward_query(program: Program, output: str) -> ForwardQuery:
    """Return the query for an output predicate. Raise for an unknown predicate, for all rules that are not
    forward-propagating, and for negation that is not stratified."""
    temporal = program.temporal
    if temporal is None:
        message = "windows are defined for temporal Datalog, but these rules are DatalogMTL"
        help = "use a .tdl file; for DatalogMTL, `tidelog window` and `tl.windows.retention` say how long to keep facts"
        raise TidelogError(Diagnostic("TL601", message, help=help))
    require_known_predicates([output], known_predicates(program))
    needed = needed_predicates(temporal.rules, output)
    rules = [rule for rule in temporal.rules if rule.head and rule.head.predicate in needed]
    facts = [fact for fact in temporal.facts if fact.head and fact.head.predicate in needed]
    violations = [found for rule in (*rules, *facts) for found in _find_violation(rule)]
    violations += find_unordered_negation(restrict_to_query(program, output).rules, program.timeline)
    if violations:
        raise TidelogError(violations)
    kinds = {name: (arity, True) for name, arity in temporal.temporal}
    kinds |= {name: (arity, False) for name, arity in temporal.rigid}
    forward_rules = tuple(map(_to_forward_rule, rules))
    used = dict.fromkeys([output, *(atom.predicate for rule in forward_rules for atom in rule.atoms), *sorted(needed)])
    return ForwardQuery(
        output,
        forward_rules,
        frozenset((fact.head.predicate, _constant_values(fact.head)) for fact in facts if fact.head),
        {name: kinds[name][0] for name in used},
        frozenset(name for name in used if kinds[name][1]),
        tuple(name for name in used if name not in {rule.predicate for rule in forward_rules}),
    )


def _find_violation(rule: TemporalRule) -> Iterator[Diagnostic]:
    """Yield the first reason why a rule is not forward-propagating, if there is one."""
    assert rule.head is not None
    head = rule.head.time
    body = list(temporal_body_atoms(rule))
    text = f"`{' '.join(rule.text.split()).rstrip('.') or format_temporal_rule(rule).rstrip('.')}`"

    def violation(reason: str, place: Place | None, help: str | None = None) -> Iterator[Diagnostic]:
        yield Diagnostic("TL601", f"{text} is not forward-propagating: {reason}", place or rule.place, help=help)

    for atom in (rule.head, *body):
        if atom.time and atom.time.variable is None:
            help = "move the fact to the data" if not rule.body else "use a predicate that holds at that time"
            yield from violation(f"it names the time point {atom.time.offset}", atom.place, help)
            return
    for atom in body:
        atom_text = format_temporal_atom(atom)
        if atom.time and head is None:
            yield from violation(f"its head has no time, but {atom_text} has", atom.place, "add the time to the head")
            return
        if atom.time and head and atom.time.variable != head.variable:
            reason = f"{atom_text} has the time variable {atom.time.variable}, but the head has {head.variable}"
            name = head.variable
            help = f"write {name} here, too; a rule hands on what once held: Seen(X, {name}+1) :- Seen(X, {name})."
            yield from violation(reason, atom.place, help)
            return
        if atom.time and head and atom.time.offset > head.offset:
            later = atom.time.offset - head.offset
            reason = f"{atom_text} is later than the head, by {later}"
            yield from violation(reason, atom.place, "let the head hold at the time of the latest body atom")
            return
    if head and not any(atom.time for atom in body):
        yield from violation(f"the time {head.variable} of its head does not occur in its body", rule.head.place)
    elif head and not any(atom.time for atom in temporal_body_atoms(rule, negated=False)):
        reason = f"the time {head.variable} of its head occurs only under `not`"
        help = f"add an atom that holds at the times that count, such as `Tick({head.variable})`"
        yield from violation(reason, rule.head.place, help)


def _to_forward_rule(rule: TemporalRule) -> ForwardRule:
    head = rule.head
    assert head is not None
    body, negated = (
        tuple(
            LaggedAtom(a.predicate, a.args, head.time.offset - a.time.offset if a.time and head.time else None)
            for a in temporal_body_atoms(rule, negated=negated)
        )
        for negated in (False, True)
    )
    comparisons = tuple(literal for literal in rule.body if isinstance(literal, Comparison))
    return ForwardRule(head.predicate, head.args, head.time is not None, body, comparisons, negated, rule)


def order_rules(rules: Iterable[ForwardRule]) -> list[list[ForwardRule]]:
    """Return rules in layers: what a rule reads at its own time is derived by its layer or an earlier one, and what it
    negates there by an earlier one."""
    by_head: dict[str, list[ForwardRule]] = {}
    for rule in rules:
        by_head.setdefault(rule.predicate, []).append(rule)
    graph = {
        name: [atom.predicate for rule in found for atom in (*rule.body, *rule.negated) if not atom.lag]
        for name, found in by_head.items()
    }
    return [[r for name in part.predicates for r in by_head[name]] for part in find_components(graph)]


def _constant_values(atom: TemporalAtom) -> tuple[Value, ...]:
    return tuple(term.value for term in atom.args if isinstance(term, Constant))

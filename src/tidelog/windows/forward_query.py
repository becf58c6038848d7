"""Forward-propagating queries: the temporal Datalog rules that windows are defined for, and their radius.

A rule is forward-propagating if it is plain Datalog (all predicates rigid), or if its head is temporal, its only time
variable is that of the head, it names no time point, and no body atom is later than the head. The `lag` of a body atom
is then how much earlier than the head it is read. The radius of a rule is its largest lag (0 for plain Datalog); the
radius of a query is the largest radius of its rules. Only rules that the output predicate depends on belong to a query.

Input facts belong to predicates that no rule derives. Rigid facts in the rule file always hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.analysis.temporal_dependencies import needed_predicates, temporal_body_atoms
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.printer import format_temporal_atom, format_temporal_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Comparison, Constant, TemporalAtom, TemporalLiteral, TemporalRule, Term, Value


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
    source: TemporalRule | None = field(default=None, compare=False, repr=False)

    @property
    def radius(self) -> int:
        return max((atom.lag for atom in self.body if atom.lag is not None), default=0)

    @property
    def atoms(self) -> tuple[LaggedAtom, ...]:
        """The head, with lag 0, and the body atoms."""
        return LaggedAtom(self.predicate, self.args, 0 if self.temporal else None), *self.body

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
        return any(part.op not in ("=", "!=") for rule in self.rules for part in rule.comparisons)

    def restrict_to(self, window: int) -> ForwardQuery:
        """Return the query with only the rules of radius at most `window`: the query that the streaming algorithm
        with this window answers (theorem 8)."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.radius <= window))


def build_forward_query(program: Program, output: str) -> ForwardQuery:
    """Return the query for an output predicate. Raise for an unknown predicate, and for all rules that are not
    forward-propagating."""
    temporal = program.temporal
    if temporal is None:
        message = "windows are defined for temporal Datalog, but these rules are DatalogMTL"
        help = "use a .tdl file; for DatalogMTL, `tidelog check` says how long facts are kept, and why"
        raise TidelogError(Diagnostic("TL601", message, help=help))
    require_known_predicates([output], known_predicates(program))
    needed = needed_predicates(temporal.rules, output)
    rules = [rule for rule in temporal.rules if rule.head and rule.head.predicate in needed]
    facts = [fact for fact in temporal.facts if fact.head and fact.head.predicate in needed]
    violations = [found for rule in (*rules, *facts) for found in _find_violation(rule)]
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

    for literal in rule.body:
        if isinstance(literal, TemporalLiteral) and literal.negated:
            yield from violation(f"it negates {literal.atom.predicate}", literal.atom.place)
            return
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
            yield from violation(reason, atom.place)
            return
        if atom.time and head and atom.time.offset > head.offset:
            later = atom.time.offset - head.offset
            reason = f"{atom_text} is later than the head, by {later}"
            yield from violation(reason, atom.place, "let the head hold at the time of the latest body atom")
            return
    if head and not any(atom.time for atom in body):
        yield from violation(f"the time {head.variable} of its head does not occur in its body", rule.head.place)


def _to_forward_rule(rule: TemporalRule) -> ForwardRule:
    head = rule.head
    assert head is not None
    body = tuple(
        LaggedAtom(atom.predicate, atom.args, head.time.offset - atom.time.offset if atom.time and head.time else None)
        for atom in temporal_body_atoms(rule)
    )
    comparisons = tuple(literal for literal in rule.body if isinstance(literal, Comparison))
    return ForwardRule(head.predicate, head.args, head.time is not None, body, comparisons, rule)


def _constant_values(atom: TemporalAtom) -> tuple[Value, ...]:
    return tuple(term.value for term in atom.args if isinstance(term, Constant))

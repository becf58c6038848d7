"""Forward-propagating queries: the rules of temporal Datalog that windows are defined for, and their radius.

A rule is forward-propagating if it is plain Datalog (all predicates rigid), or if its head is temporal, its only time
variable is that of the head, it names no time point, and no body atom is later than the head. Each body atom then has
a `lag`, how much earlier than the head it is read. The radius of a rule is its greatest lag (0 for plain Datalog),
that of a query the greatest of its rules. Only the rules that a query depends on belong to it.

Input facts are those of predicates that no rule derives. Rigid facts in the rule file always hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tidelog.analysis.queries import known_predicates, require_known
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.printer import format_temporal_atom, format_temporal_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Comparison, Constant, TemporalAtom, TemporalLiteral, TemporalRule, Term, Value

LAW = (
    "a window is defined for forward-propagating rules: one time variable, in the head and in the body, no time "
    "points, no body atom later than the head, no negation"
)


@dataclass(frozen=True, slots=True)
class PastAtom:
    """A body atom; `lag` is how much earlier than the head it is read, None for a rigid one."""

    predicate: str
    args: tuple[Term, ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class PastRule:
    """A forward-propagating rule; `source` is the rule that the user wrote."""

    predicate: str
    args: tuple[Term, ...]
    temporal: bool
    body: tuple[PastAtom, ...]
    comparisons: tuple[Comparison, ...] = ()
    source: TemporalRule | None = field(default=None, compare=False, repr=False)

    @property
    def radius(self) -> int:
        return max((atom.lag for atom in self.body if atom.lag is not None), default=0)

    @property
    def atoms(self) -> tuple[PastAtom, ...]:
        """The head, which is read at lag 0, and the body."""
        return PastAtom(self.predicate, self.args, 0 if self.temporal else None), *self.body

    def __str__(self) -> str:
        return format_temporal_rule(self.source) if self.source else repr(self)


@dataclass(frozen=True)
class Query:
    """An output predicate and the rules that it depends on. `arities` (without time) and `temporal` cover every
    predicate of the rules, `inputs` are those that no rule derives; `facts` are the rigid facts that always hold."""

    output: str
    rules: tuple[PastRule, ...]
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
        """Whether the rules tell constants apart that they do not name."""
        return any(part.op not in ("=", "!=") for rule in self.rules for part in rule.comparisons)

    def cut(self, window: int) -> Query:
        """The query with its rules of radius at most `window`: what the streaming algorithm computes that keeps
        only so much (theorem 8)."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.radius <= window))


def forward_query(program: Program, output: str) -> Query:
    """The query for a predicate; raises for an unknown one, and for every rule that is not forward-propagating."""
    temporal = program.temporal
    if temporal is None:
        message = "windows are analysed for temporal Datalog, and these rules are DatalogMTL"
        help = "`tidelog check` says what these rules keep, and why; a .tdl file can be analysed"
        raise TidelogError(Diagnostic("TL601", message, law=LAW, help=help))
    require_known([output], known_predicates(program))
    needed = _needed(temporal.rules, output)
    rules = [rule for rule in temporal.rules if rule.head and rule.head.predicate in needed]
    facts = [fact for fact in temporal.facts if fact.head and fact.head.predicate in needed]
    wrong = [found for rule in (*rules, *facts) for found in _wrong(rule)]
    if wrong:
        raise TidelogError(wrong)
    kinds = {name: (arity, True) for name, arity in temporal.temporal}
    kinds |= {name: (arity, False) for name, arity in temporal.rigid}
    past = tuple(map(_past, rules))
    used = dict.fromkeys([output, *(atom.predicate for rule in past for atom in rule.atoms), *sorted(needed)])
    return Query(
        output,
        past,
        frozenset((fact.head.predicate, _values(fact.head)) for fact in facts if fact.head),
        {name: kinds[name][0] for name in used},
        frozenset(name for name in used if kinds[name][1]),
        tuple(name for name in used if name not in {rule.predicate for rule in past}),
    )


def _needed(rules: Iterable[TemporalRule], output: str) -> set[str]:
    needed, pending = {output}, [output]
    while pending:
        name = pending.pop()
        for rule in rules:
            if rule.head and rule.head.predicate == name:
                found = {atom.predicate for atom, _ in _literals(rule)} - needed
                needed |= found
                pending += found
    return needed


def _literals(rule: TemporalRule) -> Iterator[tuple[TemporalAtom, bool]]:
    for literal in rule.body:
        if isinstance(literal, TemporalLiteral):
            yield literal.atom, literal.negated


def _wrong(rule: TemporalRule) -> Iterator[Diagnostic]:
    """Why a rule is not forward-propagating: the first reason."""
    assert rule.head is not None
    head = rule.head.time
    body = list(_literals(rule))
    name = f"`{' '.join(rule.text.split()).rstrip('.') or format_temporal_rule(rule).rstrip('.')}`"

    def found(reason: str, place: Place | None, help: str | None = None) -> Iterator[Diagnostic]:
        yield Diagnostic("TL601", f"{name} is not forward-propagating: {reason}", place or rule.place, LAW, help)

    for atom, negated in body:
        if negated:
            yield from found(f"it negates {atom.predicate}", atom.place)
            return
    for atom in (rule.head, *(atom for atom, _ in body)):
        if atom.time and atom.time.variable is None:
            help = "a fact belongs into the data" if not rule.body else "use a predicate that holds at that time"
            yield from found(f"it names the time point {atom.time.offset}", atom.place, help)
            return
    for atom, _ in body:
        shown = format_temporal_atom(atom)
        if atom.time and head is None:
            yield from found(f"its head has no time, but {shown} has", atom.place, "give the head the time")
            return
        if atom.time and head and atom.time.variable != head.variable:
            reason = f"{shown} has a time of its own, {atom.time.variable}, besides {head.variable} of the head"
            yield from found(reason, atom.place)
            return
        if atom.time and head and atom.time.offset > head.offset:
            later = atom.time.offset - head.offset
            reason = f"{shown} is later than the head, by {later}"
            yield from found(reason, atom.place, "let the head hold at the time of the latest body atom")
            return
    if head and not any(atom.time for atom, _ in body):
        yield from found(f"the time {head.variable} of its head occurs nowhere in its body", rule.head.place)


def _past(rule: TemporalRule) -> PastRule:
    head = rule.head
    assert head is not None
    body = tuple(
        PastAtom(atom.predicate, atom.args, head.time.offset - atom.time.offset if atom.time and head.time else None)
        for atom, _ in _literals(rule)
    )
    comparisons = tuple(literal for literal in rule.body if isinstance(literal, Comparison))
    return PastRule(head.predicate, head.args, head.time is not None, body, comparisons, rule)


def _values(atom: TemporalAtom) -> tuple[Value, ...]:
    return tuple(term.value for term in atom.args if isinstance(term, Constant))

"""Find which arguments of temporal Datalog are times, and build the program with them.

Nothing in a `.tdl` file says which predicates are temporal, apart from optional directives: it follows from use. Rules
are first read with plain arguments (`PlainRule`). Over all rules together, `infer_temporal_predicates` finds the
temporal predicates, `diagnose_time_arguments` reports arguments that are a time in one place and an object in another,
and `build_program` turns the last argument of temporal atoms into a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.errors import Diagnostic, Place
from tidelog.language.syntax import (
    Comparison,
    Constant,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    Term,
    TimeTerm,
    Variable,
)
from tidelog.language.wording import plural

#: A predicate and the number of all its arguments, time included.
Signature = tuple[str, int]


@dataclass(frozen=True)
class Shifted:
    """`T+k` or `T-k` as an argument."""

    variable: str
    offset: int


@dataclass(frozen=True)
class PlainAtom:
    """An atom before it is known whether its last argument is a time; `places` has the place of each argument."""

    predicate: str
    args: tuple[Term | Shifted, ...]
    place: Place | None = None
    places: tuple[Place | None, ...] = ()

    @property
    def signature(self) -> Signature:
        return self.predicate, len(self.args)

    def place_of(self, position: int) -> Place | None:
        """Return the place of an argument, or of the atom if that is unknown."""
        return self.places[position] if self.places else self.place


@dataclass(frozen=True)
class PlainRule:
    """A rule of plain atoms; a body literal is an atom with whether it is negated."""

    head: PlainAtom | None
    body: tuple[tuple[PlainAtom, bool] | Comparison, ...]
    text: str = ""
    place: Place | None = None

    def atoms(self) -> Iterator[PlainAtom]:
        """Yield the atoms of the rule, head first."""
        if self.head:
            yield self.head
        for literal in self.body:
            if not isinstance(literal, Comparison):
                yield literal[0]


@dataclass(frozen=True)
class _RuleVariable:
    """A variable of the rule with this number."""

    rule: int
    name: str


@dataclass
class Declarations:
    """The predicates that `#temporal` and `#rigid` declare, with the places of the declarations."""

    temporal: dict[Signature, Place | None] = field(default_factory=dict)
    rigid: dict[Signature, Place | None] = field(default_factory=dict)


def infer_temporal_predicates(rules: Sequence[PlainRule], declared: Declarations) -> dict[Signature, Place | None]:
    """Find the temporal predicates, each with the place that shows it.

    A predicate is temporal if it is declared so, if its last argument is a `T+k` somewhere, or if its last argument
    shares a variable with a time. Predicates and the variables of each rule are the nodes of a graph that links a
    predicate to the variables in its last position; what a `T+k` or a declaration leads to is about time.
    """
    links: dict[Signature | _RuleVariable, list[tuple[Signature | _RuleVariable, Place | None]]] = {}
    reached: dict[Signature | _RuleVariable, Place | None] = {}
    for signature, place in declared.temporal.items():
        reached[signature] = place
    for number, rule in enumerate(rules):
        for atom in rule.atoms():
            for i, arg in enumerate(atom.args):
                place, last = atom.place_of(i), i == len(atom.args) - 1 and atom.signature not in declared.rigid
                if isinstance(arg, Shifted):
                    reached.setdefault(_RuleVariable(number, arg.variable), place)
                    if last:
                        reached.setdefault(atom.signature, place)
                elif isinstance(arg, Variable) and last:
                    variable = _RuleVariable(number, arg.name)
                    links.setdefault(variable, []).append((atom.signature, place))
                    links.setdefault(atom.signature, []).append((variable, place))
    pending = list(reached)
    while pending:
        for node, place in links.get(pending.pop(), ()):
            if node not in reached:
                reached[node] = place
                pending.append(node)
    return {node: place for node, place in reached.items() if isinstance(node, tuple)}


def find_time_variables(rule: PlainRule, temporal: Collection[Signature]) -> dict[str, Place | None]:
    """Find the variables of a rule that stand for times, each with the first place that shows it."""
    times: dict[str, Place | None] = {}
    for atom in rule.atoms():
        for i, arg in enumerate(atom.args):
            if isinstance(arg, Shifted):
                times.setdefault(arg.variable, atom.place_of(i))
            elif isinstance(arg, Variable) and i == len(atom.args) - 1 and atom.signature in temporal:
                times.setdefault(arg.name, atom.place_of(i))
    return times


def diagnose_time_arguments(
    rules: Sequence[PlainRule], declared: Declarations, temporal: dict[Signature, Place | None]
) -> list[Diagnostic]:
    """Return the problems with arguments that are a time in one place and an object in another, and with arities."""
    errors: list[Diagnostic] = []
    first: dict[str, PlainAtom] = {}
    for rule in rules:
        times = find_time_variables(rule, temporal)
        for atom in rule.atoms():
            errors += _diagnose_arity(first.setdefault(atom.predicate, atom), atom, temporal)
            errors += diagnose_arguments(atom, times, declared, temporal)
        for literal in rule.body:
            if isinstance(literal, Comparison):
                for term in (literal.left, literal.right):
                    if isinstance(term, Variable) and term.name in times:
                        errors.append(_report_time_as_object(term.name, times, literal.place, "in a comparison"))
    return errors


def _diagnose_arity(first: PlainAtom, atom: PlainAtom, temporal: dict[Signature, Place | None]) -> Iterator[Diagnostic]:
    here, there = len(atom.args), len(first.args)
    if here == there:
        return
    timed = [part for part in (first, atom) if part.signature in temporal]
    if len(timed) == 1 and abs(here - there) == 1 and len(timed[0].args) == max(here, there):
        where = ("with", "without") if timed[0] is atom else ("without", "with")
        message = f"{atom.predicate} is used {where[0]} a time here, and {where[1]} one at {first.place}"
        yield Diagnostic("TL107", message, atom.place)
    else:
        message = f"{atom.predicate} has {plural(here, 'argument')} here but {there} at {first.place}, time included"
        yield Diagnostic("TL102", message, atom.place)


def diagnose_arguments(
    atom: PlainAtom, times: dict[str, Place | None], declared: Declarations, temporal: dict[Signature, Place | None]
) -> Iterator[Diagnostic]:
    """Yield the problems with the arguments of one atom, given the time variables of its rule."""
    last = len(atom.args) - 1
    for i, arg in enumerate(atom.args):
        place = atom.place_of(i)
        if i == last and atom.signature in temporal:
            if isinstance(arg, Constant):
                yield from _diagnose_constant(atom, arg, temporal[atom.signature])
        elif isinstance(arg, Shifted) and i == last:
            message = f"{atom.predicate} is declared rigid at {declared.rigid[atom.signature]} but has a time here"
            yield Diagnostic("TL107", message, place)
        elif isinstance(arg, Shifted):
            yield Diagnostic("TL108", "a time before the last argument", place)
        elif isinstance(arg, Variable) and arg.name in times:
            yield _report_time_as_object(arg.name, times, place, f"in {atom.predicate}")


def _diagnose_constant(atom: PlainAtom, constant: Constant, shown: Place | None) -> Iterator[Diagnostic]:
    place, value = atom.place_of(-1), constant.value
    if isinstance(value, str):
        message = f"{atom.predicate} is temporal, as {shown} shows, but its last argument is an object here"
        directive = f"#rigid {atom.predicate}/{len(atom.args)}."
        help = f"if {atom.predicate} is rigid, use another variable there, or say `{directive}`"
        yield Diagnostic("TL107", message, place, help=help)
    elif value.denominator != 1 or value < 0:
        yield Diagnostic("TL110", f"{value} is not a time", place)


def _report_time_as_object(name: str, times: dict[str, Place | None], place: Place | None, where: str) -> Diagnostic:
    message = f"{name} is a time, as {times[name]} shows, but is used as an object {where}"
    help = "use another variable, or say which predicates are rigid with `#rigid P/2.`"
    return Diagnostic("TL108", message, place, help=help)


def build_program(rules: Iterable[PlainRule], declared: Declarations, temporal: Iterable[Signature]) -> TemporalProgram:
    """Build the program, given the predicates whose last argument is a time."""
    known = set(temporal)
    built = [_build_rule(rule, known) for rule in rules]
    signatures = {atom.signature for rule in rules for atom in rule.atoms()} | set(declared.rigid)
    facts = tuple(rule for rule in built if _is_fact(rule))
    return TemporalProgram(
        tuple(rule for rule in built if not _is_fact(rule)),
        facts,
        frozenset((name, arity - 1) for name, arity in known),
        frozenset(signatures - known),
        frozenset(declared.rigid),
    )


def _build_rule(rule: PlainRule, temporal: set[Signature]) -> TemporalRule:
    body = tuple(
        literal if isinstance(literal, Comparison) else TemporalLiteral(build_atom(literal[0], temporal), literal[1])
        for literal in rule.body
    )
    return TemporalRule(build_atom(rule.head, temporal) if rule.head else None, body, rule.text, rule.place)


def build_atom(atom: PlainAtom, temporal: set[Signature]) -> TemporalAtom:
    """Build an atom, given the predicates whose last argument is a time."""
    terms = [arg for arg in atom.args if not isinstance(arg, Shifted)]
    if atom.signature not in temporal:
        return TemporalAtom(atom.predicate, tuple(terms), None, atom.place)
    return TemporalAtom(atom.predicate, tuple(terms[: len(atom.args) - 1]), _time(atom.args[-1]), atom.place)


def _time(arg: Term | Shifted) -> TimeTerm:
    match arg:
        case Shifted(variable, offset):
            return TimeTerm(variable, offset)
        case Variable(name):
            return TimeTerm(name, 0)
        case Constant(Fraction() as value):
            return TimeTerm(None, int(value))
        case _:
            raise AssertionError(f"{arg} was checked to be a time")


def _is_fact(rule: TemporalRule) -> bool:
    head = rule.head
    if head is None or rule.body or (head.time and head.time.variable):
        return False
    return not any(isinstance(term, Variable) for term in head.args)


def find_needed_directives(program: TemporalProgram) -> list[str]:
    """Return the directives without which the rules and facts of a program would be read differently."""
    rules = [_to_plain_rule(rule) for rule in (*program.rules, *program.facts)]
    shown = set(infer_temporal_predicates(rules, Declarations()))
    temporal = {(name, arity + 1) for name, arity in program.temporal}
    # Rigid predicates first: with them declared, predicates that their last arguments made temporal may be rigid, too.
    rigid = sorted(program.rigid & shown)
    shown = set(infer_temporal_predicates(rules, Declarations(rigid=dict.fromkeys(rigid))))
    unseen = sorted(temporal - shown)
    return [f"#rigid {name}/{n}." for name, n in rigid] + [f"#temporal {name}/{n}." for name, n in unseen]


def with_temporal_query(program: TemporalProgram, predicate: str) -> tuple[TemporalProgram, list[Diagnostic]]:
    """Read a program again with one more temporal predicate, and so all that shares its time variable.

    Return the program and the problems of that reading. A predicate that is temporal already, that is declared rigid or
    that has no arguments changes nothing.
    """
    signatures = {(name, arity) for name, arity in program.rigid if name == predicate and arity}
    signatures -= program.declared_rigid
    if not signatures:
        return program, []
    rules = [_to_plain_rule(rule) for rule in (*program.rules, *program.facts)]
    temporal: dict[Signature, Place | None] = {(name, arity + 1): None for name, arity in program.temporal}
    rigid = dict.fromkeys(program.declared_rigid)
    declared = Declarations(temporal | dict.fromkeys(signatures), rigid)
    shown = infer_temporal_predicates(rules, declared)
    problems = diagnose_time_arguments(rules, declared, shown)
    return build_program(rules, declared, shown), problems


def _to_plain_rule(rule: TemporalRule) -> PlainRule:
    body = tuple(
        literal if isinstance(literal, Comparison) else (_to_plain_atom(literal.atom), literal.negated)
        for literal in rule.body
    )
    return PlainRule(_to_plain_atom(rule.head) if rule.head else None, body, rule.text, rule.place)


def _to_plain_atom(atom: TemporalAtom) -> PlainAtom:
    time = atom.time
    if time is None:
        return PlainAtom(atom.predicate, atom.args, atom.place)
    last: Term | Shifted
    if time.variable is None:
        last = Constant(Fraction(time.offset))
    else:
        last = Shifted(time.variable, time.offset) if time.offset else Variable(time.variable)
    return PlainAtom(atom.predicate, (*atom.args, last), atom.place)

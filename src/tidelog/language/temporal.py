"""Temporal Datalog (`.tdl`) text to its syntax.

The last argument of a temporal predicate is time. Nothing in the text says which predicates are temporal but their
use, so reading takes two steps: rules with plain arguments first, then, over all rules together, `infer` finds the
temporal predicates, and the last argument of their atoms becomes a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.parser import RuleBuilder, as_token, as_tree, parse_tree
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
from tidelog.language.times import BITS_HELP, BITS_LAW, fits
from tidelog.language.tokens import Source, grammar, split

if TYPE_CHECKING:
    from lark import Token, Tree

#: A predicate and the number of all its arguments, time included.
Signature = tuple[str, int]

TIME_LAW = "the time of a temporal predicate is its last argument: T, T+k, T-k or a natural number"
_ONE_USE_LAW = "a predicate either takes a time as its last argument everywhere, or nowhere"


@dataclass(frozen=True)
class Shifted:
    """`T+k` or `T-k` as an argument."""

    variable: str
    offset: int


@dataclass(frozen=True)
class PlainAtom:
    """An atom before it is known whether its last argument is a time; `places` are those of the arguments."""

    predicate: str
    args: tuple[Term | Shifted, ...]
    place: Place | None = None
    places: tuple[Place | None, ...] = ()

    @property
    def signature(self) -> Signature:
        return self.predicate, len(self.args)

    def place_of(self, position: int) -> Place | None:
        return self.places[position] if self.places else self.place


@dataclass(frozen=True)
class PlainRule:
    head: PlainAtom | None
    body: tuple[tuple[PlainAtom, bool] | Comparison, ...]
    text: str = ""
    place: Place | None = None

    def atoms(self) -> Iterator[PlainAtom]:
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
    """What `#temporal` and `#rigid` say, and where."""

    temporal: dict[Signature, Place | None] = field(default_factory=dict)
    rigid: dict[Signature, Place | None] = field(default_factory=dict)


def parse_temporal(text: str, source_name: str) -> tuple[TemporalProgram | None, list[Diagnostic]]:
    """The rules and facts that read well, and everything that is wrong with the others; no program where it is unclear
    which arguments are times."""
    source = Source.of(text, source_name)
    lark = grammar("tdl", operators=False)
    declared = Declarations()
    rules: list[PlainRule] = []
    errors: list[Diagnostic] = []
    for tokens in split(lark.lex(text)):
        tree = parse_tree(lark, tokens, source)
        if isinstance(tree, Diagnostic):
            errors.append(tree)
        elif tokens[0].type == "DIRECTIVE":
            errors += _declare(as_tree(tree.children[0]), source, declared)
        else:
            builder = _PlainBuilder(tokens, source)
            rule = builder.plain(as_tree(tree.children[0]))
            errors += builder.errors
            if not builder.errors:
                rules.append(rule)
    temporal = infer(rules, declared)
    wrong = _check(rules, declared, temporal)
    return None if wrong else build(rules, declared, temporal), errors + wrong


class _PlainBuilder(RuleBuilder):
    """Parse trees of temporal Datalog; terms and comparisons are those of DatalogMTL."""

    def plain(self, tree: Tree[Token]) -> PlainRule:
        parts = [as_tree(child) for child in tree.children]
        head = None
        if tree.data != "constraint":
            first = parts.pop(0)
            head = self.plain_atom(first) if first.data == "atom" else None
        body = tuple(self.plain_literal(as_tree(child)) for child in parts[0].children) if parts else ()
        text = self.source.between(self.tokens[0], self.tokens[-1])
        return PlainRule(head, body, text, self.source.place(self.tokens[0]))

    def plain_literal(self, tree: Tree[Token]) -> tuple[PlainAtom, bool] | Comparison:
        if tree.data in ("positive", "negative"):
            return self.plain_atom(as_tree(tree.children[-1])), tree.data == "negative"
        return self.comparison(tree, negated=tree.data == "denied_comparison")

    def plain_atom(self, tree: Tree[Token]) -> PlainAtom:
        name = as_token(tree.children[0])
        arguments = [as_tree(child) for child in tree.children[1:]]
        places = (self.source.place(as_token(a.children[0]), as_token(a.children[-1])) for a in arguments)
        args = tuple(map(self.argument, arguments))
        return PlainAtom(str(name), args, self.source.place(name), tuple(places))

    def argument(self, tree: Tree[Token]) -> Term | Shifted:
        if tree.data != "shifted":
            return self.term(tree)
        name, sign, written = map(as_token, tree.children)
        offset = self.number(written)
        if not (name[0] == "_" or name[0].isupper()) or name == "_":
            self._complain(name, f"`{name}` is no variable")
        if offset.denominator != 1:
            self._complain(written, f"`{written}` is no whole number of steps")
        elif not fits(offset):
            message = f"the offset {written} leaves 63 bits"
            self.errors.append(Diagnostic("TL204", message, self.source.place(written), BITS_LAW, BITS_HELP))
        return Shifted(str(name), -int(offset) if sign == "-" else int(offset))

    def _complain(self, token: Token, message: str) -> None:
        self.errors.append(Diagnostic("TL110", message, self.source.place(token), TIME_LAW))


def parse_query(text: str, program: TemporalProgram, source_name: str = "<query>") -> TemporalAtom:
    """A single atom like `Malf(X, T)`, with the time of a temporal predicate as its last argument.

    >>> program, _ = parse_temporal("Malf(X, T-2) :- Shdn(X, T).", "<text>")
    >>> parse_query("Malf(X, T)", program)
    TemporalAtom(predicate='Malf', args=(Variable(name='X', anonymous=False),), time=TimeTerm(variable='T', offset=0))
    """
    source = Source.of(text, source_name)
    lark = grammar("tdl", operators=False)
    parts = list(split(lark.lex(text)))
    tree = parse_tree(lark, parts[0], source) if len(parts) == 1 else None
    law = "a query is one atom: Malf(X, T)"
    if isinstance(tree, Diagnostic):
        raise TidelogError(tree)
    item = as_tree(tree.children[0]) if tree else None
    if item is None or item.data != "rule" or len(item.children) != 1 or as_tree(item.children[0]).data != "atom":
        raise TidelogError(Diagnostic("TL001", f"`{text}` is not a single atom", law=law))
    builder = _PlainBuilder(parts[0], source)
    atom = builder.plain_atom(as_tree(item.children[0]))
    arities = {name: arity + 1 for name, arity in program.temporal} | dict(program.rigid)
    timed = {(name, arity + 1) for name, arity in program.temporal}
    errors = list(builder.errors)
    if atom.predicate not in arities:
        close = suggest(atom.predicate, arities)
        help = f"did you mean {close}?" if close else f"the predicates are {', '.join(sorted(arities))}"
        errors.append(Diagnostic("TL302", f"{atom.predicate} does not occur in the rules", atom.place, law, help))
    elif len(atom.args) != arities[atom.predicate]:
        time = ", time included" if (atom.predicate, arities[atom.predicate]) in timed else ""
        message = f"{atom.predicate} has {arities[atom.predicate]} arguments{time}, not {len(atom.args)}"
        errors.append(Diagnostic("TL102", message, atom.place, law))
    else:
        times = time_variables(PlainRule(atom, ()), timed)
        errors += _check_arguments(atom, times, Declarations(rigid=dict.fromkeys(program.rigid)), dict.fromkeys(timed))
    if errors:
        raise TidelogError(errors)
    return _build_atom(atom, timed)


def _declare(tree: Tree[Token], source: Source, declared: Declarations) -> Iterator[Diagnostic]:
    word = as_token(tree.children[0])
    tables = {"#temporal": declared.temporal, "#rigid": declared.rigid}
    if word not in tables:
        meant = suggest(str(word), tables)
        help = f"did you mean {meant}?" if meant else "comments start with `%` in temporal Datalog"
        law = "the directives are `#temporal P/3.` and `#rigid Succ/2.`"
        yield Diagnostic("TL009", f"there is no directive `{word}`", source.place(word), law, help)
        return
    for child in tree.children[1:]:
        name, number = map(as_token, as_tree(child).children)
        place = source.place(name, number)
        if not number.isdigit() or len(number) > 9 or (word == "#temporal" and int(number) == 0):
            law = "a directive counts all arguments, and a temporal predicate has at least one: its time"
            yield Diagnostic("TL009", f"`{number}` is no number of arguments", source.place(number), law)
            continue
        signature = (str(name), int(number))
        tables[str(word)][signature] = place
        if signature in declared.temporal and signature in declared.rigid:
            yield Diagnostic("TL107", f"{name} is declared both temporal and rigid", place, _ONE_USE_LAW)


def infer(rules: Sequence[PlainRule], declared: Declarations) -> dict[Signature, Place | None]:
    """The temporal predicates, each with the place that shows it: declared so, or with a last argument `T+k`, or one
    that shares a variable with a time.

    Predicates and the variables of each rule are the nodes of a graph that links a predicate to the variables in its
    last position; what can be reached from a `T+k` or a declaration is about time.
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
    waiting = list(reached)
    while waiting:
        for node, place in links.get(waiting.pop(), ()):
            if node not in reached:
                reached[node] = place
                waiting.append(node)
    return {node: place for node, place in reached.items() if isinstance(node, tuple)}


def time_variables(rule: PlainRule, temporal: Collection[Signature]) -> dict[str, Place | None]:
    """The variables of a rule that stand for times, with the first place that shows it."""
    found: dict[str, Place | None] = {}
    for atom in rule.atoms():
        for i, arg in enumerate(atom.args):
            if isinstance(arg, Shifted):
                found.setdefault(arg.variable, atom.place_of(i))
            elif isinstance(arg, Variable) and i == len(atom.args) - 1 and atom.signature in temporal:
                found.setdefault(arg.name, atom.place_of(i))
    return found


def _check(
    rules: Sequence[PlainRule], declared: Declarations, temporal: dict[Signature, Place | None]
) -> list[Diagnostic]:
    """Arguments that are a time in one place and an object in another, and arities."""
    errors: list[Diagnostic] = []
    first: dict[str, PlainAtom] = {}
    for rule in rules:
        times = time_variables(rule, temporal)
        for atom in rule.atoms():
            errors += _check_arity(first.setdefault(atom.predicate, atom), atom, temporal)
            errors += _check_arguments(atom, times, declared, temporal)
        for literal in rule.body:
            if isinstance(literal, Comparison):
                for term in (literal.left, literal.right):
                    if isinstance(term, Variable) and term.name in times:
                        errors.append(_time_as_object(term.name, times, literal.place, "in a comparison"))
    return errors


def _check_arity(first: PlainAtom, atom: PlainAtom, temporal: dict[Signature, Place | None]) -> Iterator[Diagnostic]:
    here, there = len(atom.args), len(first.args)
    if here == there:
        return
    timed = [part for part in (first, atom) if part.signature in temporal]
    if len(timed) == 1 and abs(here - there) == 1 and len(timed[0].args) == max(here, there):
        where = ("with", "without") if timed[0] is atom else ("without", "with")
        message = f"{atom.predicate} is used {where[0]} a time here, and {where[1]} one at {first.place}"
        yield Diagnostic("TL107", message, atom.place, _ONE_USE_LAW)
    else:
        message = f"{atom.predicate} has {here} arguments here but {there} at {first.place}, time included"
        yield Diagnostic("TL102", message, atom.place, "a predicate has the same number of arguments everywhere")


def _check_arguments(
    atom: PlainAtom, times: dict[str, Place | None], declared: Declarations, temporal: dict[Signature, Place | None]
) -> Iterator[Diagnostic]:
    last = len(atom.args) - 1
    for i, arg in enumerate(atom.args):
        place = atom.place_of(i)
        if i == last and atom.signature in temporal:
            if isinstance(arg, Constant):
                yield from _check_constant(atom, arg, temporal[atom.signature])
        elif isinstance(arg, Shifted) and i == last:
            message = f"{atom.predicate} is declared rigid at {declared.rigid[atom.signature]} but has a time here"
            yield Diagnostic("TL107", message, place, _ONE_USE_LAW)
        elif isinstance(arg, Shifted):
            yield Diagnostic("TL108", "a time before the last argument", place, TIME_LAW)
        elif isinstance(arg, Variable) and arg.name in times:
            yield _time_as_object(arg.name, times, place, f"in {atom.predicate}")


def _check_constant(atom: PlainAtom, constant: Constant, shown: Place | None) -> Iterator[Diagnostic]:
    place, value = atom.place_of(-1), constant.value
    if isinstance(value, str):
        message = f"{atom.predicate} is temporal, as {shown} shows, but its last argument is an object here"
        directive = f"#rigid {atom.predicate}/{len(atom.args)}."
        help = f"if {atom.predicate} is rigid, use another variable there, or say `{directive}`"
        yield Diagnostic("TL107", message, place, _ONE_USE_LAW, help)
    elif value.denominator != 1 or value < 0:
        yield Diagnostic("TL110", f"{value} is not a time", place, TIME_LAW)


def _time_as_object(name: str, times: dict[str, Place | None], place: Place | None, where: str) -> Diagnostic:
    message = f"{name} is a time, as {times[name]} shows, but is used as an object {where}"
    help = "use another variable, or say which predicates are rigid with `#rigid P/2.`"
    return Diagnostic("TL108", message, place, TIME_LAW, help)


def build(rules: Iterable[PlainRule], declared: Declarations, temporal: Iterable[Signature]) -> TemporalProgram:
    """The program, once it is known which last arguments are times."""
    known = set(temporal)
    built = [_build_rule(rule, known) for rule in rules]
    signatures = {atom.signature for rule in rules for atom in rule.atoms()} | set(declared.rigid)
    facts = tuple(rule for rule in built if _is_fact(rule))
    return TemporalProgram(
        tuple(rule for rule in built if not _is_fact(rule)),
        facts,
        frozenset((name, arity - 1) for name, arity in known),
        frozenset(signatures - known),
    )


def _build_rule(rule: PlainRule, temporal: set[Signature]) -> TemporalRule:
    body = tuple(
        literal if isinstance(literal, Comparison) else TemporalLiteral(_build_atom(literal[0], temporal), literal[1])
        for literal in rule.body
    )
    return TemporalRule(_build_atom(rule.head, temporal) if rule.head else None, body, rule.text, rule.place)


def _build_atom(atom: PlainAtom, temporal: set[Signature]) -> TemporalAtom:
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


def undeclared(program: TemporalProgram) -> list[str]:
    """The directives that a program needs, since its rules and facts alone would be read otherwise."""
    rules = [_plain_rule(rule) for rule in (*program.rules, *program.facts)]
    shown = set(infer(rules, Declarations()))
    temporal = {(name, arity + 1) for name, arity in program.temporal}
    # Rigid predicates first: with them declared, what their last arguments made temporal must be judged anew.
    rigid = sorted(program.rigid & shown)
    shown = set(infer(rules, Declarations(rigid=dict.fromkeys(rigid))))
    unseen = sorted(temporal - shown)
    return [f"#rigid {name}/{n}." for name, n in rigid] + [f"#temporal {name}/{n}." for name, n in unseen]


def _plain_rule(rule: TemporalRule) -> PlainRule:
    body = tuple(
        literal if isinstance(literal, Comparison) else (_plain_atom(literal.atom), literal.negated)
        for literal in rule.body
    )
    return PlainRule(_plain_atom(rule.head) if rule.head else None, body)


def _plain_atom(atom: TemporalAtom) -> PlainAtom:
    time = atom.time
    if time is None:
        return PlainAtom(atom.predicate, atom.args)
    last: Term | Shifted
    if time.variable is None:
        last = Constant(Fraction(time.offset))
    else:
        last = Shifted(time.variable, time.offset) if time.offset else Variable(time.variable)
    return PlainAtom(atom.predicate, (*atom.args, last))

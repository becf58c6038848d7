"""Random programs with numbers: every form of them, over small data.

Rules are written as text, safe and stratified by construction. Predicates stand in levels; a rule reads those below its
head. Outside of braces, positive literals bind X and Y, and V and W are computed from them. Inside of braces, atoms
mention X, Y, V and W, which are group variables if they are outside too, and K and L: local variables, or group
variables that only the braces bind, if the head has them. Aggregates bind N and M. Recursion is drawn on purpose, in
`climb`, `repeat` and `cycle_through_time`: what is drawn freely is seldom recursive in a way that means something.

Hypothesis draws a number for each program and no more: what it draws itself has many programs in it that differ in a
detail, and many that derive nothing. `smaller_cases` makes failing programs smaller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random

from hypothesis import strategies as st

from numeric_values import body_aggregates
from strategies import COMPARISONS, Case, Features, bound_variables, numbered
from tidelog.language.parser import parse_rules
from tidelog.language.printer import format_term
from tidelog.language.syntax import BodyLiteral, Condition, Constant, Fact, Literal, Rule, Value
from tidelog.timeline.interval import INF, Interval

#: Numbers, and others: texts, and a number that leaves 63 bits when it is added to itself.
NUMBERS: tuple[Value, ...] = (*map(Fraction, (0, 1, 2, 3, -3)), Fraction(1, 2), Fraction(1, 3))
OTHERS: tuple[Value, ...] = ("a", "b", "Up", "1", "a", "b", "Up", "1", Fraction(2**62))
GIVEN = (("A", 1), ("B", 2), ("C", 0))
DERIVED = (("E", 1), ("F", 2), ("G", 1))
KEYS: tuple[Value, ...] = ("k1", "k2", "k3", Fraction(1))


@dataclass(frozen=True)
class Numbers(Features):
    """A part of the language with numbers."""

    #: Which aggregates there are: of what holds now, by occurrence in windows, durations and starts.
    now: bool = True
    windows: bool = True
    durations: bool = True
    #: Whether constants are texts alone, and operations and tests mostly those of texts.
    texts: bool = False
    #: Whether every atom has one more argument in front, the same variable in all of a rule: a key to split by.
    keyed: bool = False
    #: Whether braces bind every variable that they use: a stream cannot look back for values that are new outside.
    closed: bool = False
    #: Whether all rules have aggregates, if there are any.
    always: bool = False
    #: `not` and aggregates in cycles that go back in time.
    through_time: bool = False
    #: Arithmetic in recursion, and what repeats for ever.
    recursion: bool = False


def numeric_cases(features: Numbers) -> st.SearchStrategy[Case]:
    return st.integers(0, 2**40).map(lambda seed: numeric_case(seed, features))


def numeric_case(seed: int, features: Numbers) -> Case:
    """A program with numbers and a small dataset for it."""
    return Writer(Random(seed), features).case()


@dataclass
class Writer:
    """Writes programs, with choices of its own."""

    random: Random
    features: Numbers
    constants: list[Value] = field(default_factory=list)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def pick(self, *words: str) -> str:
        return self.random.choice(words)

    # Programs

    def case(self) -> Case:
        texts = [value for value in OTHERS[:4] if self.features.texts]
        self.constants = self.random.sample(texts or NUMBERS, self.random.choice((1, 2, 2)))
        if len(self.constants) == 1 or self.chance(2):
            self.constants.append(self.random.choice(OTHERS))
        lines: list[str] = []
        for level, head in enumerate(DERIVED[: self.random.choice((1, 1, 2, 2, 3))]):
            usable = GIVEN + DERIVED[:level]
            kinds: list[Callable[[], list[str]]] = []
            if self.features.through_time:
                kinds.append(lambda head=head: self.cycle_through_time(*head))  # type: ignore[misc]
            if self.features.recursion:
                kinds.append(lambda head=head: self.recursion(*head))  # type: ignore[misc]
            if kinds and (level == 0 or self.chance(3)):
                lines += self.random.choice(kinds)()
            else:
                lines += [self.rule(head, usable) for _ in range(self.random.choice((1, 1, 2)))]
        if self.features.constraints and self.chance(3):
            lines.append(f"Bottom :- {self.rule(DERIVED[0], GIVEN).split(' :- ', 1)[1]}")
        text = add_key("\n".join(lines)) if self.features.keyed else "\n".join(lines)
        rules, problems = parse_rules(text, "<random>")
        assert not problems, f"{problems[0]} in\n{text}"
        return Case(tuple(map(numbered, rules)), tuple(self.facts()), self.features)

    def facts(self) -> Iterator[Fact]:
        """Facts of the given predicates, mostly points and short intervals."""
        for _ in range(self.random.randint(6, 16)):
            name, arity = self.random.choice(GIVEN + GIVEN[:2])
            args = [self.random.choice(self.constants) for _ in range(arity)]
            if self.features.keyed:
                args.insert(0, self.random.choice(KEYS))
            yield Fact(name, tuple(args), self.interval())

    def interval(self) -> Interval:
        lo, integer = self.time(0, 8), self.features.integer
        if self.features.endless_data and self.chance(12):
            ends: list[tuple[Fraction | float, Fraction | float]] = [(-INF, INF), (-INF, lo), (lo, INF)]
            first, last = self.random.choice(ends)
            return Interval(first, last, first != -INF and self.chance(2), last != INF and self.chance(2))
        if self.chance(2):
            return Interval.point(lo)
        length = self.random.randint(1, 4)
        return Interval(lo, lo + length, self.chance(2) or (integer and length == 1), self.chance(2))

    def time(self, lo: int, hi: int) -> Fraction:
        denominator = self.random.choice(self.features.denominators)
        return Fraction(self.random.randint(lo * denominator, hi * denominator), denominator)

    def range(self, *, endless: bool = False, least: int = 0) -> str:
        """A range, which holds an integer if time does."""
        lo, hi = sorted((self.time(least, least + 3), self.time(least, least + 3)))
        if endless and self.chance(4):
            return f"{self.pick('[', '(')}{lo},inf)"
        if lo == hi or self.chance(2):
            return f"[{lo},{hi}]"
        first = "[" if self.features.integer and hi - lo <= 1 else self.pick("[", "(")
        return f"{first}{lo},{hi}{self.pick(']', ')')}"

    # Expressions

    def constant(self) -> str:
        return format_term(Constant(self.random.choice(self.constants)))

    def number(self) -> str:
        return self.pick("0", "1", "2", "3", "1/2", "(-1)")

    def expression(self, names: Sequence[str], depth: int = 1) -> str:
        """An expression, mostly of numbers; the kinds of its values may not fit."""
        leaf = self.pick(*names)
        if depth == 0:
            return leaf
        inner = self.expression(names, self.random.randrange(depth))
        second = self.pick(*names) if self.chance(2) else self.number()
        match self.random.choice((1, 2, 2, 3)) if self.features.texts else self.random.randrange(9):
            case 0:
                return f"{self.pick('abs', 'floor', 'ceil', '-')}({inner})"
            case 1:
                return f"{self.pick('min', 'max')}({inner}, {second})"
            case 2:
                return f"{self.pick('lower', 'upper', 'length')}({leaf})"
            case 3:
                return f"{leaf} ++ {self.pick(leaf, 'a')}"
            case _:
                return f"({inner}) {self.pick('+', '-', '*', '/', 'mod')} {second}"

    def test(self, names: Sequence[str]) -> str:
        """A comparison of expressions, or a test of text."""
        if self.chance(2 if self.features.texts else 5):
            denied, op = self.pick("", "", "not "), self.pick("starts_with", "ends_with", "contains", "matches")
            pattern = self.pick("[a-z]+", "a|1", "U.", "") if op == "matches" else self.pick("a", "1", "U", "p", "")
            return f'{denied}{op}({self.pick(*names)}, "{pattern}")'
        right = self.pick(*names, self.number(), self.constant())
        return f"{self.expression(names, self.random.randrange(2))} {self.random.choice(COMPARISONS)} {right}"

    # Formulas

    def atom(self, predicates: Sequence[tuple[str, int]], terms: Sequence[str]) -> str:
        name, arity = self.random.choice(predicates)
        return f"{name}({', '.join(self.pick(*terms) for _ in range(arity))})" if arity else name

    def formula(self, predicates: Sequence[tuple[str, int]], terms: Sequence[str]) -> str:
        """An atom, often, or operators over atoms; a left operand has no variable of its own, but may have `_`."""
        atom = self.atom(predicates, terms)
        ops = ["Diamondminus", "Diamondminus", "Boxminus"]
        ops += ["Diamondplus", "Boxplus"] * self.features.backward
        match self.random.randrange(12):
            case 0 | 1 | 2:
                return f"{self.pick(*ops)}{self.range()} {atom}"
            case 3:
                return f"{self.pick(*ops)}{self.range()} {self.pick(*ops)}{self.range()} {atom}"
            case 4:
                left = [*names_in(atom), self.constant()]
                op = self.pick("Since", "Since", "Until") if self.features.backward else "Since"
                return f"{self.atom(predicates, left)} {op}{self.range()} {atom}"
        return atom

    # Aggregates

    def braces(self, lower: Sequence[tuple[str, int]], known: Sequence[str]) -> tuple[str, list[str]]:
        """A body in braces, and the names that are bound in it; `known` is bound outside."""
        terms = [*"XYKKKLLL", "_", *known, *known, *([self.constant()] if self.chance(3) else [])]
        body = [self.formula(lower, terms) for _ in range(self.random.choice((1, 1, 1, 2)))]
        bound = {name for literal in body for name in names_in(literal)}
        inside = sorted(bound if self.features.closed else bound | set(known))
        usable = [*inside, *inside, self.constant()]
        if self.chance(4):
            body.append(f"not {self.formula(lower, usable)}")
        if inside and self.chance(6):
            body.append(self.test(inside))
        if inside and self.chance(6):
            body.append(f"J = {self.expression(inside)}")
            inside = [*inside, "J"]
        self.random.shuffle(body)
        return ", ".join(body), inside

    def aggregate(self, lower: Sequence[tuple[str, int]], known: Sequence[str]) -> str:
        """Any aggregate but a duration."""
        body, inside = self.braces(lower, known)
        features, names = self.features, inside or [self.constant()]
        kinds = ["now"] * 3 * features.now + ["window"] * 4 * features.windows + ["ends"] * 2 * features.windows
        kind = self.pick(*kinds, *["start"] * features.durations)
        if kind == "start":
            return f"start{{ {body} }}"
        range_ = "" if kind == "now" else self.range(endless=True)
        function = self.pick("last", "first") if kind == "ends" else self.pick("count", "sum", "min", "max", "avg")
        distinct = "distinct " if kind != "ends" and self.chance(3) else ""
        value = self.expression(names, self.random.choice((0, 0, 1)))
        if function == "count":
            value = f"{value}, {self.pick(*names)}" if self.chance(2) else value
            value = f"{distinct}{value} : " if distinct else ""
        else:
            value = f"{distinct}{value} : "
        return f"{function}{range_}{{ {value}{body} }}"

    def condition(self, lower: Sequence[tuple[str, int]], known: Sequence[str]) -> str:
        """A literal with an aggregate: a comparison, or one that binds N or M."""
        one, op, plain = self.aggregate(lower, known), self.random.choice(COMPARISONS), self.pick(*known, self.number())
        match self.random.randrange(9):
            case 0 | 1:
                return f"{one} {op} {plain}"
            case 2:
                return f"{one} {op} {self.aggregate(lower, known)} * {self.number()}"
            case 3:
                return f"{self.pick('N', 'M')} = {one} {self.pick('+', '-', '*', '/')} {self.pick(plain, one)}"
            case 4 | 5 if self.features.durations:
                duration = f"duration{self.range()}{{ {self.braces(lower, known)[0]} }}"
                value = self.pick(*known, "0", "1/2", "1", "3/2", "2")
                return f"{duration} {op} {value}" if self.chance(2) else f"{value} {op} {duration}"
        return f"{self.pick('N', 'M')} = {one}"

    # Rules

    def rule(self, head: tuple[str, int], usable: Sequence[tuple[str, int]]) -> str:
        """A rule whose body reads lower predicates."""
        terms = [*"XXYY", *([self.constant()] if self.chance(3) else [])]
        body = [self.formula(usable, terms) for _ in range(self.random.choice((0, 0, 1, 1, 1, 2)))]
        known = sorted({name for literal in body for name in names_in(literal)})
        if known and self.chance(3):
            body.append(f"V = {self.expression(known, self.random.randint(1, 2))}")
            known.append("V")
        if known and self.chance(6):
            body.append(f"{self.expression([*known, '1'], self.random.randrange(2))} = W")
            known.append("W")
        features = self.features
        if features.now or features.windows or features.durations:
            number = self.random.choice((1, 1, 2) if features.always or not known else (0, 1, 1, 1, 2))
            body += [self.condition(usable, known) for _ in range(number)]
        if not body:
            body.append(self.atom(GIVEN[:2], ["X", "Y"]))
            known = sorted(names_in(body[0]))
        if known and self.chance(5):
            body.append(self.test(known))
        if self.chance(4):
            body.append(f"not {self.formula(usable, [*known, *known, self.constant()])}")
        counted = [name for name in ("N", "M") if any(literal.startswith(f"{name} =") for literal in body)]
        found = [*known, *counted * 2]
        grouped = [name for literal in body for name in names_in_braces(literal)]
        if grouped and (not found or self.chance(2)):
            found += grouped
        self.random.shuffle(body)
        return f"{self.head(head, found or [self.constant()])} :- {', '.join(body)}."

    def head(self, head: tuple[str, int], names: Sequence[str]) -> str:
        name, arity = head
        # A number of constants that divides by zero is a mistake; of variables it is undefined.
        computes = names[0][0].isupper()
        args = [self.expression(names) if self.chance(6) and computes else self.pick(*names) for _ in range(arity)]
        box = f"Boxplus[0,{self.random.randint(1, 2)}] " if self.chance(10) else ""
        return f"{box}{name}({', '.join(args)})"

    # Recursion

    def recursion(self, name: str, arity: int) -> list[str]:
        """New values up or down to a bound, at once or in time; or what repeats for ever."""
        rest = "X, " * (arity - 1)
        source = f"A({'V'})" if arity == 1 else "B(X, V)"
        base = f"{name}({rest}V) :- {source}, V <= 9."
        back = self.random.randint(1, 3)
        if self.chance(2):
            return [
                base,
                f"{name}({rest}V) :- Diamondminus[{back},{back + self.random.randint(0, 1)}] {name}({rest}V).",
            ]
        before = f"{name}({rest}M)"
        if self.chance(2):
            before = f"Diamondminus[{back},{back + self.random.randint(0, 1)}] {before}"
        step, bound = self.pick("1", "2", "1/2"), self.random.randint(1, 3)
        grown = [f"N = M + {step}", f"N <= {bound}"] if self.chance(2) else [f"N = M - {step}", f"N >= -{bound}"]
        body = [before, *grown]
        self.random.shuffle(body)
        return [base, f"{name}({rest}N) :- {', '.join(body)}."]

    def cycle_through_time(self, name: str, arity: int) -> list[str]:
        """A predicate that depends on its own past through `not` or an aggregate."""
        own, other = (f"{name}({', '.join(names[:arity])})" for names in ("XY", "KL"))
        source = ("C", "A(X)", "B(X, Y)")[arity]
        back = self.range(least=1)
        first, last = "XY"[arity - 1], "KL"[arity - 1]
        limit, rarely = self.pick("0", "1", "2", "5/2"), f"not Diamondminus{back} {source}"
        match self.random.randrange(8):
            case 0:
                return [f"{own} :- {source}, not Diamondminus{back} {own}."]
            case 1:
                blocked = own.replace(name, f"{name}b")
                return [f"{own} :- {source}, not {blocked}.", f"Boxplus{back} {blocked} :- {own}."]
            case 2:
                return [f"{own} :- count{back}{{ {self.pick(own, other)} }} <= {limit}, {source}."]
            case 3:
                value = f"{self.pick('last', 'first')}{back}{{ {last} : {other} }}"
                return [f"{own} :- {source}, {rarely}.", f"{own} :- {source}, {value} != {first}."]
            case 4:
                return [
                    f"{own} :- {source}, {rarely}.",
                    f"{own} :- {source}, start{{ Diamondminus{back} {self.pick(own, other)} }} <= {limit}.",
                ]
            case 5:
                return [f"{own} :- {source}, sum{{ {last} : Diamondminus{back} {other} }} < {limit}."]
            case 6:
                grown = f"N = max{{ {last} : Diamondminus{back} {other} }} + 1, N <= {limit}"
                return [f"{own} :- {source}, {rarely}.", f"{name}({', '.join('NN'[:arity])}) :- {source}, {grown}."]
        return [f"{own} :- {source}, duration{back}{{ {self.pick(own, other)} }} < {limit}."]


def add_key(text: str) -> str:
    """Rules whose atoms all have the variable Z in front; no variable is named as a predicate is."""
    return re.sub(r"\b([ABCEFG]b?)\b(\(?)", lambda found: f"{found[1]}(Z{', ' if found[2] else ')'}", text)


def body_of(literal: str) -> tuple[BodyLiteral, ...]:
    rules, problems = parse_rules(f"Q :- {literal}.", "<random>")
    assert not problems, literal
    return rules[0].body


def names_in(literals: Iterable[BodyLiteral] | str) -> list[str]:
    """The variables that positive literals bind, by their names."""
    body = body_of(literals) if isinstance(literals, str) else literals
    positive = [literal for literal in body if isinstance(literal, Literal) and not literal.negated]
    return sorted(set[str]().union(*(bound_variables(literal.formula) for literal in positive)))


def names_in_braces(literal: str) -> list[str]:
    """The variables that positive literals in braces bind."""
    return [name for aggregate in body_aggregates(body_of(literal)) for name in names_in(aggregate.body)]


# Smaller cases


def smaller_cases(case: Case) -> Iterator[Case]:
    """The case without one of its facts, rules or literals; some of these are not safe."""
    for i in range(len(case.facts)):
        yield replace(case, facts=case.facts[:i] + case.facts[i + 1 :])
    for i, rule in enumerate(case.rules):
        yield replace(case, rules=case.rules[:i] + case.rules[i + 1 :])
        for smaller in smaller_rules(rule):
            yield replace(case, rules=(*case.rules[:i], numbered(smaller), *case.rules[i + 1 :]))


def smaller_rules(rule: Rule) -> Iterator[Rule]:
    for i, literal in enumerate(rule.body):
        rest = rule.body[:i], rule.body[i + 1 :]
        if len(rule.body) > 1 and not (isinstance(literal, Condition) and literal.in_head):
            yield replace(rule, body=rest[0] + rest[1])
        for aggregate in body_aggregates([literal]):
            for j in range(len(aggregate.body) if len(aggregate.body) > 1 else 0):
                inside = replace(aggregate, body=aggregate.body[:j] + aggregate.body[j + 1 :])
                if isinstance(literal, Condition) and aggregate in (literal.left, literal.right):
                    left, right = (inside if side == aggregate else side for side in (literal.left, literal.right))
                    yield replace(rule, body=(*rest[0], replace(literal, left=left, right=right), *rest[1]))


def shrink_case(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case that still fails, and none of whose smaller cases does."""
    while True:
        found = next((smaller for smaller in smaller_cases(case) if smaller.rules and fails(smaller)), None)
        if found is None:
            return case
        case = found

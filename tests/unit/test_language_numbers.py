"""Arithmetic, text tests and aggregates in rules: what is read, how it is printed, and what is said of mistakes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.token import Name, Operator

from tidelog.analysis.program_warnings import find_program_warnings
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.formatter import format_source
from tidelog.language.parser import parse_rules
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.pygments_lexers import DmtlLexer
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    BodyLiteral,
    Condition,
    Constant,
    Expression,
    Literal,
    Operation,
    Rule,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.timeline.interval import INF, Interval


def errors(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(TidelogError) as caught:
        Program.parse(text)
    return caught.value.diagnostics


def printed(text: str) -> str:
    program = Program.parse(text)
    assert Program.parse(str(program)).rules == program.rules
    return str(program).removesuffix("\n")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("A(V):-P(X),V=X*9/5+32.", "A(V) :- P(X), V = X * 9 / 5 + 32."),
        ("A(V) :- P(X), V = (X + 1) * 2.", "A(V) :- P(X), V = (X + 1) * 2."),
        ("A(V) :- P(X), V = X - (1 - X).", "A(V) :- P(X), V = X - (1 - X)."),
        ("A(V) :- P(X), V = (X - 1) - X.", "A(V) :- P(X), V = X - 1 - X."),
        ("A(V) :- P(X), V = X / 1/3.", "A(V) :- P(X), V = X / 1 / 3."),
        ("A(V) :- P(X), V = X / (1/3).", "A(V) :- P(X), V = X / (1/3)."),
        ("A(V) :- P(X), V = X * 1/4 + 1/3.", "A(V) :- P(X), V = X * 1 / 4 + 1/3."),
        ("A(V) :- P(X), V = X * 9 / 0.5 - 10 / 5min.", "A(V) :- P(X), V = X * 9 / 0.5 - 1/30."),
        ("A(V) :- P(X), V = 1.50 * X.", "A(V) :- P(X), V = 1.5 * X."),
        ("A(V) :- P(X), V = -X * -2.", "A(V) :- P(X), V = -X * -2."),
        ("A(V) :- P(X), V = -(X + 1).", "A(V) :- P(X), V = -(X + 1)."),
        ("A(V) :- P(X), V = X mod 3 - abs( X ).", "A(V) :- P(X), V = X mod 3 - abs(X)."),
        ("A(V) :- P(mod), V = mod mod mod.", "A(V) :- P(mod), V = mod mod mod."),
        ('A(V) :- P(X), V = X ++ "a b" ++ lower(X).', 'A(V) :- P(X), V = X ++ "a b" ++ lower(X).'),
        ("A(X) :- P(X), not X + 1 < 3.", "A(X) :- P(X), X + 1 >= 3."),
        ('A(X) :- P(X), not starts_with(X, "a").', "A(X) :- P(X), not starts_with(X, a)."),
        ('A(X) :- P(X), matches(X, "a.*").', 'A(X) :- P(X), matches(X, "a.*").'),
        ("A(X, X + 1, f(1)) :- P(X).", None),
        ("A(X, X + 1, 0.5) :- P(X).", "A(X, X + 1, 0.5) :- P(X)."),
        ("A(X) :- P(X), X > 10min.", "A(X) :- P(X), X > 600."),
        ("A(X) :- P(X), 0/0 = X.", "A(X) :- P(X), 0 / 0 = X."),
        ("Q(R,N):-N=count{W(X),On(X,R)}.", "Q(R, N) :- N = count{ W(X), On(X, R) }."),
        ("O(C) :- sum{A:Open(C,A)}>1000.", "O(C) :- sum{ A : Open(C, A) } > 1000."),
        ("O(C) :- sum{ P * N : Item(C, P, N) } > 9.", "O(C) :- sum{ P * N : Item(C, P, N) } > 9."),
        ("O(C) :- count[0,10min]{ D(C) } >= 3.", "O(C) :- count[0,600]{ D(C) } >= 3."),
        ("O(C) :- count{ distinct X, Y : D(C, X, Y) } >= 3.", "O(C) :- count{ distinct X, Y : D(C, X, Y) } >= 3."),
        (
            "O(C) :- avg{ A : D(C, A) } < sum{ B : E(C, B) } / 2.",
            "O(C) :- avg{ A : D(C, A) } < sum{ B : E(C, B) } / 2.",
        ),
        ("O(T, C) :- C = last(0,inf){ V : R(T, V) }.", "O(T, C) :- C = last(0,inf){ V : R(T, V) }."),
        (
            "O(T) :- duration[0,1h]{ Hot(T) } >= 30min.",
            "O(T) :- duration[0,3600] { Hot(T) } >= 1800.".replace("] {", "]{"),
        ),
        ("O(T, start{ Hot(T) }) :- P(T).", "O(T, start{ Hot(T) }) :- P(T)."),
        (
            "O(U) :- count{ distinct X : Diamondminus[0,1h] Login(U, X), not Off(X) } > 3, X(U).",
            "O(U) :- count{ distinct X : Diamondminus[0,3600] Login(U, X), not Off(X) } > 3, X(U).",
        ),
        ("min(X) :- max(X), count(X), not sum(X, mod).", "min(X) :- max(X), count(X), not sum(X, mod)."),
    ],
)
def test_expressions_are_printed_in_standard_form(text: str, form: str | None) -> None:
    if form is None:
        assert errors(text)
    else:
        assert printed(text) == form


# Round trips of random rules

values = st.sampled_from(["a", "mod", "min", "distinct", "count", "not", "Up", "a b", "1"])
numbers = st.fractions(-20, 20, max_denominator=12)
variables = st.sampled_from([Variable(name) for name in ("X", "Y", "_z", "Count")])
constants = st.one_of(values, numbers).map(Constant)


def operation(name: str, *args: Expression) -> Expression:
    """An operation as the parser builds it: signs and quotients of numbers are numbers."""
    plain = [arg.value for arg in args if isinstance(arg, Constant) and isinstance(arg.value, Fraction)]
    if name == "-" and len(args) == len(plain) == 1:
        return Constant(-plain[0])
    if name == "/" and len(plain) == 2 and plain[1]:
        return Constant(plain[0] / plain[1])
    return Operation(name, args)


def operations(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    binary = st.sampled_from(["+", "-", "*", "/", "mod", "++", "min", "max"])
    unary = st.sampled_from(["-", "abs", "floor", "ceil", "lower", "upper", "length"])
    return st.one_of(st.builds(operation, binary, inner, inner), st.builds(operation, unary, inner))


expressions: st.SearchStrategy[Expression] = st.recursive(st.one_of(variables, constants), operations, max_leaves=6)
atoms = st.builds(Atom, st.sampled_from(["P", "min", "x:Q"]), st.tuples(st.one_of(variables, constants), variables))
formulas = st.one_of(
    atoms, st.builds(Unary, st.just(UnaryOp.DIAMOND_MINUS), st.just(Interval(Fraction(0), INF, True, False)), atoms)
)
literals = st.builds(Literal, formulas, st.booleans())
compared = st.sampled_from(["<", "<=", "=", "!=", ">", ">="])
tests = st.sampled_from(["starts_with", "not ends_with", "contains", "not matches"])


def is_more_than_a_term(condition: Condition) -> bool:
    sides = (condition.left, condition.right)
    return condition.op not in ("<", "<=", "=", "!=", ">", ">=") or any(
        isinstance(side, Operation | Aggregate) for side in sides
    )


def conditions(sides: st.SearchStrategy[Expression]) -> st.SearchStrategy[Condition]:
    built = st.one_of(st.builds(Condition, compared, sides, sides), st.builds(Condition, tests, sides, sides))
    return built.filter(is_more_than_a_term)


bodies = st.lists(st.one_of(literals, conditions(expressions)), min_size=1, max_size=3).map(tuple)


@st.composite
def aggregates(draw: st.DrawFn) -> Aggregate:
    function = draw(st.sampled_from(AggregateFunction))
    body: tuple[BodyLiteral, ...] = draw(bodies)
    ranged = function.value in ("last", "first", "duration") or (function.value != "start" and draw(st.booleans()))
    span = Interval(draw(st.integers(0, 3).map(Fraction)), Fraction(4), draw(st.booleans()), True) if ranged else None
    if function.value in ("duration", "start"):
        return Aggregate(function, (), body, span)
    distinct = function.value not in ("last", "first") and draw(st.booleans())
    if function is AggregateFunction.COUNT:
        counted = draw(st.lists(expressions, min_size=1, max_size=2)) if distinct else []
        return Aggregate(function, tuple(counted), body, span, distinct)
    return Aggregate(function, (draw(expressions),), body, span, distinct)


sides: st.SearchStrategy[Expression] = st.recursive(st.one_of(expressions, aggregates()), operations, max_leaves=3)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    body = draw(st.lists(st.one_of(literals, conditions(sides)), min_size=1, max_size=3))
    args: list[Variable | Constant] = []
    for arg in draw(st.lists(sides, max_size=2)):
        if isinstance(arg, Variable | Constant):
            args.append(arg)
        elif isinstance(arg, Operation) and arg.name == "/" and all(isinstance(a, Constant) for a in arg.args):
            continue  # a number that divides by zero is no argument
        else:
            number = sum(1 for c in body if isinstance(c, Condition) and c.in_head) + 1
            args.append(Variable(f"${number}"))
            body.append(Condition("=", args[-1], arg, in_head=True))
    return Rule(Atom("H", tuple(args)), tuple(body))


@settings(max_examples=400, deadline=None)
@given(rules())
def test_printed_rules_with_numbers_read_back_as_the_same(rule: Rule) -> None:
    again, problems = parse_rules(format_rule(rule), "test")
    assert not problems
    assert again == [rule]


# Mistakes


@pytest.mark.parametrize(
    ("text", "code", "column", "words"),
    [
        ("A(X) :- P(X), foo(X) > 3.", "TL116", 15, "did you mean floor?"),
        ("A(X) :- P(X), V = sqrt(X).", "TL116", 19, "the functions are abs"),
        ("A(X) :- P(X), Y = Foo(X) + 1.", "TL116", 19, "a predicate has no value"),
        ("A(X) :- P(X), mod(X, 3) = 1.", "TL116", 15, "write X mod Y"),
        ("A(X) :- P(X), Y = round(X).", "TL116", 19, "write floor(X + 1/2)"),
        ("A(X) :- P(X), ABS(X) > 3.", "TL116", 15, "in lower case: abs"),
        ("A(X) :- P(X), abs(X, 1) > 3.", "TL116", 15, "abs takes 1 argument, not 2"),
        ("A(X) :- P(X), Y = max(X, 3, 4).", "TL116", 19, "max takes 2 arguments, not 3"),
        ("A(X) :- P(X), starts_with(X).", "TL116", 15, "starts_with takes 2 arguments"),
        ('A(X) :- P(X), starts_with(X, "a", "b").', "TL116", 15, "starts_with takes 2 arguments"),
        ('A(X) :- P(X), V = contains(X, "a").', "TL116", 19, "is a test, not a value"),
        ("A(X) :- P(X), not Q(X + 1).", "TL117", 21, "compute it beside the atom"),
        ("A(X) :- P(count{ Q(Y) }).", "TL117", 11, "compute it beside the atom"),
        ("A(N) :- N = count(X).", "TL118", 13, "write count{ P(X) }"),
        ("A(N) :- N = sum( V : P(V) ).", "TL118", 13, "sum takes braces"),
        ("A(N) :- N = sum[ V : P(V) ].", "TL118", 13, "sum takes braces"),
        ("A(X) :- P(X), count distinct { X : Q(X) } > 3.", "TL118", 15, "write count{ distinct X : P(X) }"),
        ("A(X) :- P(X), count{X} > 3.", "TL118", 21, "X is read as a predicate"),
        ("A(N) :- P(N), count{} > 3.", "TL118", 21, "empty braces"),
        ("A(N) :- N = SUM{ V : P(V) }.", "TL118", 13, "lower case, not SUM"),
        ("A(N) :- N = COUNT[0,5]{ P(V) }.", "TL118", 13, "lower case, not COUNT"),
        ("A(N) :- N = summ{ V : P(V) }.", "TL118", 13, "did you mean sum?"),
        ("A(N) :- N = median{ V : P(V) }.", "TL118", 13, "there is no aggregate `median`"),
        ("A(N) :- N = sum[10min]{ V : P(V) }.", "TL118", 16, "write sum[0,10min]"),
        ("A(N) :- N = sum{ V P(V) }.", "TL118", 20, "between value and body write `:`"),
        ("A(N) :- N = sum{ V, P(V) }.", "TL118", 13, "sum needs one value before `:`"),
        ("A(N) :- N = sum{ P(V) }.", "TL118", 13, "sum needs one value before `:`"),
        ("A(N) :- N = count{ V : P(V) }.", "TL118", 13, "count{ distinct X : P(X) }"),
        ("A(N) :- N = sum{ V : P(V).", "TL118", 16, "the `{` is not closed"),
        ("A(X) :- P(X), last{ V : Q(V) } > 3.", "TL118", 15, "last needs a range"),
        ("A(X) :- P(X), start[0,5]{ Q(V) } > 3.", "TL118", 15, "start has no range"),
        ("A(X) :- P(X), duration[0,inf){ Q(V) } > 3.", "TL118", 15, "has no end"),
        ("A(L) :- P(X), L = duration[0,5]{ Q(V) } * 2.", "TL118", 19, "it can only be compared"),
        ("A(L) :- L = duration[0,5]{ Q(V) }.", "TL101", 3, "L gets no value from it; compare it"),
        ("A(L) :- P(L), duration[0,5]{ Q(V) } >= L / 2.", "TL118", 15, "give the value a name: V = L / 2"),
        ("A(X) :- P(X), count{ Q(Y), count{ R(Y) } > 1 } > 3.", "TL118", 28, "an aggregate inside another"),
        ("A(X) :- P(X), count{ Q(Y) }.", "TL118", 15, "compare it: count{ P(X) } >= 3"),
        ("A(X) :- P(X), Diamondminus[0,5] count{ Q(Y) } > 3.", "TL118", 33, "inside the braces"),
        ("A(X) :- P(X), X => 3.", "TL001", 17, "write `>=`"),
        ("A(X) :- P(X), X =< 3.", "TL001", 17, "write `<=`"),
        ("A(X) :- P(X), X <> 3.", "TL001", 17, "write `!=`"),
        ("A(Y) :- P(X), Y is X + 1.", "TL001", 17, "write `=`: V = X + 1"),
        ("A(Y) :- P(X), Y := X + 1.", "TL001", 17, "write `=`: V = X + 1"),
        ("A(Y) :- P(X), Y = X % 3.", "TL001", 20, "X mod 3"),
        ("A(Y) :- P(X), Y = X % 3, Q(Y).", "TL001", 20, "X mod 3"),
        ("A(Y) :- P(X), Y = X ** 3.", "TL001", 21, "no powers"),
        ("A(Y) :- P(X), Y = X ^ 3.", "TL002", 21, "no powers"),
        ("A(Y) :- P(X), Y = X // 3.", "TL001", 21, "floor(X / Y)"),
        ('A(Y) :- P(X), Y = X || "a".', "TL001", 21, "write `++`"),
        ("A(X) :- P(X), X MOD 3 = 1.", "TL001", 17, "in lower case"),
        ("A(X) :- P(X), X between 1 and 2.", "TL001", 17, "X >= 1, X <= 2"),
        ("A(X) :- P(X), X < 3 < 4.", "TL001", 21, "one comparison after the other"),
        ("A(X) :- P(X), X + 1.", "TL001", 15, "an expression is not a literal"),
        ("A(X) :- P(X), Diamondminus[0,5] X > 3.", "TL001", 35, "a comparison is a literal of its own"),
        ("A(X) :- P(X), X > 10 min.", "TL007", 19, "next to the number: 10min"),
        ("A(X) :- P(X), {X > 3}.", "TL002", 15, "braces belong to aggregates"),
        ('A(X) :- P(X), matches(X, "(a)\\\\1").', "TL120", 15, "a backreference"),
        ('A(X) :- P(X), matches(X, "a(?=b)").', "TL120", 15, "lookaround"),
        ('A(X) :- P(X), count{ Q(Y), matches(Y, "(") } > 3.', "TL120", 28, "not closed"),
    ],
)
def test_a_mistake_names_its_code_place_and_way_out(text: str, code: str, column: int, words: str) -> None:
    (found,) = errors(text)
    assert found.place is not None
    assert (found.code, found.place.column) == (code, column)
    assert words in f"{found.message} {found.law} {found.help}"


def test_a_comment_after_a_comparison_is_not_taken_for_a_remainder() -> None:
    Program.parse("A(X) :- P(X), X > 3 % 3 is the limit")
    Program.parse("A(X) :- P(X), X > 3. % 3")
    Program.parse("A(X) :- P(X), X > limit % limit\nB(X) :- A(X)")


def test_brackets_that_are_not_closed_do_not_hide_errors_in_other_rules() -> None:
    found = errors("A(N) :- N = sum{ V : P(V).\nB(X) :- P(X), X => 3.\nC(X) :- P(X), min(X > 3.\nD(X) :- Q(Y).")
    assert [problem.place.line for problem in found if problem.place] == [1, 2, 3, 4]


def test_long_expressions_are_refused_before_they_exhaust_the_stack() -> None:
    for text in (" + ".join(["X"] * 300), "(" * 300 + "X" + ")" * 300, "-" * 300 + "X", "abs(" * 300 + "X" + ")" * 300):
        (found,) = errors(f"A(V) :- P(X), V = {text}.")
        assert found.code == "TL008"
    Program.parse(f"A(V) :- P(X), V = {' + '.join(['X'] * 150)}.")


# Warnings, formatter, colours


def test_a_variable_that_occurs_once_is_suspicious_unless_it_tells_rows_apart() -> None:
    def single(text: str) -> list[str]:
        return [warning.message.split()[2] for warning in find_program_warnings(Program.parse(text))]

    assert single("A(X) :- P(X, Y), X > Y * 2.") == []
    assert single("A(X) :- P(X, Y), V = X + 1.") == ["Y", "V"]
    assert single("A(C) :- Card(C), sum{ A : Open(C, Id, A) } > 3.") == []
    assert single("A(C) :- Card(C), count{ P(C, X) } > 3, count{ Q(C, X) } > 3.") == []
    assert single("A(C) :- Card(C, Limit), sum{ A : Open(C, Id, A) } > 3.") == ["Limit"]
    assert single("A(C, 2 * N) :- Card(C), N = count{ P(C, _) }.") == []


def test_the_formatter_keeps_comments_inside_braces() -> None:
    text = "A(X,N) :- P(X), % items\n  N=count{ % rows\n    Q(X,Y), # one\n    Y>3 % two\n  }. % end\n"
    assert format_source(text) == (
        "% items\n% rows\n# one\n% two\nA(X, N) :- P(X), N = count{ Q(X, Y), Y > 3 }.  % end\n"
    )


def test_aggregates_functions_and_variables_in_expressions_have_colours() -> None:
    text = "A(X, Y * 2) :- P(X, Y), sum[0,5]{ V : Q(X, V) } mod Y > abs(X) + Z, Z = count{ B }.\n"
    found = [(value, token) for _, token, value in DmtlLexer().get_tokens_unprocessed(text)]
    assert [value for value, token in found if token is Name.Builtin] == ["sum", "abs", "count"]
    assert [value for value, token in found if token is Name.Function] == ["A", "P", "Q", "B"]
    assert "".join(value for value, token in found if token is Name.Variable) == "XYXYVXVYXZZ"
    assert [value for value, token in found if token in Operator] == ["*", ":-", "mod", ">", "+", "="]

"""Expressions are evaluated exactly, on single bindings and on columns of rows alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.data.symbol_table import Symbols
from tidelog.language import core_rules
from tidelog.language.parser import parse_rules
from tidelog.language.patterns import PatternError
from tidelog.language.syntax import Comparison, Condition, Constant, Expression, Operation, Value, Variable
from tidelog.numeric.calculation import Calculation, Calculator
from tidelog.numeric.expressions import UndefinedError, apply_operation, evaluate, holds
from tidelog.numeric.numbers import Numbers
from tidelog.numeric.pattern_matching import matches_whole
from tidelog.numeric.rows import Rows

X, Y, Z = Variable("X"), Variable("Y"), Variable("Z")


def read_conditions(text: str) -> list[Condition | Comparison]:
    rules, errors = parse_rules(f"A :- {text}.", "test")
    assert not errors
    return [literal for literal in rules[0].body if isinstance(literal, Condition | Comparison)]


def read_expression(text: str) -> Expression:
    return read_conditions(f"V = {text}")[0].right


def value_of(text: str, **binding: Value | int) -> Value:
    bound = {Variable(name): Fraction(value) if isinstance(value, int) else value for name, value in binding.items()}
    return evaluate(read_expression(text), bound)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1 + 0.2", Fraction(3, 10)),
        ("2 - 3 - 4", Fraction(-5)),
        ("2 + 3 * 4", Fraction(14)),
        ("12 / 2 / 3", Fraction(2)),
        ("X / 3", Fraction(-7, 3)),
        ("X mod 3", Fraction(2)),
        ("7 mod (0 - 3)", Fraction(-2)),
        ("7.5 mod 2", Fraction(3, 2)),
        ("-X", Fraction(7)),
        ("-(X + 1) * 2", Fraction(12)),
        ("abs(X)", Fraction(7)),
        ("floor(X / 2)", Fraction(-4)),
        ("ceil(X / 2)", Fraction(-3)),
        ("min(X, 2)", Fraction(-7)),
        ("max(X, 2)", Fraction(2)),
        ("X * 1000000000000000000000", Fraction(-7 * 10**21)),
        ("T ++ T ++ lower(T)", "AbcAbcabc"),
        ("upper(T)", "ABC"),
        ("length(T) + 1", Fraction(4)),
        ('length("héé")', Fraction(3)),
        ('min(T, "Abd")', "Abc"),
    ],
)
def test_the_value_of_an_expression_is_exact(text: str, value: Value) -> None:
    assert value_of(text, X=-7, T="Abc") == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("X / (X - X)", "a division by zero"),
        ("0 / (X - X)", "a division by zero"),
        ("X mod (X - X)", "mod 0"),
        ("X + T", "`\\+` of the text Abc"),
        ("-T", "`-` of the text Abc"),
        ("T ++ X", "`\\+\\+` of the number -7"),
        ("length(X)", "`length` of the number -7"),
        ("lower(X)", "`lower` of the number -7"),
        ("min(X, T)", "min of a number and a text"),
    ],
)
def test_an_operation_without_a_result_is_undefined_and_says_why(text: str, reason: str) -> None:
    with pytest.raises(UndefinedError, match=reason):
        value_of(text, X=-7, T="Abc")


def test_numbers_that_could_not_be_read_again_are_undefined() -> None:
    large = Fraction(10**200)
    assert apply_operation("*", large, Fraction(10**90)) == 10**290
    with pytest.raises(UndefinedError, match="more than 300 digits"):
        apply_operation("*", large, large)


def test_tests_of_text_hold_or_not_and_are_undefined_for_numbers() -> None:
    assert holds("starts_with", "abc", "ab")
    assert not holds("not starts_with", "abc", "ab")
    assert holds("ends_with", "abc", "bc")
    assert holds("contains", "abc", "b")
    assert not holds("contains", "b", "abc")
    assert holds("matches", "abc", "[a-c]+")
    assert not holds("matches", "abcd", "[a-c]+")
    for op in ("starts_with", "not starts_with", "contains", "matches"):
        with pytest.raises(UndefinedError):
            holds(op, Fraction(1), "1")
    with pytest.raises(UndefinedError, match="not RE2: lookaround"):
        holds("matches", "a", "(?=a)")


# Columns


def to_steps(text: str, bound: set[Variable]) -> list[core_rules.Assign | core_rules.Test]:
    steps: list[core_rules.Assign | core_rules.Test] = []
    for found in read_conditions(text):
        if found.op == "=" and isinstance(found.left, Variable) and found.left not in bound:
            bound.add(found.left)
            steps.append(core_rules.Assign(found.left, found.right))
        else:
            steps.append(core_rules.Test(found.op, found.left, found.right))
    return steps


def calculate(
    text: str, rows: list[tuple[Value | int, ...]], outputs: tuple[Variable | Constant, ...], symbols: Symbols
) -> tuple[list[tuple[Value | int, ...]], list[int], int]:
    """Return the output rows, their positions, and how many rows were undefined."""
    inputs = (X, Y, Z)[: len(rows[0])]
    steps = to_steps(text, set(inputs))
    ids = [[symbols.intern(Fraction(v) if isinstance(v, int) else v) for v in row] for row in rows]
    calculator = Calculator(Calculation(inputs, tuple(steps), outputs), Numbers(symbols))
    at = np.arange(len(rows))
    found = calculator.apply(Rows(np.array(ids, np.int32).T.copy(), at, at + 1))
    assert (found.hi == found.lo + 1).all()
    return [tuple(map(symbols.value, row)) for row in found.args.T], found.lo.tolist(), calculator.undefined


def test_rows_keep_their_intervals_if_all_tests_hold() -> None:
    outputs = (Constant("name"), X, Variable("F"))
    given_rows: list[tuple[Value | int, ...]] = [(0, 0), (100, 1), (5, 41), (10, "a")]
    rows, at, undefined = calculate("F = X * 9 / 5 + 32, F > 40, F != Y", given_rows, outputs, Symbols())
    assert rows == [("name", 100, 212), ("name", 10, 50)]
    assert at == [1, 3]
    assert undefined == 0


def test_undefined_operations_drop_their_row_and_are_counted() -> None:
    rows, at, undefined = calculate(
        "V = X / Y", [(1, 2), (1, 0), (0, 0), ("a", 1), (6, 3)], (Variable("V"),), Symbols()
    )
    assert (rows, at, undefined) == ([(Fraction(1, 2),), (Fraction(2),)], [0, 4], 3)


def test_a_test_of_something_undefined_is_false_and_counted() -> None:
    rows, _, undefined = calculate("X + 1 != Y", [(1, 2), (1, 3), ("a", 3)], (X,), Symbols())
    assert (rows, undefined) == ([(1,)], 1)
    rows, _, undefined = calculate('not starts_with(X, "a")', [("b",), ("ab",), (1,)], (X,), Symbols())
    assert (rows, undefined) == ([("b",)], 1)


def test_a_second_value_may_stand_in_for_an_undefined_one() -> None:
    symbols = Symbols()
    quotient = Operation("/", (Constant(Fraction(6)), X))
    instead = Operation(core_rules.OR_ELSE, (quotient, Constant("none")))
    calculation = Calculation((X,), (core_rules.Assign(Y, instead),), (Y,))
    calculator = Calculator(calculation, Numbers(symbols))
    ids = np.array([[symbols.intern(value) for value in (Fraction(3), Fraction(0), "a", Fraction(4))]], np.int32)
    found = calculator.apply(Rows(ids, np.arange(4), np.arange(4)))
    assert [symbols.value(id) for id in found.args[0]] == [2, "none", "none", Fraction(3, 2)]
    assert calculator.undefined == 0
    assert evaluate(instead, {X: Fraction(0)}) == "none"


def test_text_and_numbers_mix_in_one_expression() -> None:
    rows, _, undefined = calculate(
        "L = length(lower(X) ++ Y) * 2 + 1, L > 5, U = upper(X)",
        [("ab", "c"), ("a", "b"), ("a", 1), (2, "b"), ("é", "xy")],
        (Variable("U"), Variable("L")),
        Symbols(),
    )
    assert (rows, undefined) == ([("AB", 7), ("É", 7)], 2)


def test_comparisons_of_computed_values_use_the_order_of_constants() -> None:
    rows, _, _ = calculate("X ++ Y < Z", [("a", "b", "abc"), ("a", "b", "aa"), ("a", "b", 5)], (X, Y, Z), Symbols())
    assert rows == [("a", "b", "abc")]
    rows, _, _ = calculate("X + 1 < Y", [(1, "a"), (1, 2), (1, 3)], (Y,), Symbols())
    assert rows == [("a",), (3,)]


def test_results_beyond_63_bits_are_exact() -> None:
    big = 9 * 10**17
    rows, _, undefined = calculate(
        "V = X * Y, W = V - X * Y + Z, V > X",
        [(big, big, 1), (big, 7, 2), (big, 10**30, 3)],
        (Variable("V"), Variable("W")),
        Symbols(),
    )
    assert rows == [(big * big, 1), (big * 7, 2), (big * 10**30, 3)]
    assert undefined == 0
    rows, _, _ = calculate(
        "V = X + X + X + X + X + X + X + X + X + X + X", [(big,), (-big,)], (Variable("V"),), Symbols()
    )
    assert rows == [(11 * big,), (-11 * big,)]
    rows, _, _ = calculate(f"V = 1/{big} / X", [(big,), (-3,)], (Variable("V"),), Symbols())
    assert rows == [(Fraction(1, big * big),), (Fraction(-1, 3 * big),)]


def test_many_rows_are_calculated_in_blocks() -> None:
    symbols = Symbols()
    rows, at, _ = calculate("V = X mod 1000, V >= 990", [(n,) for n in range(100_000)], (X, Variable("V")), symbols)
    assert len(rows) == 1000
    assert rows[:2] == [(990, 990), (991, 991)]
    assert at[-1] == 99_999


def test_no_rows_give_no_rows() -> None:
    calculation = Calculation((X,), (core_rules.Assign(Y, X),), (X, Y, Constant("a")))
    found = Calculator(calculation, Numbers(Symbols())).apply(Rows.empty(1))
    assert found.args.shape == (3, 0)


numbers = st.one_of(
    st.integers(-4, 4).map(Fraction),
    st.fractions(max_denominator=12),
    st.integers(-(10**19), 10**19).map(Fraction),
    st.sampled_from([Fraction(2**62), Fraction(-(2**63)), Fraction(1, 10**17 + 1), Fraction(10**40, 3)]),
)
values = st.one_of(numbers, numbers, numbers, st.sampled_from(["", "a", "Bc", "10"]))
expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(st.sampled_from([X, Y, Z]), values.map(Constant)),
    lambda inner: st.one_of(
        st.builds(
            Operation,
            st.sampled_from(["+", "-", "*", "/", "mod", "min", "max", "++"]),
            st.tuples(inner, inner),
        ),
        st.builds(
            Operation, st.sampled_from(["-", "abs", "floor", "ceil", "lower", "upper", "length"]), st.tuples(inner)
        ),
    ),
    max_leaves=6,
)


def evaluate_or_none(expression: Expression, binding: Mapping[Variable, Value]) -> Value | None:
    try:
        return evaluate(expression, binding)
    except UndefinedError:
        return None


@settings(max_examples=300, deadline=None)
@given(expressions, expressions, st.lists(st.tuples(values, values, values), min_size=1, max_size=30))
def test_columns_give_the_values_of_single_bindings(
    left: Expression, right: Expression, rows: list[tuple[Value, Value, Value]]
) -> None:
    symbols = Symbols()
    ids = np.array([[symbols.intern(value) for value in row] for row in rows], np.int32).T.copy()
    at = np.arange(len(rows))
    v = Variable("V")
    steps = (core_rules.Assign(v, left), core_rules.Test("<=", v, right))
    calculator = Calculator(Calculation((X, Y, Z), steps, (X, v)), Numbers(symbols))
    found = calculator.apply(Rows(ids, at, at))
    expected = []
    undefined = 0
    for position, row in enumerate(rows):
        binding = dict(zip((X, Y, Z), row, strict=True))
        one, other = evaluate_or_none(left, binding), evaluate_or_none(right, binding)
        undefined += one is None or other is None
        if one is not None and other is not None and holds("<=", one, other):
            expected.append((position, row[0], one))
    assert [(n, *map(symbols.value, args)) for n, args in zip(found.lo, found.args.T, strict=True)] == expected
    assert calculator.undefined == undefined


# Patterns


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a|bc", "bc", True),
        ("a|bc", "abc", False),
        ("", "", True),
        (".*", "a\nb", False),
        ("(?s).*", "a\nb", True),
        ("(?i)straße", "STRAßE", True),
        ("[[:alpha:]_]+", "ab_c", True),
        (r"\d{4}-\d\d", "2026-01", True),
        (r"\d", "٣", False),
        (r"\pL+", "añß", True),
        (r"\Q(*)\E", "(*)", True),
        (r"a\b.c", "a c", True),
        (r"(?m)a$.^b", "a\nb", False),
        (r"(?ms)a$.^b", "a\nb", True),
        (r"(a?){20}a{20}", "a" * 20, True),
        (r"x{,2}", "x{,2}", True),
    ],
)
def test_patterns_match_whole_texts(pattern: str, text: str, matches: bool) -> None:
    assert matches_whole(pattern, text) is matches


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "a backreference"),
        (r"(?P<n>a)\k<n>", "a backreference"),
        ("a(?=b)", "lookaround"),
        ("(?<!a)b", "lookaround"),
        ("(?>a)", "`(?>`"),
        ("a**", "a repetition of a repetition"),
        ("*a", "a repetition of nothing"),
        ("(a", "`(` is not closed"),
        ("a)", "a `)` without a `(`"),
        ("[a", "`[` is not closed"),
        ("[z-a]", "the range from z"),
        ("a{2,1}", "the repetition {2,1}"),
        ("a{1001}", "the repetition {1001}"),
        ("((a{100}){100}){100}", "too large"),
        ("(" * 150 + ")" * 150, "more than 100 brackets"),
        (r"\p{Greek}", "the property Greek"),
        (r"\Z", r"the escape \Z"),
        ("a\\", "it ends too early"),
    ],
)
def test_what_is_not_re2_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=re.escape(reason)):
        matches_whole(pattern, "a")


def test_hard_patterns_take_linear_time() -> None:
    assert not matches_whole("(a*)*b", "a" * 50_000)
    assert not matches_whole("(a|a|ab|b?)+c", "ab" * 20_000)
    assert not matches_whole("(x+x+)+y", "x" * 50_000)


PIECES = [
    *(
        "a",
        "b",
        "A",
        "K",
        "é",
        "\n",
        "_",
        "1",
        "-",
        "(",
        ")",
        "(?:",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{1,2}",
        "{,2}",
        "{0,}",
    ),
    *(
        "[a-c]",
        "[^a]",
        "[^]a]",
        "[]-]",
        "[[:alpha:]]",
        "[[:^word:]_]",
        "\\d",
        "\\W",
        "\\s",
        "[\\d-]",
        "\\pL",
        "\\p{Lu}",
    ),
    *(
        "-",
        "\\p{Lu}",
        "\\P{^N}",
        "^",
        "$",
        "\\A",
        "\\z",
        "\\b",
        "\\B",
        ".",
        "(?i)",
        "(?s)",
        "(?m)",
        "(?i:",
        "(?-i:",
        "(?P<x>",
        "(?<y>",
    ),
    *("\\Q.*\\E", "\\x41", "\\x{e9}", "\\101", "\\n", "\\.", "{", "}", "]", "\\1", "(?=", "\\Z", "\\07", "\\e", "*?"),
    *("(?iU-s:", "[a-\\d]", "[z-a]", "\\-", "[\\]]", "[a\\-z]", "[\\s\\S]", "[[:word:]-a]", "(?i)[^k]", "[", "\\8"),
]
TEXTS = [
    *("", "a", "ab", "abc", "aA", "K", "k", "\u212a", "é", "É", "a\nb", "\n", "1", "a1", "_", "--", "aa", "bb", "a b"),
    *("AB", "ba", "cab", "a.", "*", ".*", "{", "]", "}", "a]", "a{,2}", "A1", "s", "ſ"),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join))
def test_patterns_mean_what_they_mean_in_re2(pattern: str) -> None:
    re2 = pytest.importorskip("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        theirs = re2.compile(pattern, options)
    except re2.error:
        with pytest.raises(PatternError):
            matches_whole(pattern, "")
        return
    for text in TEXTS:
        assert matches_whole(pattern, text) is (theirs.fullmatch(text) is not None), text

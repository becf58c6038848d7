"""Errors worth reading: the code, the place, the law, the way out, several at once, and never anything but an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.program import Program


def errors(text: str, syntax: str = "dmtl") -> tuple[Diagnostic, ...]:
    with pytest.raises(TidelogError) as caught:
        Program.parse(text, syntax=syntax, source="r.dmtl")
    return caught.value.diagnostics


def error(text: str, syntax: str = "dmtl") -> Diagnostic:
    found = errors(text, syntax)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "code", "column", "words"),
    [
        ("A(X) :- Diamonminus[0,1] B(X).", "TL004", 9, "did you mean Diamondminus?"),
        ("A(X) :- Diamonminus(0,1) B(X).", "TL004", 9, "did you mean Diamondminus?"),
        ("A(X) :- Diamonminus 5 B(X).", "TL004", 9, "did you mean Diamondminus?"),
        ("A :- B Sinze[0,1] C.", "TL004", 8, "did you mean Since?"),
        ("A :- Foo[0,1] C.", "TL004", 6, "the operators are"),
        ("A(X) :- Diamondminus B(X).", "TL005", 9, "write Diamondminus[0,5] P(X)"),
        ("A :- B Since C.", "TL005", 8, "write A Since[0,5] B"),
        ("A :- B Since[0,1] C Since[0,2] D.", "TL006", 21, "(A Since[0,1] B) Since[0,1] C"),
        ("A :- B, Boxminus[0,1] B Until[0,1] C Since[0,2] D.", "TL006", 38, "brackets"),
        ("A :- B C.", "TL001", 8, "a `,` is missing"),
        ("A, B.", "TL001", 5, "expected `,` or `:-`"),
        ("(A or B) :- C.", "TL122", 2, "a head has no `or`"),
        ("A, (not B) :- C.", "TL122", 5, "conditions stand in bodies"),
        ("P :- A or B, A or C, A or D, B or C, B or D, C or D, C or E.", "TL123", 1, "128 ways"),
        ("A(X, Y) :- B(X) or C(X, Y).", "TL101", 6, "each alternative of `or`"),
        ("A(X) :- B(X) or C(X), not (D(X, Y), B(Y)).", "TL101", 33, "add a positive literal that mentions Y"),
        ("A(X) :- Boxminus[0,1] (B(X) or C(X, Y)).", "TL101", 37, "one value throughout"),
        ("A(X) :- B(X), Diamondminus[0,1] (C, not D(X)).", "TL101", 43, "inside the brackets"),
        ("A(X) :- B(X), Boxminus[0,1] (count{ C(X, _) } < 3).", "TL101", 39, "inside the brackets"),
        ("A(X, N) :- B(X), Diamondminus[0,1] (N = sum{ Y : C(X, Y) }).", "TL101", 52, "inside the brackets"),
        ("A :- B :- C.", "TL001", 8, "a second `:-`"),
        ("A :- B,\nC :- D", "TL001", 3, "a second `:-`"),
        ("A :- B\n    C", "TL001", 5, "separated by `,`"),
        ("A :- .", "TL001", 6, "expected a name"),
        ("A :- B,", "TL001", 8, "ends too early"),
        ("A :-", "TL001", 5, "ends too early"),
        ("A(X :- B(X).", "TL001", 5, "`)`"),
        ("A(X) <- B(X)", "TL001", 6, "write `:-`"),
        ("not A :- B", "TL001", 1, "only body literals"),
        ("A :- Diamondminus[0,1] not B", "TL001", 24, "`not` negates a whole literal"),
        ("A :- Diamondminus[0,1] (B, C", "TL001", 29, "ends too early"),
        ("A :- Diamondminus[x,1] B", "TL001", 19, "a range is"),
        ("A :- Diamondminus[0,1 B", "TL001", 23, "a range is"),
        ("A :- ◇⁻ B", "TL001", 9, "a range is"),
        ("A(X) :- B(X+1)", "TL117", 11, "write V in the atom"),
        ("A :- B; C", "TL002", 7, "write `or`"),
        ("A('x') :- B", "TL002", 3, "double quotes"),
        ("A :- ¬B", "TL002", 6, "write `not`"),
        ("A@3.", "TL002", 2, "data file"),
        ('A("x) :- B', "TL003", 3, "not closed"),
        ("A :- Diamondminus[0,5sec] B", "TL007", 21, "ms, s, min, h, d, w"),
        ("A(12ab) :- B", "TL007", 3, '"12ab"'),
        ("A :- Diamondminus[0,1/0] B", "TL007", 21, "divides by zero"),
        ("A(" + "9" * 1000 + ").", "TL007", 3, "digits"),
        ("A :- " + "Boxminus[0,1]" * 201 + " B", "TL008", 6 + 200 * 13, "200 operators"),
        ("A(X) :- B(Y).", "TL101", 3, "X of the head"),
        ("A :- B, not C(X).", "TL101", 15, "a negated literal"),
        ("A :- B, X < 3.", "TL101", 9, "a comparison"),
        ("A(X) :- B(X) Since[0,1] C.", "TL101", 3, "left operand"),
        ("A(X) :- B(X) Until[0,1) C.", "TL101", 3, "begin the range after 0"),
        ("A(X) :- not B(X).", "TL101", 3, "positive"),
        ("A :- B(X), not C(X, _).", "TL101", 21, "Some(X)"),
        ("A(X).", "TL101", 3, "quoted"),
        ("A(X) :- A(X, Y).", "TL102", 9, "2 arguments here but 1 argument at r.dmtl:1:1"),
        ("Diamondplus[0,1] A :- B.", "TL103", 1, "Boxminus and Boxplus"),
        ("Boxplus[0,1] Diamondminus[0,1] A :- B.", "TL103", 14, "Boxminus"),
        ("A Since[0,1] C :- B.", "TL103", 3, "Since belongs in a body"),
        ("A :- Diamondminus[-1,0] B.", "TL104", 18, "write Diamondminus[0,1]"),
        ("A :- B Since[-5,-1) C.", "TL104", 13, "write Since(1,5]"),
        ("A :- Boxplus[-1,3] B.", "TL104", 13, "0 <= a <= b"),
        ("A :- Boxminus[2,1] B.", "TL105", 14, "write [1,2]"),
        ("A :- Boxminus(1,1] B.", "TL105", 14, "write [1,1]"),
        ("A :- ALWAYS[-2,1) B.", "TL106", 12, "Boxminus[0,2] A, Boxplus[0,1) A"),
        ("A :- SOMETIME(-inf,inf) B.", "TL106", 14, "two rules"),
        ("A :- B UNTIL[-1,1] C.", "TL106", 13, "A Since[0,1] B, one with A Until[0,1] B"),
    ],
)
def test_an_error_names_its_code_place_and_way_out(text: str, code: str, column: int, words: str) -> None:
    found = error(text)
    assert found.place is not None
    assert (found.code, found.place.column) == (code, column), found.render()
    assert words in found.render()
    assert found.place.text == text.split("\n")[found.place.line - 1]


def test_an_error_shows_the_line_with_a_caret() -> None:
    assert error("% rules\nA(X) :-\tDiamonminus[0,1] B(X).").render() == (
        "r.dmtl:2:9: error[TL004]: there is no operator `Diamonminus`\n"
        " 2 | A(X) :- Diamonminus[0,1] B(X).\n"
        "   |         ^^^^^^^^^^^\n"
        "  law: the operators are Always, Boxminus, Boxplus, Diamondminus, Diamondplus, Since, Sometime, Until,"
        " each with a range: Diamondminus[0,5] P(X)\n"
        "  help: did you mean Diamondminus?"
    )


def test_several_errors_come_at_once_in_the_order_of_the_text() -> None:
    text = "A(X) :- B(Y).\nC :- D E.\nA(x,y).\nF :- Boxminus[2,1] G, Boxplus[-1,0] G.\nH :- I."
    found = errors(text)
    assert [d.code for d in found] == ["TL101", "TL001", "TL102", "TL105", "TL104"]
    assert [d.place.line for d in found if d.place] == [1, 2, 3, 4, 4]


def test_a_bad_rule_hides_no_error_in_the_next() -> None:
    found = errors("A(X :- B(X).\nC(www.x.org) :- D.\nE(X) :- F(Y)")
    assert [(d.code, d.place.line) for d in found if d.place] == [("TL001", 1), ("TL001", 2), ("TL101", 3)]


def test_a_variable_is_reported_once_a_rule() -> None:
    assert len(errors("A(X, X) :- not B(X), X < 3.")) == 1


def test_a_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TidelogError, match=r"TL010.*No such file"):
        Program.load(tmp_path / "none.dmtl")
    with pytest.raises(TidelogError, match="TL010"):
        Program.load(tmp_path)
    with pytest.raises(TidelogError, match="TL010"):
        Program.load("a\0b")


def test_a_file_that_is_no_text_is_an_error_with_a_place(tmp_path: Path) -> None:
    path = tmp_path / "latin1.dmtl"
    path.write_bytes(b"A :- B.\nC :- \xe9.")
    with pytest.raises(TidelogError, match=r"latin1\.dmtl:2:6: error\[TL010\].*UTF-8"):
        Program.load(path)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "bom.dmtl"
    path.write_bytes(b"\xef\xbb\xbfA :- B.")
    assert str(Program.load(path)) == "A :- B.\n"


def test_there_are_two_syntaxes() -> None:
    with pytest.raises(TidelogError, match="dmtl or tdl"):
        Program.parse("A :- B", syntax="prolog")


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("", "TL201", 1),
        ("P(a", "TL201", 4),
        ("P(a,)@3", "TL201", 5),
        ("P(a b)@3", "TL201", 5),
        ('P("a)@3', "TL201", 3),
        ("P(a)@", "TL201", 6),
        ("P(a)@[1", "TL201", 6),
        ("P(a)@3 x", "TL201", 8),
        ("P(a) :- Q(a)", "TL201", 6),
        ("P(1/0)@3", "TL201", 3),
        ("3P@3", "TL201", 1),
        ("P(a)@x", "TL202", 6),
        ("P(a)@[0,soon]", "TL202", 9),
        ("P(a)@2026-13-01", "TL202", 6),
        ("P(a)@2026-01-01T25:00", "TL202", 6),
        ("P(a)@inf", "TL202", 6),
        ("P(a)@" + "9" * 1000, "TL202", 6),
        ("P(a)@[3,1]", "TL203", 6),
        ("P(a)@(1,1]", "TL203", 6),
        ("P(a)@(inf,inf)", "TL203", 6),
        ("Brst(a,b)", "TL202", 8),
        ("Brst(a,-1)", "TL202", 8),
    ],
)
def test_a_bad_fact_names_its_code_and_place(text: str, code: str, column: int) -> None:
    with pytest.raises(TidelogError) as caught:
        parse_fact(text, "data.txt", 7, temporal=frozenset({("Brst", 1)}))
    (found,) = caught.value.diagnostics
    assert found.place is not None
    assert (found.code, found.place.line, found.place.column) == (code, 7, column)
    assert str(found.place) in found.render()


Result = TypeVar("Result")


def attempt(action: Callable[[], Result]) -> tuple[Result | None, tuple[Diagnostic, ...]]:
    """What an action gives, or the diagnostics that it ends with; anything else that it raises fails the test."""
    try:
        return action(), ()
    except TidelogError as refusal:
        return None, refusal.diagnostics


PIECES = (
    *(":-", ".", ",", "(", ")", "[", "]", "||", "not ", "\n", "_", '"', "%", "#", "@", "==", "<", "-", "+", "/", "\\"),
    *(
        "P",
        "Q(X)",
        "X",
        "T",
        "T+1",
        "a",
        "0",
        "1/3",
        "0.5",
        "5min",
        "5sec",
        "inf",
        "1/0",
        "9" * 400,
        " ",
        "\x00",
        "é",
        "🙂",
    ),
    *(
        "Since[0,1]",
        "Until(0,1)",
        "Diamondminus[0,1] ",
        "Boxplus",
        "ALWAYS[-1,0]",
        "◇⁻",
        "⊞ 3 ",
        "Top",
        "Bottom",
        "#temporal P/2.",
    ),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=40), st.sampled_from(["dmtl", "tdl"])
)
def test_whatever_is_written_is_read_back_or_refused_with_places(text: str, syntax: str) -> None:
    program, refused = attempt(lambda: Program.parse(text, syntax=syntax))
    assert all(found.place and found.render() for found in refused)
    if program is not None:
        again = Program.parse(str(program), syntax=syntax)
        assert (again.rules, again.facts, again.temporal) == (program.rules, program.facts, program.temporal)
    else:
        assert refused


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30))
def test_whatever_is_no_fact_is_refused_with_a_place(text: str) -> None:
    read, refused = attempt(lambda: parse_fact(text))
    assert (read is None) == bool(refused)
    assert all(found.place and found.render() for found in refused)


@pytest.mark.parametrize(
    "text",
    [
        "A :- " + "Diamondminus[0,1] " * 10_000 + "B",
        "A :- " + "(" * 10_000 + "B" + " Since[0,1] C)" * 10_000,
        "A :- " + "(" * 10_000,
        "(" * 10_000 + ")" * 10_000,
        "[" * 10_000,
        '"' * 10_001,
        "A " * 10_000,
        "A(X) :- X = " + "min(" * 10_000,
        "A :- " + "count{" * 5_000,
        "A :- " + "X = sum{ Y : " * 5_000,
        "A :- " + "not (" * 10_000,
    ],
    ids=[
        "prefixes",
        "since",
        "brackets",
        "no-rule",
        "ranges",
        "quotes",
        "names",
        "functions",
        "counts",
        "sums",
        "groups",
    ],
)
def test_absurd_nesting_is_refused(text: str) -> None:
    assert errors(text)

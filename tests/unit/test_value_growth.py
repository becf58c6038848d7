"""Recursion that computes values comes to an end, or is refused."""

from __future__ import annotations

import pytest

from tidelog.analysis.value_growth import find_endless_values
from tidelog.compiler.compiled_program import Target
from tidelog.compiler.passes import compile_program
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program


def problems(text: str) -> list[Diagnostic]:
    return list(find_endless_values(Program.parse(text).rules))


@pytest.mark.parametrize(
    "text",
    [
        "L(N) :- L(M), N = M + 1, N <= 10.",
        "L(N) :- L(M), N = M + 1, 10 >= N.",
        "L(N) :- L(M), N = M + 1, not N > 10.",
        "L(N) :- L(M), N = M - 1, N >= 0.",
        "L(M + 1) :- L(M), M < 10.",
        "L(M + 1) :- L(M), M + 1 <= 10.",
        "L(M + 1) :- L(M), 2 * M <= 10.",
        "L((M + 1) mod 7) :- L(M).",
        "L(N) :- L(M), N = min(M + 1, 10).",
        "L(N) :- L(M), N = max(M - 1, 0).",
        "L(N) :- L(M), N = M * 2, N <= 100, N >= 0.",
        "L(N) :- L(M), N = M / 2, N >= 0.01.",
        "L(N) :- L(M), N = floor(M / 2).",
        "L(N) :- L(M), N = M * 1.1, N <= 100, N >= 1.",
        "L(N) :- L(M), N = -M.",
        "L(N) :- L(M), K = M + 1, K <= 10, N = K.",
        "L(N) :- L(M), N = K * 2, K = M + 1, K <= 10, K >= 0.",
        "L(N) :- K(M), N = M + 1, N < 5. K(N) :- L(N).",
        "L(N) :- K(M), N = M + 1.",
        "L(N) :- L(M), N = M + 1, Num(N).",
        "Boxplus[0,1] L(N) :- L(M), N = M + 1, N <= 10.",
        "L(N) :- Diamondminus[1,1] L(M), N = M + 1, N <= 10.",
        "D(Y, N) :- D(X, M), E(X, Y, W), N = M + W, N <= 100, W >= 0.",
        "D(Y, N) :- D(X, M), E(X, Y, W), N = M + W, N <= 100, N >= 0.",
        "D(Y, N) :- D(X, M), E(X, Y, W), N = M + abs(W), N <= 100.",
        "D(Y, W + 1) :- D(X, M), E(X, Y, W).",
        "D(Y, N) :- D(X, M), E(X, Y, M), N = M + 1.",
        'S(T) :- S(U), T = U ++ "a", length(T) <= 10.',
        "S(T) :- S(U), T = upper(U).",
        "B(C, N) :- P(C, A), A > 0, N = last[1,inf){ X : B(C, X) } + A, N <= 100.",
        "B(N) :- T(X), N = max[1,inf){ X : B(X) }.",
        "B(N) :- T(Y), N = count[1,inf){ B(X) }.",
        "F(N, G) :- F(M, H), N = M + 1, N <= 10, G = H * N, G >= 0, G <= 1000000.",
        "Fib(N, A, B) :- Fib(M, B, C), N = M + 1, N <= 10, A = B + C, A >= 0, A <= 1000.",
    ],
)
def test_bounded_values_are_allowed(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("L(N) :- L(M), N = M + 1.", "bound it in the same rule: N <= 1000"),
        ("L(N) :- L(M), N = M + 1, N >= 10.", "bound it in the same rule: N <= 1000"),
        ("L(N) :- L(M), N = M + 1, N != 10.", "bound it in the same rule: N <= 1000"),
        ("L(N) :- L(M), N = M + 1, N <= K, Max(K).", "bound it in the same rule: N <= 1000"),
        ("L(N) :- L(M), N = M - 1, N <= 0.", "bound it in the same rule: N >= 0"),
        ("L(M + 1) :- L(M).", "bound it in the same rule: V = M + 1, V <= 1000"),
        ("L(N) :- L(M), N = max(M + 1, 0).", "bound it in the same rule: N <= 1000"),
        ("L(N) :- L(M), N = M * 2, N <= 100.", "bound it in the same rule: N >= 0"),
        ("L(N) :- L(M), N = 1 - M.", "bound it in the same rule: N >= 0, N <= 1000"),
        ("L(N) :- Diamondminus[1,1] L(M), N = M + 1.", "bound it in the same rule: N <= 1000"),
        (
            "L(N) :- L(M), N = M / 2, N <= 100, N >= 0.",
            "the values come ever closer to 0: keep them away from it, or round it: floor(M / 2)",
        ),
        (
            "D(Y, N) :- D(X, M), E(X, Y, W), N = M + W, N <= 100.",
            "bound it in the same rule: N >= 0; or W >= 0 if that always holds",
        ),
        ('S(T) :- S(U), T = U ++ "a".', "bound its length in the same rule: length(T) <= 100"),
        ("F(N, G) :- F(M, H), N = M + 1, N <= 10, G = H * N.", "bound it in the same rule: G >= 0, G <= 1000"),
        (
            "B(C, N) :- P(C, A), N = last[1,inf){ X : B(C, X) } + A.",
            "bound it in the same rule: N >= 0, N <= 1000",
        ),
        ("B(N) :- T(Y), N = sum[1,inf){ X : B(X) } + 1.", "bound it in the same rule: N >= 0, N <= 1000"),
    ],
)
def test_values_without_a_bound_on_the_side_they_grow_to_are_refused(text: str, help: str) -> None:
    (problem,) = problems(text)
    assert (problem.code, problem.help) == ("TL119", help)


def test_the_cycle_is_named() -> None:
    (problem,) = problems("A(N) :- C(M), N = M + 1.\nB(N) :- A(N), X(N, _).\nB(N) :- A(N).\nC(N) :- B(N).")
    assert problem.message == "a recursion creates values without end: A -> C -> B -> A"
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == (1, 15)


def test_fractions_and_steps_in_one_cycle_are_refused_whatever_their_bounds() -> None:
    found = problems("L(N) :- L(M), N = M / 2, N >= 1.\nL(N) :- L(M), N = M + 1, N <= 10.")
    assert [problem.place.line for problem in found if problem.place] == [1]
    assert "come ever closer to each other" in (found[0].help or "")


def test_the_compiler_refuses_endless_values() -> None:
    program = Program.parse("L(N) :- L(M), N = M + 1.")
    with pytest.raises(TidelogError, match="L -> L"):
        compile_program(program, Target("batch"))

"""Recursions that only move facts in time: arithmetic over residues against going round step by step."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import tidelog as tl
from tidelog.engine import fixpoint, shift_recursion

#: Times are judged up to `NEAR`; moves are followed up to `FAR`.
NEAR, FAR = 60, 400

Moves = list[tuple[str, str, int]]


def draw_moves(chance: random.Random) -> Moves:
    """Moves between up to three predicates, in one direction or in both."""
    names = "PQR"[: chance.choice((1, 1, 2, 3))]
    signs = chance.choice(((1,), (-1,), (1, -1)))
    moves = [("P", "P", chance.randint(2, 9) * chance.choice(signs)) for _ in range(chance.randint(0, 2))]
    for one, other in zip(names, names[1:] + names[0], strict=True):
        moves += [(one, other, chance.randint(0, 9) * chance.choice(signs)) for _ in range(chance.randint(1, 2))]
    return moves


def write_rules(chance: random.Random, moves: Moves) -> str:
    rules = ["P(X) :- B(X), not C(X)."]
    for body, head, distance in moves:
        back, ahead = ("Diamondminus", "Boxplus") if distance >= 0 else ("Diamondplus", "Boxminus")
        width = f"[{abs(distance)},{abs(distance)}]"
        rules.append(
            chance.choice((f"{head}(X) :- {back}{width} {body}(X).", f"{ahead}{width} {head}(X) :- {body}(X)."))
        )
    return "\n".join(rules)


def draw_facts(chance: random.Random) -> list[tuple[str, str, int, int]]:
    """Facts as predicate, argument, and first and last position of the doubled grid."""
    facts = []
    for _ in range(chance.randint(1, 4)):
        lo = 2 * chance.randint(-5, 5) + chance.choice((0, 0, 1))
        facts.append((chance.choice("BBPQRC"), chance.choice("ab"), lo, lo + chance.choice((0, 0, 0, 1, 4))))
    return facts


def write_fact(name: str, argument: str, lo: int, hi: int) -> str:
    left = f"({lo // 2}" if lo % 2 else f"[{lo // 2}"
    right = f"{hi // 2 + 1})" if hi % 2 else f"{hi // 2}]"
    return f"{name}({argument})@{left},{right}"


def follow(moves: Moves, facts: list[tuple[str, str, int, int]]) -> set[tuple[str, str, int]]:
    """Return where each atom holds, on the doubled grid: every fact moved until nothing is new."""
    points = {(name, arg, at) for name, arg, lo, hi in facts for at in range(lo, hi + 1)}
    found = {point for point in points if point[0] in "PQR"}
    found |= {("P", arg, at) for name, arg, at in points if name == "B" and ("C", arg, at) not in points}
    fresh = list(found)
    while fresh:
        name, arg, at = fresh.pop()
        for body, head, distance in moves:
            moved = head, arg, at + 2 * distance
            if body == name and abs(moved[2]) <= 2 * FAR and moved not in found:
                found.add(moved)
                fresh.append(moved)
    return {point for point in found if abs(point[2]) <= 2 * NEAR}


def read_points(model: tl.Model) -> set[tuple[str, str, int]]:
    points = set()
    for fact in model:
        lo, hi = (int(2 * Fraction(end)) for end in (fact.interval.lo, fact.interval.hi))
        first, last = lo + (not fact.interval.lo_closed), hi - (not fact.interval.hi_closed)
        points |= {(fact.predicate, str(fact.args[0]), at) for at in range(first, last + 1)}
    return points


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("all_time", [True, False], ids=["for all time", "around the question"])
def test_arithmetic_gives_what_moves_give(all_time: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift_recursion, "LONG_DISTANCE", 1)
    monkeypatch.setattr(fixpoint, "is_near", lambda *_: False)
    solved: list[bool] = []
    solve = shift_recursion.solve_shifts

    def count(runs: Any, found: Any, spans: Any) -> Any:
        result = solve(runs, found, spans if all_time else spans[1:])
        solved.append(result is not None)
        return result

    monkeypatch.setattr(fixpoint, "solve_shifts", count)
    for seed in range(100):
        chance = random.Random(seed)
        moves = draw_moves(chance)
        rules, facts = write_rules(chance, moves), draw_facts(chance)
        data = tl.Dataset.parse("\n".join(write_fact(*fact) for fact in facts))
        model = tl.materialise(tl.Program.parse(rules), data, between=(-NEAR, NEAR))
        expected = {point for point in follow(moves, facts) if f"{point[0]}(X) :-" in rules}
        found = {point for point in read_points(model) if f"{point[0]}(X) :-" in rules}
        assert found == expected, f"seed {seed}\n{rules}\n{data}"
    assert sum(solved) > 40


LONG = "A :- Diamondminus[1000000,1000000] A. A :- {} A."


def test_steps_there_and_back_reach_every_time() -> None:
    program, data = tl.Program.parse(LONG.format("Diamondplus[999999,999999]")), tl.Dataset.parse("A@0")
    assert str(tl.materialise(program, data, timeline="integer")) == "A@(-inf,inf)\n"
    assert str(tl.materialise(program, data)) == "% repeats every 1 before 0: A@-1\n% repeats every 1 from 0: A@0\n"


def test_every_time_after_the_last_gap_is_reached() -> None:
    # The largest number that is no sum of a and b is ab - a - b, and half of the smaller ones are none.
    program, data = tl.Program.parse(LONG.format("Diamondminus[999999,999999]")), tl.Dataset.parse("A@0")
    last = 1_000_000 * 999_999 - 1_000_000 - 999_999
    times = (f"{last}", f"[{last + 1},inf)", f"[{last},inf)", "[0,inf)", "[0,999999000000]", "5")
    answers = [tl.entails(program, data, f"A@{time}", timeline="integer").name for time in times]
    assert answers == ["NO", "YES", "NO", "NO", "NO", "NO"]
    assert tl.entails(program, data, f"A@{last + 1_000_000}").name == "YES"
    near = tl.materialise(program, data, between=(last - 3, last + 3), timeline="integer")
    assert str(near).split() == [f"A@[{last - 3},{last - 1}]", f"A@[{last + 1},{last + 3}]"]


def test_what_follows_from_a_long_recursion_is_decided_around_the_question() -> None:
    rules = LONG.format("Diamondminus[999999,999999]") + " B :- Boxminus[0,2] A, not C. C :- Diamondplus[5,5] A, D."
    program, data = tl.Program.parse(rules), tl.Dataset.parse("A@0\nD@999997000009")
    last = 1_000_000 * 999_999 - 1_000_000 - 999_999
    near = tl.materialise(program, data, query="B", between=(last - 2, last + 9), timeline="integer")
    assert str(near).split() == [f"B@[{last - 2},{last - 1}]", f"B@[{last + 3},{last + 7}]", f"B@{last + 9}"]


def test_too_many_intervals_to_write_out_are_refused_with_the_rule_and_what_can_be_asked() -> None:
    program, data = tl.Program.parse(LONG.format("Diamondminus[999999,999999]")), tl.Dataset.parse("A@0")
    with pytest.raises(tl.TidelogError) as error:
        tl.materialise(program, data, timeline="integer")
    found = error.value.diagnostics[0]
    assert found.code == "TL304"
    assert found.message.startswith(
        "it could not be decided how A continues forever: `A :- Diamondminus[1000000,1000000] A.`"
    )
    assert found.help is not None
    assert found.help.startswith("ask for a range of times with --between LO,HI")


def test_a_recursion_that_ends_after_a_million_ticks_is_written_out() -> None:
    program = tl.Program.parse("P(X) :- Diamondminus[2,2] P(X), Q(X). P(X) :- R(X).")
    model = tl.materialise(program, tl.Dataset.parse("R(a)@0\nQ(a)@[0,1000000]"))
    assert len(model) == 500_001


def test_ranges_that_meet_after_many_rounds_are_found() -> None:
    program = tl.Program.parse("A :- Diamondminus[9999,10000] A.")
    lines = str(tl.materialise(program, tl.Dataset.parse("A@0"))).split()
    assert len(lines) == 10_000
    assert lines[-1] == "A@[99980001,inf)"

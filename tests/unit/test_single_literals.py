"""Whole rules with one literal are evaluated atom by atom, and give what the plan machine gives."""

from __future__ import annotations

from random import Random
from unittest import mock

import pytest

import tidelog as tl
from kernel_ways import run_kernels
from tidelog.engine import fixpoint

#: Every operator, constants, repeated variables, comparisons, heads with ranges, and several rules for one head.
RULES = """
Seen(X) :- Link(X, _Y).
Seen(Y) :- Link(_X, Y).
Near(X) :- Diamondminus[0,2] Seen(X).
Long(X) :- Boxminus[0,3] Near(X).
Soon(X) :- Diamondplus[1,2] Seen(X).
Boxplus[1,4] Loop(X) :- Link(X, X).
Big(Y, X, k) :- Link(X, Y), X > 3.
One(Y) :- Diamondminus[0,inf) Link(1, Y).
Any :- Link(_X, _Y).
Lonely(X) :- Near(X), not Diamondminus[0,5] Loop(X).
"""


def generate_links(count: int, nodes: int) -> str:
    rng = Random(7)
    lines = []
    for _ in range(count):
        one, other, begin = rng.randrange(nodes), rng.randrange(nodes), rng.randrange(4 * count)
        when = f"[{begin},{begin + rng.randrange(1, 4)})" if rng.random() < 0.5 else str(begin)
        lines.append(f"Link({one},{other})@{when}")
    return "\n".join(lines)


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_rules_with_one_literal_give_what_the_plan_machine_gives(way: str) -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse(generate_links(300, 9))
    with run_kernels(way):
        found = tl.materialise(program, data).render()
        with mock.patch.object(fixpoint, "has_single_literal", return_value=False):
            assert tl.materialise(program, data).render() == found
    assert all(f"{name}(".encode() in found for name in ("Soon", "Loop", "Big", "One", "Long", "Lonely"))


def test_an_atom_may_have_more_intervals_than_the_store_has_room_for() -> None:
    times = range(0, 30_000, 3)
    data = tl.Dataset.parse("\n".join(f"Link({t % 2},9)@{t}" for t in times))
    found = tl.materialise(tl.Program.parse("Seen(Y) :- Link(_X, Y).\nLater(Y) :- Diamondminus[1,1] Seen(Y)."), data)
    assert found.render("text", iso=False).decode().splitlines() == [
        *(f"Later(9)@{t + 1}" for t in times),
        *(f"Seen(9)@{t}" for t in times),
    ]


def test_more_atoms_than_the_caches_hold_are_looked_at_ahead() -> None:
    count = 40_000
    data = tl.Dataset.parse("\n".join(f"Link(a{n},b{n})@{n % 7}\nLink(a{n},c)@{n % 7 + 1}" for n in range(count)))
    program = tl.Program.parse("Seen(X) :- Link(X, _Y).\nSeen(Y) :- Link(_X, Y).\nAgent(X) :- Seen(X).")
    found = tl.materialise(program, data, query="Agent").render().decode().splitlines()
    expected = {f"Agent(c)@{t}" for t in range(1, 8)} | {f"Agent(b{n})@{n % 7}" for n in range(count)}
    expected |= {f"Agent(a{n})@{t}" for n in range(count) for t in (n % 7, n % 7 + 1)}
    assert len(found) == len(expected)
    assert set(found) == expected


def test_times_that_leave_the_grid_are_refused_and_not_cut() -> None:
    far = 1 << 59
    with pytest.raises(tl.TidelogError, match="63 bits"):
        tl.materialise(
            tl.Program.parse(f"Seen(X) :- Diamondminus[{far},{far}] Link(X, _Y)."), tl.Dataset.parse(f"Link(a,b)@{far}")
        )

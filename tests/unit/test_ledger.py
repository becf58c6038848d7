"""The ledger of assertions, judged by a plain counter of facts."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import tidelog as tl
from tidelog.corrections.ledger import Ledger
from tidelog.errors import TidelogError
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, Interval


def random_fact(random: Random) -> Fact:
    name, arity = random.choice((("P", 0), ("Q", 1), ("R", 2)))
    args = tuple(random.choice(("a", "b", Fraction(1), Fraction(1, 2))) for _ in range(arity))
    lo = Fraction(random.randrange(6), random.choice((1, 1, 1, 2, 3)))
    interval = random.choice((Interval.point(lo), Interval(lo, lo + 1, False, True), Interval(lo, INF, True, False)))
    return Fact(name, args, interval)


def positive(counter: Counter[Fact]) -> set[Fact]:
    return {fact for fact, count in counter.items() if count > 0}


@pytest.mark.parametrize("seed", range(6))
def test_a_ledger_counts_like_a_counter(seed: int) -> None:
    random = Random(seed)
    ledger, counter = Ledger(), Counter[Fact]()
    for _ in range(40):
        insert = [random_fact(random) for _ in range(random.randrange(12))]
        delete = [random_fact(random) for _ in range(random.randrange(10))]
        before = positive(counter)
        for fact in insert:
            counter[fact] += 1
        for fact in delete:
            counter[fact] -= 1
        change = ledger.apply(tl.Dataset.from_facts(insert), tl.Dataset.from_facts(delete))
        began, ceased = set[Fact](), set[Fact]()
        for key, rows in change.changed.items():
            for mask, found in ((rows.began, began), (~rows.began, ceased)):
                part = {key: rows.relation.select(mask)}
                found |= set(tl.Dataset(ledger.symbols, tl.types.Columns(ledger.denominator, False, part)))
        assert began == positive(counter) - before
        assert ceased == before - positive(counter)
        assert Counter(ledger.standing()) == Counter(positive(counter))
        assert Counter(ledger.unmatched()) == -counter
        assert ledger.waiting == sum((-counter).values())
        assert len(ledger) == sum((+counter).values())
        if random.randrange(3) == 0:
            more = tl.Dataset.from_facts([random_fact(random)])
            ledger.undo(ledger.apply(insert=more, delete=tl.Dataset.from_facts([random_fact(random)])))
    copy = Ledger.restore(ledger.symbols, ledger.denominator, ledger.counted())
    assert Counter(copy.standing()) == Counter(ledger.standing())
    assert Counter(copy.unmatched()) == Counter(ledger.unmatched())


def test_rows_of_a_constant_are_found_after_more_were_added() -> None:
    ledger = Ledger()
    ledger.apply(tl.Dataset.parse("\n".join(f"Q(k{n % 50},v{n})@{n}" for n in range(500))))
    table = ledger.tables["Q", 2]
    key = ledger.symbols.intern("k7")
    assert len(table.find(0, np.array([key]))) == 10
    ledger.apply(tl.Dataset.parse("Q(k7,new)@1\nQ(k8,new)@1"), tl.Dataset.parse("Q(k7,v7)@7"))
    found = ledger.standing().symbols.value
    rows = table.relation(("Q", 2), table.find(0, np.array([key, ledger.symbols.intern("unknown")])))
    assert sorted(found(int(id)) for id in rows.args[1]) == sorted(["new", *(f"v{n}" for n in range(57, 500, 50))])


def test_rows_that_count_zero_are_dropped_in_time() -> None:
    ledger = Ledger()
    for step in range(60):
        facts = tl.Dataset.parse("\n".join(f"Q({n})@{step}" for n in range(100)))
        ledger.apply(facts)
        ledger.apply(delete=facts)
    assert ledger.tables["Q", 1].size < 4000
    assert len(ledger) == 0


def test_forgetting_drops_assertions_that_begin_earlier() -> None:
    ledger = Ledger()
    ledger.apply(tl.Dataset.parse("P(a)@[0,9]\nP(a)@3\nP(b)@(3,4)"), tl.Dataset.parse("P(c)@2"))
    assert ledger.forget(6) == 2
    assert str(ledger.standing()) == "P(a)@3\nP(b)@(3,4)\n"
    assert ledger.waiting == 0


def test_a_step_that_is_too_fine_changes_nothing() -> None:
    ledger = Ledger()
    ledger.apply(tl.Dataset.parse(f"P(a)@{2**59}"))
    with pytest.raises(TidelogError, match="TL204"):
        ledger.apply(tl.Dataset.parse("P(a)@1/1000"))
    assert ledger.denominator == 1
    assert str(ledger.standing()) == f"P(a)@{2**59}\n"

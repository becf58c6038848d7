"""Aggregates against DuckDB, where SQL can say the same: RANGE frames by key, and GROUP BY at points in time.

Both sides are compared at every position where something enters, leaves or ends, and right after it. SQL counts in half
ticks: a time on the grid of the data is even, and the gap after it is odd.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

import tidelog as tl

duckdb = pytest.importorskip("duckdb")

#: Times are multiples of a quarter.
TICKS = 4
KEYS = ("k1", "k2", "k3")
FUNCTIONS = ("count", "sum", "min", "max", "avg", "values", "last")

#: One value per function, by the key and the position in half ticks.
Table = dict[tuple[str, int], dict[str, Fraction]]


@dataclass(frozen=True)
class Payment:
    """A payment from one position to another, in half ticks, with both ends in it; amounts are in hundredths."""

    key: str
    id: int
    amount: int
    lo: int
    hi: int

    def as_fact(self) -> str:
        lo, hi = (Fraction(end, 2 * TICKS) for end in (self.lo - self.lo % 2, self.hi + self.hi % 2))
        interval = f"{'[('[self.lo % 2]}{lo},{hi}{'])'[self.hi % 2]}"
        return f"Payment({self.key},{self.id},{Decimal(self.amount) / 100})@{interval}"


def draw_payments(random: Random, points: bool) -> list[Payment]:
    """Draw payments with ties: few times, few amounts, and some payments that differ in nothing but their id."""
    span = random.choice([8, 40, 200])
    amounts = [random.choice([1, 25, 100]) * random.randrange(-9, 10) for _ in range(random.choice([2, 6, 30]))]
    payments = []
    for id in range(random.choice([1, 10, 60])):
        lo = 2 * random.randrange(-5, span)
        hi = lo
        if not points:
            lo += random.randrange(2)
            hi = lo + random.choice([0, 1, 2, 3, 10, 50])
        payments.append(Payment(random.choice(KEYS), id, random.choice(amounts), lo, hi))
    return payments


def query_sql(events: Iterable[tuple[str, int, int, int]], positions: Iterable[int], sql: str) -> Table:
    """Run a query over the tables `event` and `probe` that gives one row per key and position."""
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        connection.execute("create table event(key text, amount decimal(18, 2), lo bigint, hi bigint)")
        connection.execute("create table probe(key text, position bigint)")
        rows = (f"('{key}', {Decimal(amount) / 100}, {lo}, {hi})" for key, amount, lo, hi in events)
        probes = (f"('{key}', {at})" for key in KEYS for at in positions)
        connection.execute(f"insert into event values {', '.join(rows)}")
        connection.execute(f"insert into probe values {', '.join(probes)}")
        found = connection.execute(sql).fetchall()
    table: Table = {}
    for key, at, *values in found:
        if values[0]:  # the count: SQL has a row for an empty window, and rules have none
            table[key, at] = {name: Fraction(value) for name, value in zip(FUNCTIONS, values, strict=False)}
    return table


#: Probes are rows without an amount, which aggregates skip.
OVER_FRAME = """
with everything as (
    select key, lo as position, amount, false as probes from event
    union all select key, position, null, true from probe
)
select key, position, n, s, least, greatest, mean, different, latest.amount from (
    select key, position, probes, count(amount) over frame as n, sum(amount) over frame as s,
        min(amount) over frame as least, max(amount) over frame as greatest, avg(amount) over frame as mean,
        count(distinct amount) over frame as different,
        max({{'position': position, 'amount': amount}}) filter (amount is not null) over frame as latest
    from everything
    window frame as (partition by key order by position range between {far} preceding and {near})
) where probes
"""

GROUP_BY = """
select key, position, count(*), sum(amount), min(amount), max(amount), avg(amount), count(distinct amount)
from probe join event using (key) where position between lo and hi group by key, position
"""


def contains(interval: tl.Interval, t: Fraction) -> bool:
    """Decide whether a time is in an interval."""
    return (interval.lo < t or (interval.lo_closed and interval.lo == t)) and (
        t < interval.hi or (interval.hi_closed and t == interval.hi)
    )


def read_rules(tables: Mapping[str, Iterable[tl.Fact]], positions: list[int]) -> Table:
    """Read the value of every function at every position off the intervals of the answers."""
    table: Table = {}
    for name, facts in tables.items():
        for fact in facts:
            key, value = fact.args
            assert isinstance(value, Fraction)
            for at in positions:
                if contains(fact.interval, Fraction(at, 2 * TICKS)):
                    values = table.setdefault((str(key), at), {})
                    assert name not in values, "one value at a time"
                    values[name] = value
    return table


def evaluate(rules: dict[str, str], data: tl.Dataset, way: str) -> dict[str, list[tl.Fact]]:
    """Return the answers of one rule per function, from a batch or a stream."""
    if way == "batch":
        return {name: list(tl.materialise(tl.Program.parse(rule), data)) for name, rule in rules.items()}
    return {name: list(_stream(rule, data)) for name, rule in rules.items()}


def _stream(rule: str, data: tl.Dataset) -> Iterator[tl.Fact]:
    reasoner = tl.Reasoner(tl.Program.parse(rule), "Q")
    for step in reasoner.feed(data, step=Fraction(3, 2)):
        yield from step.answers
    yield from reasoner.finish(1_000)


def assert_same(found: Table, expected: Table) -> None:
    """Compare exactly; DuckDB's averages alone are floats."""
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        mean = values["sum"] / values["count"]
        assert found[place] == values | {"avg": mean}, place
        assert float(values["avg"]) == pytest.approx(float(mean), rel=1e-12, abs=1e-12)


def write_rules(aggregate: str, functions: Iterable[str], body: str) -> dict[str, str]:
    """Write one rule per function; `aggregate` is its range, or nothing."""
    braces = {
        "count": f"count{aggregate}{{ {body} }}",
        "values": f"count{aggregate}{{ distinct A : {body} }}",
    }
    return {name: f"Q(K,N) :- N = {braces.get(name, f'{name}{aggregate}{{ A : {body} }}')}." for name in functions}


@pytest.mark.parametrize("way", ["batch", "stream"])
@pytest.mark.parametrize("brackets", ["[]", "[)", "(]", "()"])
def test_windows_agree_with_range_frames(brackets: str, way: str) -> None:
    for seed in range(4):
        random = Random(f"{seed}{brackets}")
        payments = draw_payments(random, points=True)
        near = random.choice([0, 0, 1, 6])
        far = near + random.choice([2, 7, 40])
        window = f"{brackets[0]}{Fraction(near, TICKS)},{Fraction(far, TICKS)}{brackets[1]}"
        first, last = 2 * near + (brackets[0] == "("), 2 * far - (brackets[1] == ")")
        positions = sorted(
            {p.lo + by + after for p in payments for by in (0, 2 * near, 2 * far) for after in (-1, 0, 1)}
        )
        sql = OVER_FRAME.format(far=last, near=f"{first} preceding" if first else "current row")
        expected = query_sql([(p.key, p.amount, p.lo, p.hi) for p in payments], positions, sql)
        data = tl.Dataset.parse("\n".join(payment.as_fact() for payment in payments))
        answers = evaluate(write_rules(window, FUNCTIONS, "Payment(K,_Id,A)"), data, way)
        assert_same(read_rules(answers, positions), expected)


def test_equal_events_at_one_time_are_one_row_as_in_select_distinct() -> None:
    for seed in range(4):
        payments = draw_payments(Random(seed), points=True)
        events = {(p.key, p.amount, p.lo, p.hi) for p in payments}
        positions = sorted({p.lo + by for p in payments for by in (0, 1, 20, 21)})
        expected = query_sql(events, positions, OVER_FRAME.format(far=20, near="current row"))
        data = tl.Dataset.parse("\n".join(payment.as_fact() for payment in payments))
        program = tl.Program.parse("Paid(K,A) :- Payment(K,_Id,A).")
        answers = {
            name: list(tl.materialise(tl.Program.parse(f"{program}\n{rule}"), data, query="Q"))
            for name, rule in write_rules("[0,2.5]", FUNCTIONS, "Paid(K,A)").items()
        }
        assert_same(read_rules(answers, positions), expected)


@pytest.mark.parametrize("way", ["batch", "stream"])
def test_aggregates_at_a_point_in_time_agree_with_group_by(way: str) -> None:
    functions = FUNCTIONS[:-1]
    for seed in range(6):
        payments = draw_payments(Random(seed), points=False)
        positions = sorted({end + by for p in payments for end in (p.lo, p.hi) for by in (-1, 0, 1)})
        expected = query_sql([(p.key, p.amount, p.lo, p.hi) for p in payments], positions, GROUP_BY)
        data = tl.Dataset.parse("\n".join(payment.as_fact() for payment in payments))
        answers = evaluate(write_rules("", functions, "Payment(K,_Id,A)"), data, way)
        assert_same(read_rules(answers, positions), expected)


def test_a_key_without_payments_has_count_and_sum_zero_as_with_a_left_join() -> None:
    for seed in range(4):
        payments = draw_payments(Random(seed), points=True)
        positions = sorted({p.lo + by for p in payments for by in (-1, 0, 1, 20, 21)})
        sql = OVER_FRAME.format(far=20, near="current row")
        some = query_sql([(p.key, p.amount, p.lo, p.hi) for p in payments], positions, sql)
        facts = [*(p.as_fact() for p in payments), *(f"Key({key})" for key in KEYS)]
        for name in ("count", "sum"):
            braces = "count[0,2.5]{ Payment(K,_Id,_A) }" if name == "count" else "sum[0,2.5]{ A : Payment(K,_Id,A) }"
            model = tl.materialise(
                tl.Program.parse(f"Q(K,N) :- Key(K), N = {braces}."), tl.Dataset.parse("\n".join(facts))
            )
            found = read_rules({name: model}, positions)
            expected = {(key, at): {name: Fraction(0)} for key in KEYS for at in positions}
            expected |= {place: {name: values[name]} for place, values in some.items()}
            assert found == expected

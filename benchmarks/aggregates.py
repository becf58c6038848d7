"""Rows for counts, sums and their relatives: against DuckDB, in streams, and as a window holds more and more events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

import auctions
import tidelog as tl
from table_rows import Row, measure
from tidelog.streaming.answers import Answers

EVENTS = 1_000_000
REPEATS = 5
#: How many events of a key are in the window of a `density` row, on average.
DENSITIES = (1, 100, 10_000)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Payments:
    """Payments of random keys and amounts, one per unit of time."""

    keys: Integers
    amounts: Integers

    @staticmethod
    def generate(count: int, keys: int) -> Payments:
        rng = np.random.default_rng(0)
        return Payments(rng.integers(0, keys, count), rng.integers(1, 1_000, count))

    def load(self) -> tl.Dataset:
        """Return the payments as facts."""
        rows = zip(self.keys.tolist(), self.amounts.tolist(), strict=True)
        return tl.Dataset.parse("\n".join(f"Payment(k{key},{amount})@{at}" for at, (key, amount) in enumerate(rows)))


def measure_aggregates() -> Iterator[Row]:
    """Measure all rows with aggregates."""
    yield from compare_with_duckdb()
    yield from stream_thresholds()
    yield from density()
    yield from latest_values()
    yield from auctions.compare_with_bytewax()


def compare_with_duckdb(keys: int = 10_000, in_window: int = 95) -> Iterator[Row]:
    """Compute a sliding count and sum per key at all times, and with DuckDB at the times of the events."""
    window = keys * in_window
    payments = Payments.generate(EVENTS, keys)
    data = payments.load()
    program = tl.Program.parse(f"""
        C(K,N) :- N = count[0,{window}]{{ Payment(K,_A) }}.
        S(K,N) :- N = sum[0,{window}]{{ A : Payment(K,A) }}.""")
    model, cpu, wall = measure(partial(tl.materialise, program, data), REPEATS)
    what = f"sliding count and sum, {keys:,} keys, {in_window} events of each in the window"
    try:
        import duckdb
    except ImportError:
        note = "DuckDB is not installed (pip install tidelog[bench])"
        yield Row(f"{what}: tidelog", EVENTS, cpu, wall, "", "at most 3 x DuckDB", note)
        return
    query = f"""
        select t, count(*) over w as n, (sum(a) over w)::bigint as s from payment
        window w as (partition by k order by t range between {window} preceding and current row)"""
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        given = {"k": payments.keys, "a": payments.amounts, "t": np.arange(EVENTS)}
        connection.register("given", given)
        connection.execute("create table payment as select * from given")
        found, peer_cpu, peer_wall = measure(lambda: connection.execute(query).fetchnumpy(), REPEATS)
    by_time = np.argsort(found["t"])
    same = all(
        np.array_equal(find_values(model, name, payments.keys), found[column][by_time])
        for name, column in (("C", "n"), ("S", "s"))
    )
    note = "at the times of events, the same" if same else "values at the times of events DIFFER"
    yield Row(f"{what}: DuckDB {duckdb.__version__}, one thread", EVENTS, peer_cpu, peer_wall, "1 x")
    note = f"{note}; {len(model):,} facts out, also where events leave the window"
    yield Row(f"{what}: tidelog", EVENTS, cpu, wall, f"{cpu / peer_cpu:.1f} x DuckDB", "at most 3 x", note)


def find_values(model: tl.Model, predicate: str, keys: Integers) -> Integers:
    """Return the values of the keys, each at the time that is its place; -1 where there is none."""
    rows = next(relation for relation, _ in model.relations() if relation.predicate == predicate)
    ids = np.unique(rows.args)
    values = np.full(int(ids.max()) + 1, -1)
    values[ids] = [int(str(model.symbols.value(int(id))).removeprefix("k")) for id in ids]
    far = 2 + int(rows.hi.max())
    places = values[rows.args[0]] * far + rows.lo
    order = np.argsort(places)
    times = 2 * np.arange(len(keys))
    found = order[np.searchsorted(places[order], keys * far + times, side="right") - 1]
    holds = (values[rows.args[0]][found] == keys) & (rows.lo[found] <= times) & (rows.hi[found] >= times)
    return np.where(holds, values[rows.args[1]][found], -1)


@dataclass(frozen=True)
class StreamRun:
    """The answers of a stream, part by part, and the reasoner at its end."""

    answers: list[Answers]
    reasoner: tl.Reasoner

    def __len__(self) -> int:
        return sum(map(len, self.answers))


def run_stream(rules: str, query: str, data: tl.Dataset, step: int | None = None) -> StreamRun:
    """Feed a dataset to a new reasoner, to the end."""
    reasoner = tl.Reasoner(tl.Program.parse(rules), query)
    answers = [found.answers for found in reasoner.feed(data, step=step) if found.answers]
    return StreamRun([*answers, reasoner.finish_step().answers], reasoner)


def stream_thresholds(keys: int = 10_000, in_window: int = 95) -> Iterator[Row]:
    """Alert on a count and a sum per key, in chunks of the reasoner's own choice and in small steps."""
    window = keys * in_window
    data = Payments.generate(EVENTS, keys).load()
    rules = f"""
        V(K) :- count[0,{window}]{{ Payment(K,_A) }} >= 90, sum[0,{window}]{{ A : Payment(K,A) }} > 45000."""
    expected = set(tl.materialise(tl.Program.parse(rules), data, until=EVENTS - 1))
    what = f"stream, count and sum over thresholds, {keys:,} keys, {in_window} events of each in the window"
    for step, name, goal in ((None, "", "1 million"), (1_000, ", steps of 1,000 events", "")):
        found, cpu, wall = measure(partial(run_stream, rules, "V", data, step), REPEATS)
        facts = {fact for part in found.answers for fact in part}
        agree = "the same as in a batch" if facts == expected else "which DIFFERS from a batch"
        rate = f"{EVENTS / cpu / 1e6:.2f} million events per second"
        yield Row(f"{what}{name}", EVENTS, cpu, wall, rate, goal, f"{len(found):,} answers, {agree}")


#: One rule per kind of aggregate; the window is W, and H is half of it.
DENSITY_RULES = {
    "count": "Q(K,N) :- N = count[0,W]{ Payment(K,_A) }.",
    "sum": "Q(K,N) :- N = sum[0,W]{ A : Payment(K,A) }.",
    "max": "Q(K,N) :- N = max[0,W]{ A : Payment(K,A) }.",
    "distinct count": "Q(K,N) :- N = count[0,W]{ distinct A : Payment(K,A) }.",
    "last": "Q(K,N) :- N = last[0,W]{ A : Payment(K,A) }.",
    "duration": "Q(K) :- duration[0,W]{ Busy(K) } >= H.",
}


def density(keys: int = 10) -> Iterator[Row]:
    """The same events with longer windows: the cost per event must not depend on how many are in the window."""
    payments = Payments.generate(EVENTS, keys).load()
    # Every key in turn is busy for a random part of the time until its next turn.
    lengths = np.random.default_rng(1).integers(1, keys, EVENTS).tolist()
    busy = tl.Dataset.parse("\n".join(f"Busy(k{at % keys})@[{at},{at + more})" for at, more in enumerate(lengths)))
    for name, rule in DENSITY_RULES.items():
        data = busy if name == "duration" else payments
        programs = [rule.replace("W", str(dense * keys)).replace("H", str(dense * keys // 2)) for dense in DENSITIES]
        found, cpus, walls = measure_in_turn([partial(run_stream, rules, "Q", data) for rules in programs])
        costs = (f"{cpu / EVENTS * 1e9:.0f} ({answers:,} answers)" for cpu, answers in zip(cpus, found, strict=True))
        what = f"stream, {name}, windows of {', '.join(f'{dense:,}' for dense in DENSITIES)} events per key"
        figure = " / ".join(f"{cpu / cpus[0]:.2f}" for cpu in cpus)
        note = f"ns per event: {', '.join(costs)}"
        yield Row(what, EVENTS, sum(cpus), sum(walls), f"{figure} x", "at most 1.5 x", note)


def measure_in_turn(works: Sequence[Callable[[], StreamRun]]) -> tuple[list[int], list[float], list[float]]:
    """Run some streams in turn, several times, so that other work on the machine disturbs all of them alike.

    Return the number of answers of each, and its least CPU and wall time.
    """
    counts = [len(work()) for work in works]
    rounds = [[measure(work)[1:] for work in works] for _ in range(REPEATS)]
    best = [[min(times) for times in zip(*of_one, strict=True)] for of_one in zip(*rounds, strict=True)]
    return counts, [cpu for cpu, _ in best], [wall for _, wall in best]


def latest_values(keys: int = 1_000) -> Iterator[Row]:
    """Hold the latest value per key, however many there have been."""
    rules = "Q(K,A) :- A = last[0,inf){ X : Payment(K,X) }."
    for count in (EVENTS // 100, EVENTS // 10, EVENTS):
        data = Payments.generate(count, keys).load()
        found, cpu, wall = measure(partial(run_stream, rules, "Q", data))
        held = count_held_values(found.reasoner)
        note = f"{len(found):,} answers; the saved state has {len(found.reasoner.save()):,} bytes"
        what = f"stream, last[0,inf), {keys:,} keys: values held"
        yield Row(what, count, cpu, wall, f"{held:,}", f"{keys:,}", note)


def count_held_values(reasoner: tl.Reasoner) -> int:
    """Count the values that aggregators hold: one per group, and the events in windows."""
    numbers = reasoner.evaluation.numbers
    assert numbers is not None
    states = [aggregator.state() for aggregator in numbers.steps.aggregators.values()]
    return sum(len(state["groups"]) + len(state["times"]) for state in states)

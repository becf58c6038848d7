"""Queries in the style of the Nexmark benchmark over generated auctions, in tidelog and in Bytewax.

tidelog reads facts as text and gives its answers as columns; printing them is measured apart. Bytewax gets its events
as tuples and gives Python objects. Its sliding windows begin every second, so that it gives one answer per second;
rules give the answer at every time. Where a window ends, both must agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

import tidelog as tl
from table_rows import Row, measure
from tidelog.streaming.answers import Answers

BIDS = 200_000
REPEATS = 2
#: In milliseconds: the length of windows, the time between their beginnings, and the gap that ends a session.
WINDOW, SLIDE, GAP = 10_000, 1_000, 5_000
START = datetime(2026, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

#: The windows have the brackets of Bytewax: a window that ends at t has the events before t, and those at t - WINDOW.
HIGHEST = f"Highest(M) :- M = max(0,{WINDOW}]{{ P : Bid(_A,_B,P) }}."
HOT_ITEMS = f"""
Bids(A,N) :- N = count(0,{WINDOW}]{{ Bid(A,_B,_P) }}.
Most(M) :- M = max{{ N : Bids(_A,N) }}.
Hot(A,N) :- Bids(A,N), Most(N).
"""
#: The bids of a session so far: all bids of the bidder, less those before the session.
SESSIONS = f"""
By(B) :- Bid(_A,B,_P).
Session(B) :- Diamondminus[0,{GAP}] By(B).
Total(B,N) :- N = count[0,inf){{ By(B) }}.
First(B,N) :- By(B), Total(B,N), not Diamondminus(0,{GAP}] By(B).
Size(B,N-M+1) :- Session(B), Total(B,N), M = last[0,inf){{ F : First(B,F) }}.
"""

#: A bid: its time, auction, bidder and price.
Bid = tuple[datetime, int, int, int]
#: Answers that both systems can give, in one form.
Results = set[tuple[int, ...]]


@dataclass(frozen=True)
class Stream:
    """Bids in the order of time: as fact text, and as tuples."""

    text: str
    bids: list[Bid]
    last: int


def generate_bids(count: int) -> Stream:
    """Generate about this many bids in the proportions of Nexmark, one per millisecond on average.

    Of 50 events, 46 are bids, 3 open an auction and 1 is a new person. Half of the bids go to a hot auction, and three
    quarters come from a hot bidder; the others are spread over recent auctions and people. A bidder bids at most once
    per millisecond.
    """
    rng = np.random.default_rng(0)
    number = np.arange(count)
    at = np.cumsum(rng.integers(0, 3, count))
    auctions, people = number * 3 // 46, number // 46
    recent = np.maximum(auctions - rng.integers(0, 100, count), 0)
    auction = np.where(rng.random(count) < 0.5, auctions // 100 * 100, recent)
    recent = np.maximum(people - rng.integers(0, 1_000, count), 0)
    bidder = np.where(rng.random(count) < 0.75, people // 100 * 100, recent)
    price = (100 * 10 ** (6 * rng.random(count))).astype(np.int64)
    _, kept = np.unique(np.array([bidder, at]), axis=1, return_index=True)
    kept.sort()
    columns = [column[kept].tolist() for column in (at, auction, bidder, price)]
    return Stream(
        "\n".join(f"Bid({a},{b},{p})@{t}" for t, a, b, p in zip(*columns, strict=True)),
        [(START + t * MILLISECOND, a, b, p) for t, a, b, p in zip(*columns, strict=True)],
        columns[0][-1],
    )


def run_rules(rules: str, query: str, stream: Stream) -> list[Answers]:
    """Read the bids, and return the answers, part by part."""
    data = tl.Dataset.parse(stream.text, ordered=True)
    reasoner = tl.Reasoner(tl.Program.parse(rules), query)
    answers = [step.answers for step in reasoner.feed(data)]
    return [*answers, reasoner.finish_step(stream.last + WINDOW).answers]


def render(answers: list[Answers]) -> bytes:
    """Print answers as fact text."""
    return b"".join(part.render() for part in answers)


def compare_with_bytewax() -> Iterator[Row]:
    """Measure both systems on all queries."""
    stream = generate_bids(BIDS)
    count = len(stream.bids)
    queries: list[tuple[str, str, str, Callable[[Stream], Results], Callable[[bytes], Results]]] = [
        ("highest bid of 10 s", HIGHEST, "Highest", find_highest, read_windows),
        ("hot items of 10 s", HOT_ITEMS, "Hot", find_hot_items, read_windows),
        ("bids per session", SESSIONS, "Size", count_sessions, read_sessions),
    ]
    for name, rules, query, run_peer, read in queries:
        run_rules(rules, query, generate_bids(1_000))
        found, cpu, wall = measure(partial(run_rules, rules, query, stream), REPEATS)
        text, print_cpu, _ = measure(partial(render, found))
        what = f"auctions, {name}"
        answers = f"{text.count(b'@'):,} answers; printed, {count / (cpu + print_cpu) / 1e6:.3f} million"
        try:
            expected, peer_cpu, peer_wall = measure(partial(run_peer, stream), REPEATS)
        except ImportError:
            note = "Bytewax is not installed (pip install tidelog[bench])"
            yield Row(f"{what}: tidelog", count, cpu, wall, format_rate(count, cpu), "ahead of Bytewax", note)
            continue
        same = read(text) == expected
        at = "where sessions end" if read is read_sessions else "where Bytewax's windows end"
        note = f"{at}, the same" if same else f"{at}, they DIFFER"
        peer_note = f"{len(expected):,} answers" + ("" if read is read_sessions else ", every second")
        yield Row(
            f"{what}: Bytewax {version('bytewax')}",
            count,
            peer_cpu,
            peer_wall,
            format_rate(count, peer_cpu),
            "",
            peer_note,
        )
        figure = f"{format_rate(count, cpu)}, {peer_cpu / cpu:.1f} x"
        yield Row(f"{what}: tidelog", count, cpu, wall, figure, "ahead of Bytewax", f"{note}; {answers}")


def format_rate(count: int, cpu: float) -> str:
    return f"{count / cpu / 1e6:.3f} million bids per second"


def read_windows(text: bytes) -> Results:
    """Return the answers of rules at the ends of Bytewax's windows."""
    found: Results = set()
    for fact in tl.Dataset.parse(text.decode()):
        interval = fact.interval
        assert isinstance(interval.lo, Fraction)
        assert isinstance(interval.hi, Fraction)
        for end in range(int(interval.lo) // SLIDE * SLIDE, int(interval.hi) + 1, SLIDE):
            after = interval.lo < end or (interval.lo_closed and interval.lo == end)
            before = end < interval.hi or (interval.hi_closed and interval.hi == end)
            if after and before:
                found.add((end, *(int(value) for value in fact.args)))
    return found


def read_sessions(text: bytes) -> Results:
    """Return bidder, last bid and number of bids of every session: a session ends at a time that belongs to it."""
    facts = tl.Dataset.parse(text.decode())
    ended = (fact for fact in facts if fact.interval.hi_closed and isinstance(fact.interval.hi, Fraction))
    return {(*(int(value) for value in fact.args), int(fact.interval.hi) - GAP) for fact in ended}


# Bytewax


def find_highest(stream: Stream) -> Results:
    """Find the highest bid in every window."""
    import bytewax.operators.windowing as win

    def select(bids: Any, clock: Any) -> Any:
        return win.max_window("highest", bids, clock, sliding_windows(), by=lambda bid: bid[3]).down

    return {(end_of(window), bid[3]) for _, (window, bid) in run_flow(stream, lambda bid: "all", select)}


def find_hot_items(stream: Stream) -> Results:
    """Find the auctions with the most bids in every window.

    One dictionary of counts per window is faster here than windows per auction.
    """
    import bytewax.operators.windowing as win

    def count(counts: defaultdict[int, int], bid: Bid) -> defaultdict[int, int]:
        counts[bid[1]] += 1
        return counts

    def merge(one: defaultdict[int, int], other: defaultdict[int, int]) -> defaultdict[int, int]:
        raise AssertionError("sliding windows do not merge")

    def select(bids: Any, clock: Any) -> Any:
        import bytewax.operators as op

        windows = win.fold_window("count", bids, clock, sliding_windows(), partial(defaultdict, int), count, merge)
        return op.map("most", windows.down, find_most)

    def find_most(item: tuple[str, tuple[int, dict[int, int]]]) -> list[tuple[int, int, int]]:
        window, counts = item[1]
        most = max(counts.values())
        return [(end_of(window), auction, most) for auction, number in counts.items() if number == most]

    return {result for results in run_flow(stream, lambda bid: "all", select) for result in results}


def count_sessions(stream: Stream) -> Results:
    """Count the bids of every session of a bidder."""
    import bytewax.operators.windowing as win

    def select(bids: Any, clock: Any) -> Any:
        windower = win.SessionWindower(gap=GAP * MILLISECOND)
        windows = win.fold_window("count", bids, clock, windower, lambda: (0, START), count, max)
        return windows.down

    def count(session: tuple[int, datetime], bid: Bid) -> tuple[int, datetime]:
        return session[0] + 1, bid[0]

    found = run_flow(stream, lambda bid: str(bid[2]), select)
    return {(int(bidder), number, (last - START) // MILLISECOND) for bidder, (_, (number, last)) in found}


def run_flow(stream: Stream, key: Callable[[Bid], str], select: Callable[[Any, Any], Any]) -> list[Any]:
    """Run a dataflow over the bids by key, and return its output.

    The bids alone tell the time. Without a way from their time to that of the system, Bytewax does not wake up for each
    open window after every batch, which would take several times as long for sessions.
    """
    import bytewax.operators as op
    import bytewax.operators.windowing as win
    from bytewax import testing
    from bytewax.dataflow import Dataflow

    found: list[Any] = []
    flow = Dataflow("auctions")
    clock: Any = win.EventClock(
        lambda bid: bid[0], timedelta(0), now_getter=lambda: START, to_system_utc=lambda _: None
    )
    bids = op.key_on("key", op.input("bids", flow, testing.TestingSource(stream.bids, batch_size=1_000)), key)
    op.output("found", select(bids, clock), testing.TestingSink(found))
    run_main: Any = testing.run_main  # which has no types
    run_main(flow)
    return found


def sliding_windows() -> Any:
    import bytewax.operators.windowing as win

    return win.SlidingWindower(length=WINDOW * MILLISECOND, offset=SLIDE * MILLISECOND, align_to=START)


def end_of(window: int) -> int:
    """Return the end of a sliding window, by its number."""
    return window * SLIDE + WINDOW

"""The end of time in a job with `until`: the last answers, without closing the state.

A stream that ends at T gives the answers that still hold there with a closed end, and takes conditions on later times
as not met. The state of a bucket must not: the next run may continue from it. So the end is computed on a copy of the
engine. Facts that are derived only at the end go to the next stage as rows of their own kind, for its copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from tidelog.data import wire_format
from tidelog.data.wire_format import FactBlock
from tidelog.engine.stream_kernel import REPORTED
from tidelog.language.hidden_predicates import TIMES
from tidelog.spark.worker.history_slices import select_facts
from tidelog.streaming.answers import StreamStep
from tidelog.streaming.reasoner import Reasoner
from tidelog.timeline.grid import NEG_INF


def split_at_end(payloads: Iterable[bytes], until: Fraction) -> tuple[list[bytes], list[bytes]]:
    """Split blocks of facts into those that begin at `until` or before, and those that begin later."""
    now: list[bytes] = []
    later: list[bytes] = []
    for payload in payloads:
        piece = wire_format.unpack(payload)
        in_time = piece.lo <= _last_position(until, piece)
        if in_time.all():
            now.append(payload)
        elif not in_time.any():
            later.append(payload)
        else:
            now.append(select_facts(piece, in_time))
            later.append(select_facts(piece, ~in_time))
    return now, later


def _last_position(until: Fraction, piece: FactBlock) -> int:
    """Return the last position on the doubled grid at which a fact begins at `until` or before."""
    ticks = until * piece.denominator
    return 2 * (ticks.numerator // ticks.denominator) + (ticks.denominator > 1)


def end_copy(copy: Reasoner, until: Fraction, payloads: list[bytes]) -> Iterator[StreamStep]:
    """Give a copy of an engine its last facts, end time at `until`, and yield the steps with the last answers."""
    facts = [wire_format.unpack(payload) for payload in payloads]
    points = copy.evaluation.output is not None
    if facts:
        times = {Fraction(int(lo) >> 1, f.denominator) for f in facts if f.predicate == TIMES for lo in f.lo}
        data = wire_format.to_dataset(piece for piece in facts if piece.predicate != TIMES)
        yield copy.take_step(until, data, closed=True, times=times if points else None)
    reported = int(copy.evaluation.at[REPORTED])
    step = copy.finish_step(until)
    if copy.partial:
        rows = step.answers.block()[0]
        rows = rows.clip(reported if reported == NEG_INF else reported + 1, copy.evaluation.position(until))
        step = step.with_answers(copy.evaluation.answers(rows))
    yield step

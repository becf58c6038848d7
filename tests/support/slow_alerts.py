"""Alerts by their definition, from all the answers of a stream at once: slow, and right by what the words mean.

`told` says what must have been told by the time that all is known up to some time; it shares no code with the module
that it judges, but for the type of what is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import groupby

from tidelog.language.syntax import Fact, Value
from tidelog.streaming.alerts import Alert, AlertOptions, Change
from tidelog.timeline.interval import Time

#: Before a time (False) or up to and with it (True) all is known.
Known = tuple[Time, bool]


def has_begun(fact: Fact, known: Known) -> bool:
    lo, (t, included) = fact.interval.lo, known
    return lo < t or (lo == t and included and fact.interval.lo_closed)


def has_ended(fact: Fact, known: Known, integer: bool) -> bool:
    """Whether some time after it is known, at which it does not hold."""
    hi, (t, included) = fact.interval.hi, known
    if integer:
        return hi + 1 <= t if included else hi + 1 < t
    return hi < t or (hi == t and included and not fact.interval.hi_closed)


def is_over(hi: Time, known: Known, dedupe: Fraction, integer: bool) -> bool:
    """Whether nothing can begin any more within `dedupe` of an end."""
    t, included = known
    return t > hi + dedupe or (t == hi + dedupe and included and integer)


def find_incidents(answers: Iterable[Fact], dedupe: Fraction | None) -> list[list[Fact]]:
    """The intervals of one atom, those that follow each other within `dedupe` together."""
    found: list[list[Fact]] = []
    for fact in sorted(answers, key=lambda fact: fact.interval.hi):
        if dedupe is not None and found and fact.interval.lo - found[-1][-1].interval.hi <= dedupe:
            found[-1].append(fact)
        else:
            found.append([fact])
    return found


def alert_key(args: tuple[Value, ...]) -> list[tuple[bool, Value]]:
    return [(isinstance(value, str), value) for value in args]


def compute_alerts(
    answers: Iterable[Fact], config: AlertOptions, known: Known, integer: bool
) -> tuple[list[Alert], int]:
    """The alerts, in the order of their times, and how many answers are not told."""
    begun = [fact for fact in answers if has_begun(fact, known)]
    silenced = 0
    candidates: list[tuple[tuple[Time, bool], list[tuple[bool, Value]], Alert, Change | None]] = []
    for _, same in groupby(sorted(begun, key=lambda fact: alert_key(fact.args)), key=lambda fact: fact.args):
        for incident in find_incidents(same, config.dedupe):
            first, last = incident[0], incident[-1]
            silenced += len(incident) - 1
            begins, ends = first.interval, last.interval
            if config.changes:
                start = Change("start", first.predicate, first.args, begins.lo, begins.lo_closed)
                over = has_ended(last, known, integer)
                if config.dedupe is not None:
                    over = over and is_over(ends.hi, known, config.dedupe, integer)
                end = Change("end", first.predicate, first.args, ends.hi, ends.hi_closed) if over else None
                candidates.append(((begins.lo, not begins.lo_closed), alert_key(first.args), start, end))
            elif has_ended(first, known, integer):
                candidates.append(((begins.hi, begins.hi_closed), alert_key(first.args), first, None))
    found: list[tuple[tuple[Time, int], Alert]] = []
    rang: dict[tuple[Value, ...], Time] = {}
    for (time, side), _, alert, end in sorted(candidates, key=lambda c: c[:2]):
        key = tuple(alert.args[n - 1] for n in config.per) if config.per else alert.args
        if config.cooldown and key in rang and (time == rang[key] or time - rang[key] < config.cooldown):
            silenced += 1
            continue
        rang[key] = time
        found.append(((time, int(side)), alert))
        if end is not None:
            found.append(((end.time, int(end.closed)), end))
    return [alert for _, alert in sorted(found, key=lambda pair: pair[0])], silenced

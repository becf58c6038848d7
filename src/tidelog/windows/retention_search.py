"""Find out for how long each predicate of a DatalogMTL query has to be kept.

**The question.** A reasoner that keeps a predicate P for r sees, at time t, the facts of P from t - r to t, given and
derived. At each time it derives what follows at that time, from what it sees, and remembers it. It loses an answer if
something follows from the rules and the whole stream, but not so. How far rules look back is enough for every stream.
The question is how much less is enough.

**The answer.** Predicates are shortened one after the other, in the order of their names, while the others are kept as
long as found so far. The result loses no answer, and no predicate can be kept for a tick less: a stream shows which
answer is lost. (More memory never loses an answer, since rules have no negation; so a stream that loses one still does
when other predicates are shortened later.) Another order may give another result: if either of two predicates can
replace the other, only one of them has to be kept.

**How it is decided.** `time_cells` turns the rules, with and without the limits, into rules over cells of time, and
the search for windows decides whether the second have all answers of the first. Over the integers this covers every
stream. Over the rationals it covers the streams whose times are multiples of the tick, the greatest number that divides
all ranges. A stream that loses an answer is one of these; so if nothing is less than what the rules read, that is
exact for every stream.

Without known objects, streams that mention few objects are tried. What loses no answer on these is proved for all
objects by unfolding, if the query is not recursive. If all atoms of each rule have the same arguments, what holds for
one object proves it for all, also with recursion. Otherwise the result is what is known: a lower and an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import isinf
from string import ascii_lowercase
from time import monotonic
from typing import Any

from tidelog.analysis.memory_bounds import greatest_common_divisor
from tidelog.analysis.predicate_graph import restrict_to_query
from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.analysis.time_reach import find_reads
from tidelog.language.fact_text import format_fact, format_value
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact, Rule, Value, Variable
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import Interval, Time, TimelineName, format_time
from tidelog.windows.body_freezing import range_endpoints
from tidelog.windows.forward_query import ForwardQuery
from tidelog.windows.incremental_solver import DeadlineExceeded, Effort, check_deadline
from tidelog.windows.loss_search import ProgressCallback, find_loss
from tidelog.windows.object_names import Objects, parse_objects
from tidelog.windows.open_containment import find_obstacle, find_open_loss
from tidelog.windows.redundant_rules import drop_redundant_rules
from tidelog.windows.time_cells import GAP, TooManyCells, find_cell_obstacle, translate_to_cells
from tidelog.windows.witness import TimedFact, Witness

#: Steps for one question without known objects, which may have no end.
_OPEN_STEPS = 4_000_000
#: Streams over this many objects besides those that the rules name are tried if the objects are not known.
_TRIED_OBJECTS = 2


@dataclass(frozen=True)
class LosingStream:
    """Facts of a stream on which an answer is lost."""

    stream: tuple[Fact, ...]
    lost: Fact

    def to_json(self) -> dict[str, object]:
        """Return the facts as text, ready for JSON."""
        return {"stream": list(map(format_fact, self.stream)), "lost": format_fact(self.lost)}


@dataclass(frozen=True)
class Retention:
    """For how long a predicate has to be kept: for `least` at least, and `enough` is enough.

    Rules look back at it for `read`, not counting those that follow from others and are left out. If `least` is not 0,
    the witness loses an answer when the predicate is kept for a tick less than `least`."""

    predicate: str
    read: Time
    enough: Time
    least: Time
    witness: LosingStream | None = None

    def to_json(self) -> dict[str, object]:
        """Return the entry of a predicate in what `tidelog window --json` prints."""
        times = {"read": self.read, "enough": self.enough, "least": self.least}
        found: dict[str, object] = {name: format_time(time) for name, time in times.items()}
        return {**found, "witness": self.witness.to_json() if self.witness else None}


@dataclass(frozen=True)
class RetentionReport:
    """The retention of each predicate that a query looks back at; `reason` says why it is not known exactly.

    `searched` says whether anything less than what rules read was tried."""

    query: str
    timeline: TimelineName
    tick: Fraction
    objects: tuple[Value, ...] | None
    predicates: tuple[Retention, ...]
    reason: str | None = None
    searched: bool = True

    def describe_scope(self, found: Retention) -> str:
        """Say for which streams it is proved that what is enough for a predicate is enough."""
        if found.enough == found.read:
            return "for all streams"
        over = "" if self.objects is None else " over " + ", ".join(map(format_value, self.objects))
        times = "" if self.timeline == "integer" else f" with times that are multiples of {format_time(self.tick)}"
        return f"for streams{over}{times}" if over or times else "for all streams"

    def to_json(self) -> dict[str, Any]:
        """Return the object that `tidelog window --json` prints for DatalogMTL."""
        return {
            "timeline": self.timeline,
            "tick": format_time(self.tick),
            "retention": {found.predicate: found.to_json() for found in self.predicates},
            "reason": self.reason,
        }


def retention(
    program: Program,
    query: str,
    objects: Objects | None = None,
    *,
    timeline: TimelineName | None = None,
    timeout: float | None = None,
    progress: ProgressCallback | None = None,
) -> RetentionReport:
    """Compute for how long each predicate has to be kept so that no answer to a query is lost.

    The result is exact over the given `objects`, and often without them; where time ran out, and where a query is not
    forward-propagating, negates or has ranges without an end, the report says what is known.

    >>> import tidelog as tl
    >>> rules = "P(X) :- Diamondminus[0,5] A(X). P(X) :- Q(X), Boxminus[0,9] A(X). Q(X) :- A(X)."
    >>> report = tl.windows.retention(tl.Program.parse(rules), "P", ["a"])
    >>> [(found.predicate, found.read, found.least, found.enough) for found in report.predicates]
    [('A', Fraction(5, 1), Fraction(5, 1), Fraction(5, 1))]
    """
    require_known_predicates([query], known_predicates(program))
    line = timeline or program.timeline
    known = None if objects is None else parse_objects(objects)
    part = restrict_to_query(program, query)
    rules = [rule for rule in drop_redundant_rules(part, line) if head_atom(rule) is not None]
    read = {name: back for name, back in sorted(_measure_reads(rules, line).items()) if back > 0}
    tick = _find_tick(rules, line)
    reason = "the rule file has facts" if program.facts else find_cell_obstacle(rules)
    if reason is None:
        deadline = None if timeout is None else monotonic() + timeout
        try:
            search = _RetentionSearch(rules, query, line, tick, known, deadline, progress)
            found = tuple(search.shorten(name, back) for name, back in read.items())
            return RetentionReport(query, line, tick, known, found, search.reason)
        except TooManyCells:
            reason = f"the ranges have too many ticks of {format_time(tick)}"
    found = tuple(Retention(name, back, back, Fraction(0)) for name, back in read.items())
    return RetentionReport(query, line, tick, known, found, reason, searched=False)


def _measure_reads(rules: Iterable[Rule], timeline: TimelineName) -> dict[str, Time]:
    """Return how far back rules read each predicate that the user wrote."""
    back: dict[str, Time] = {}
    for rule in rules:
        for found in find_reads(rule, timeline):
            if not is_hidden(found.predicate):
                back[found.predicate] = max(back.get(found.predicate, Fraction(0)), -found.lo)
    return back


def _find_tick(rules: Iterable[Rule], timeline: TimelineName) -> Fraction:
    """Return the distance of the time points: 1 over the integers, else what divides the ends of all ranges."""
    ends = [Fraction(end) for rule in rules for end in range_endpoints(rule) if not isinf(end)]
    return Fraction(1) if timeline == "integer" else greatest_common_divisor(ends) or Fraction(1)


class _RetentionSearch:
    """Shortens the retention of one predicate after the other; `kept` has those found so far, in ticks."""

    def __init__(
        self,
        rules: Sequence[Rule],
        query: str,
        timeline: TimelineName,
        tick: Fraction,
        objects: tuple[Value, ...] | None,
        deadline: float | None,
        progress: ProgressCallback | None,
    ) -> None:
        self.rules, self.query, self.timeline, self.tick = rules, query, timeline, tick
        self.kept: dict[str, int] = {}
        #: Why something could not be decided.
        self.reason: str | None = None
        self.deadline = deadline
        self.whole = translate_to_cells(rules, query, timeline, tick, {})
        self.judge = _judge_known(objects, progress) if objects is not None else _judge_open

    def shorten(self, name: str, read: Time) -> Retention:
        """Return for how long a predicate has to be kept, and keep it only so long from now on.

        A predicate that is kept longer loses no more answers, so the search is binary; what is read is tried first."""
        ticks = int(Fraction(read) / self.tick)
        least, top, proved = 0, ticks, ticks
        witness: LosingStream | None = None
        while least < top:
            tried = top - 1 if top == ticks else (least + top) // 2
            try:
                found = self._find_loss({**self.kept, name: tried})
            except DeadlineExceeded as problem:
                self.reason = str(problem)
                top = tried
                continue
            if found is None:
                top = proved = tried
            else:
                least, witness = tried + 1, found
        self.kept[name] = proved
        return Retention(name, read, proved * self.tick, least * self.tick, witness)

    def _find_loss(self, kept: dict[str, int]) -> LosingStream | None:
        cut = translate_to_cells(self.rules, self.query, self.timeline, self.tick, kept)
        undecided: DeadlineExceeded | None = None
        for left, right in zip(self.whole, cut, strict=True):
            check_deadline(self.deadline)
            try:
                witness = self.judge(left, right, self.deadline)
            except DeadlineExceeded as problem:
                undecided = problem
                continue
            if witness is not None:
                return self._to_stream(witness)
        if undecided is not None:
            raise undecided
        return None

    def _to_stream(self, witness: Witness) -> LosingStream:
        """Return a witness over cells as facts with intervals; cells that touch become one."""
        cells = sorted((*_locate(fact, self.timeline), fact[1]) for fact in witness.stream)
        facts: list[Fact] = []
        for (name, args), group in groupby(sorted((n, a, c) for n, c, a in cells), key=lambda cell: cell[:2]):
            places = [place for _, _, place in group]
            starts = [place for place in places if place - 1 not in places]
            ends = [place for place in places if place + 1 not in places]
            facts += [Fact(name, args, self._interval(*ends)) for ends in zip(starts, ends, strict=True)]
        facts.sort(key=lambda fact: (fact.interval.lo, not fact.interval.lo_closed))
        name, place = _locate(witness.lost, self.timeline)
        return LosingStream(tuple(facts), Fact(name, witness.lost[1], self._interval(place, place)))

    def _interval(self, low: int, high: int) -> Interval:
        ticks = Grid(self.timeline == "rational").to_interval(low, high)
        ends = Fraction(ticks.lo) * self.tick, Fraction(ticks.hi) * self.tick
        return Interval(*ends, ticks.lo_closed, ticks.hi_closed)


def _locate(fact: TimedFact, timeline: TimelineName) -> tuple[str, int]:
    """Return the predicate of a fact over cells, and its position on the grid."""
    name, _, step = fact
    assert step is not None
    if timeline == "integer":
        return name, step
    return name.removesuffix(GAP), 2 * step + name.endswith(GAP)


_Judge = Callable[[ForwardQuery, ForwardQuery, float | None], Witness | None]


def _judge_known(objects: tuple[Value, ...], progress: ProgressCallback | None) -> _Judge:
    def judge(left: ForwardQuery, right: ForwardQuery, deadline: float | None) -> Witness | None:
        return find_loss(left, right, objects, deadline, progress)

    return judge


def _judge_open(left: ForwardQuery, right: ForwardQuery, deadline: float | None) -> Witness | None:
    """Search a loss over few objects, then prove that there is none over any; raise if neither succeeds in time."""
    limit = Effort(_OPEN_STEPS) if deadline is None else deadline
    named = sorted(left.constants, key=str)
    free = [name for name in ascii_lowercase if name not in named][:_TRIED_OBJECTS]
    for count in range(1, len(free) + 1):
        try:
            witness = find_loss(left, right, (*free[:count], *named), limit)
        except DeadlineExceeded:
            break
        if witness is not None:
            return witness
        if _keeps_objects_apart(left) and _keeps_objects_apart(right):
            return None
    if obstacle := find_obstacle(left, right):
        raise DeadlineExceeded(obstacle.reason)
    return find_open_loss(left, right, Effort(_OPEN_STEPS) if deadline is None else deadline)


def _keeps_objects_apart(query: ForwardQuery) -> bool:
    """Return whether all atoms of each rule have the same arguments: then what holds of one object proves all."""
    return not query.facts and all(
        not rule.comparisons
        and all(atom.args == rule.args for atom in rule.body)
        and all(isinstance(term, Variable) for term in rule.args)
        and len(set(rule.args)) == len(rule.args)
        for rule in query.rules
    )

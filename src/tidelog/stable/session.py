"""A session over stable models: at each time point of a stream, what holds in some and in all stable models so far.

The program must be forward-propagating, so that the facts up to a time decide what holds at it. `stream_components`
keeps the windows that are possible; this module has the clock, the facts that arrive and the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Self

from tidelog.analysis.time_reach import find_reads, head_distance
from tidelog.compiler.violations import describe_violation
from tidelog.data.data_frames import DataLike, FactsLike, to_dataset
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Relation, to_facts
from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.hidden_predicates import is_hidden, is_violation
from tidelog.language.printer import format_rule
from tidelog.language.program_json import program_from_json, program_to_json
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact
from tidelog.language.syntax_json import value_from_json, value_to_json
from tidelog.language.time_like import TimeLike, to_dated_time, to_integer_time
from tidelog.session import Step
from tidelog.stable.clingo_control import create_control
from tidelog.stable.grounding import GroundAtom
from tidelog.stable.normal_form import NormalRule, orient_forward
from tidelog.stable.problem import GRID, collect_fact_intervals, prepare_data, prepare_problem, require_beginnings
from tidelog.stable.search_limits import MOST_WINDOWS
from tidelog.stable.stream_components import Facts, NoWindowLeft, StreamComponents
from tidelog.streaming.fact_input import read_fact
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import INF, Interval, Time

if TYPE_CHECKING:
    from tidelog.language.program import Program

_ALWAYS = ((NEG_INF, POS_INF),)
_ORDER_LAW = "the facts of a stream arrive in the order in which they begin to hold"


@dataclass(frozen=True, slots=True)
class StableAnswers:
    """What holds at a time point, of the predicates in heads: in `all` stable models so far, and in `some` of them."""

    time: Fraction
    all: tuple[Fact, ...]
    some: tuple[Fact, ...]


class StableStep(list[StableAnswers], Step[StableAnswers]):
    """The time points that one call made known, as a list; `time` is that of the clock."""

    def __init__(self, answers: Iterable[StableAnswers], time: Time) -> None:
        super().__init__(answers)
        self._time = time

    @property
    def time(self) -> Time:
        return self._time


class StableReasoner:
    """The stable models of a forward-propagating program along a stream; a `Session` whose answers are time points.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Open :- Door, not Shut. Shut :- Door, not Open.")
    >>> reasoner = tl.stable.StableReasoner(program)
    >>> reasoner.push(0, ["Door"])
    []
    >>> (point,) = reasoner.advance(0)
    >>> [fact.predicate for fact in point.some], [fact.predicate for fact in point.all]
    (['Open', 'Shut'], [])
    """

    def __init__(self, program: Program, *, background: DataLike | None = None, most: int = MOST_WINDOWS) -> None:
        """Prepare a program with the facts in `background`, which hold at all times.

        A search with more than `most` windows at a time is given up.
        """
        facts = self._prepare(program, to_dataset(background or {}), most)
        self._background = frozenset(atom for atom, pairs in facts.items() if pairs == _ALWAYS)
        self._add_facts(facts)
        try:
            self._components.find_initial_windows()
        except NoWindowLeft as stuck:
            raise self._explain_inconsistency(stuck) from None

    def _prepare(self, program: Program, data: Dataset, most: int, symbols: Symbols | None = None) -> Facts:
        """Set up everything but the facts, which are returned; `symbols` are those of a saved state."""
        create_control()
        self.program = program
        self._problem = prepare_problem(program, data)
        self._max_windows = most
        forward = orient_forward(self._problem.rules)
        if forward is None or forward.mirrored or any(forward.offsets[p] for p in forward.offsets if not is_hidden(p)):
            raise _looks_ahead_error(program)
        self._rules = forward.rules
        _require_bound_variables(program, forward.rules)
        require_beginnings(self._problem)
        self._symbols = symbols or self._problem.data.symbols
        self._heads = {head.predicate for rule in program.rules if (head := head_atom(rule)) is not None}
        self._components = StreamComponents(forward.rules, self._symbols, most)
        #: Facts begin at this time or later.
        self._clock = NEG_INF
        #: Time points that are still to be answered: a heap.
        self._points: list[int] = []
        #: Whether times were given as dates, so that answers are printed with dates.
        self.dates = self._problem.data.dates
        return self._problem.facts

    def push(self, t: TimeLike, facts: FactsLike = ()) -> StableStep:
        """Advance the clock to t and add facts; facts without a time hold at t. More may follow at t.

        Returns what is known of the time points before t. These are the times of pushes and the ends of facts.
        """
        now = to_integer_time(t)
        self.dates |= to_dated_time(t)[1]
        data = prepare_data(self.program, self._read_all(facts, now))
        self.dates |= data.dates
        new_facts = self._require_in_order(data, now)
        self._clock = max(now, self._clock)
        answers = list(self._answer_until(self._clock - 1))
        self._add_facts(new_facts)
        self._add_point(now)
        return StableStep(answers, self._time)

    def advance(self, t: TimeLike) -> StableStep:
        """Advance the clock to t and close t: no more facts hold at or before t. Returns what is known up to t."""
        now = to_integer_time(t)
        self._clock = max(now + 1, self._clock)
        self._add_point(now)
        return StableStep(self._answer_until(now), Fraction(now))

    def finish(self, until: TimeLike | None = None) -> StableStep:
        """End the stream, at `until` or else at the last time seen, and return what is known up to then."""
        return StableStep(self.finish_points(until), self._time)

    def finish_points(self, until: TimeLike | None = None) -> Iterator[StableAnswers]:
        """End the stream as `finish` does, and yield each time point as soon as it is known."""
        last = max(self._points, default=NEG_INF) if until is None else to_integer_time(until)
        return self._answer_until(last)

    def feed(self, data: Dataset) -> Iterator[StableAnswers]:
        """Push facts in order of arrival (a `Dataset` read with `ordered`), each at the time at which it begins."""
        rows = [
            (int(order), fact)
            for relation in data.relations.values()
            for order, fact in zip(_order(relation), to_facts(data.symbols, data.denominator, relation), strict=True)
        ]
        rows.sort(key=lambda row: row[0])
        together: list[Fact] = []
        for _, fact in rows:
            if together and fact.interval.lo != together[0].interval.lo:
                yield from self._push_together(together, data.dates)
                together = []
            together.append(fact)
        if together:
            yield from self._push_together(together, data.dates)

    def _push_together(self, facts: list[Fact], dates: bool) -> StableStep:
        self.dates |= dates
        begin = facts[0].interval.lo
        if isinstance(begin, float):
            raise TidelogError(
                Diagnostic(
                    "TL328",
                    f"the fact {format_fact(facts[0], self.dates)} has no beginning",
                    help="facts that always hold are background: give them as DATA",
                )
            )
        return self.push(begin, facts)

    @property
    def _time(self) -> Time:
        return -INF if self._clock == NEG_INF else Fraction(self._clock)

    # Saved states

    def save(self) -> bytes:
        """Return the whole state; `load` continues from it exactly."""
        from tidelog.streaming.state_format import pack

        state = {
            "stable": program_to_json(self.program),
            "most": self._max_windows,
            "dates": self.dates,
            "clock": self._clock,
            "points": sorted(self._points),
            "symbols": [value_to_json(self._symbols.value(number)) for number in range(len(self._symbols))],
            "background": sorted(self._background),
            "components": self._components.to_json(),
        }
        return pack(state, {})

    @classmethod
    def load(cls, state: bytes, program: Program | None = None) -> Self:
        """Return a reasoner that continues where the saved one stopped; `program` must be the same, if given."""
        from tidelog.streaming.state_format import unpack

        meta, _ = unpack(state)
        if "stable" not in meta or (program is not None and program_to_json(program) != meta["stable"]):
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    "the state was saved with other rules, or not by a reasoner for stable models",
                    law="a state continues with the rules that it was saved with",
                    help="load it with the same rules, or start without it",
                )
            )
        symbols = Symbols()
        for value in meta["symbols"]:
            symbols.intern(value_from_json(value))
        reasoner = cls.__new__(cls)
        reasoner._prepare(program_from_json(meta["stable"]), Dataset(), meta["most"], symbols)
        reasoner.dates, reasoner._clock, reasoner._points = meta["dates"], meta["clock"], meta["points"]
        reasoner._background = frozenset((name, tuple(args)) for name, args in meta["background"])
        reasoner._components.restore(meta["components"])
        return reasoner

    # Facts

    def _read_all(self, facts: FactsLike, now: int) -> Dataset:
        if isinstance(facts, Dataset):
            return facts
        if isinstance(facts, Mapping):
            return to_dataset(facts).with_background_at(Fraction(now))
        return Dataset.from_facts(self._read(fact, now) for fact in facts)

    def _read(self, fact: str | Fact, now: int) -> Fact:
        read, dated = read_fact(self.program, fact, Fraction(now))
        self.dates |= dated
        if read.interval == Interval.always():
            return Fact(read.predicate, read.args, Interval.point(Fraction(now)))
        return read

    def _require_in_order(self, data: Dataset, now: int) -> Facts:
        """Return the facts with the symbols of this reasoner; raise if one of them begins before the clock."""
        facts: Facts = {}
        clock = max(now, self._clock)
        values = data.symbols
        for (predicate, args), pairs in collect_fact_intervals(data).items():
            atom = predicate, tuple(self._symbols.intern(values.value(a)) for a in args)
            if atom in self._background:
                continue
            for lo, hi in pairs:
                if lo < clock:
                    early = Fact(predicate, tuple(values.value(a) for a in args), GRID.to_interval(lo, hi))
                    raise TidelogError(
                        Diagnostic(
                            "TL328",
                            f"the fact {format_fact(early, self.dates)} arrives when the clock is at {clock} already",
                        )
                    )
            facts[atom] = pairs
        return facts

    def _add_facts(self, facts: Facts) -> None:
        for pairs in facts.values():
            for time in (end for pair in pairs for end in pair):
                if abs(time) != POS_INF:
                    self._add_point(time)
        self._components.add_facts(facts)

    def _add_point(self, time: int) -> None:
        if self._components.next_time is None or time >= self._components.next_time:
            heappush(self._points, time)

    # Answers

    def _answer_until(self, now: int) -> Iterator[StableAnswers]:
        """Evaluate everything up to a time, and yield what is known at the time points on the way."""
        components = self._components
        if components.next_time is None:
            if not self._points:
                return
            components.start(min(self._points))
        assert components.next_time is not None
        try:
            while self._points and self._points[0] <= now:
                point = heappop(self._points)
                if point >= components.next_time:
                    components.evaluate_until(point)
                    yield self._answers_at(point)
            if components.next_time <= now:
                components.evaluate_until(now)
        except NoWindowLeft as stuck:
            raise self._explain_inconsistency(stuck) from None
        components.forget_facts()

    def _answers_at(self, time: int) -> StableAnswers:
        in_all, in_some = self._components.find_atoms_at(time, self._heads)
        return StableAnswers(Fraction(time), self._to_facts(in_all, time), self._to_facts(in_some, time))

    def _to_facts(self, atoms: list[GroundAtom], time: int) -> tuple[Fact, ...]:
        ranks = self._symbols.ranks()
        atoms.sort(key=lambda atom: (atom[0], [int(ranks[a]) for a in atom[1]]))
        point = Interval.point(Fraction(time))
        return tuple(Fact(name, tuple(self._symbols.value(a) for a in args), point) for name, args in atoms)

    def _explain_inconsistency(self, stuck: NoWindowLeft) -> TidelogError:
        """Build the error for a stream that leaves no stable model: since when, and which constraints are violated."""
        time, part = stuck.time, stuck.part
        when = "before the stream begins" if time is None else f"from {time} on"
        diagnostics = [Diagnostic("TL326", f"no stable model is left {when}")]
        numbers = {n for window in stuck.windows for n in part.machine.find_violated(window, stuck.given)}
        for rule in (part.component.rules[n] for n in sorted(numbers)[:3]):
            origin = self._rules[rule.rule].origin
            rules = self._problem.rules
            name = next(r.predicate for r in rules if r.origin == origin and is_violation(r.predicate))
            values = [self._symbols.value(a) for a in rule.reported]
            at = Interval.point(Fraction(time)) if time is not None else Interval.always()
            diagnostics.append(describe_violation(self._problem.compiled, name, values, at))
        return Inconsistent(diagnostics)


def _order(relation: Relation) -> Iterable[int]:
    return range(len(relation)) if relation.order is None else relation.order.tolist()


def _looks_ahead_error(program: Program) -> TidelogError:
    for rule in program.rules:
        written = head_distance(rule, "integer") if head_atom(rule) is not None else 0
        if any(read.hi > written for read in find_reads(rule, "integer")):
            why = f"`{rule.text or format_rule(rule)}` looks ahead"
            message = f"{why}, so the facts up to a time do not decide what holds at it"
            return TidelogError(Diagnostic("TL327", message, rule.place))
    return TidelogError(
        Diagnostic("TL327", "these rules look ahead, so the facts up to a time do not decide what holds at it")
    )


def _require_bound_variables(program: Program, rules: Iterable[NormalRule]) -> None:
    wrong = {rule.origin for rule in rules if rule.binders}
    if wrong:
        raise TidelogError(
            Diagnostic(
                "TL327",
                "a variable occurs only in the left operand of Since, which is not supported along a stream",
                program.rules[origin].place,
                law="along a stream, the constants that a variable stands for must have occurred",
                help="use the variable in another literal of the body",
            )
            for origin in sorted(wrong)
        )

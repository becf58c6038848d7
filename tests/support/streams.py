"""One program over one stream, fed in one of many ways: everything that must hold of the answers.

`Plan` says how the stream is fed. `complaints` runs it and judges: the answers are those of batch reasoning over all
facts, cut off where time stops; each comes once, in the order in which they end; none is given before it is certain
(it is an answer whatever comes later) and each as soon as it is.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

import tidelog as tl
from formula_parts import head_atom, head_predicates
from judge import choose_scope
from numeric_oracle import reachable, readings
from oracle import evaluate, tables_of
from slow_reasoner import contains, end_key, multiples_up_to
from tidelog.analysis.predicate_graph import body_atoms, find_predicate_components
from tidelog.compiler.compiled_program import Memory
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Atom, Binary, BodyLiteral, Bottom, Condition, Fact, Formula, Literal, Rule, Unary
from tidelog.testing import coalesce_facts, same_answers
from tidelog.timeline.interval import INF, Interval, Time, TimelineName

T = TypeVar("T")

#: Stands for the head of every constraint where batch reasoning is asked when they are violated.
BAD = "Violated"

#: Makes a reasoner: `tl.Reasoner`, or the slow one that judges this judge.
Maker = Any


@dataclass(frozen=True)
class Setup:
    """A standing query, what has always been known, and what streams in."""

    program: tl.Program
    query: str
    timeline: TimelineName
    background: tuple[Fact, ...]
    stream: tuple[Fact, ...]

    @property
    def integer(self) -> bool:
        return self.timeline == "integer"

    @property
    def look_ahead(self) -> tl.analysis.CheckReport:
        return tl.check(self.program, self.query, timeline=self.timeline)

    @property
    def last(self) -> Fraction:
        """The last time in what is given."""
        return max(times_of([*self.stream, *self.background, *self.program.facts]), default=Fraction(0))

    @property
    def stops_by_itself(self) -> bool:
        """Whether the last time of the stream is the last of all, so that it is no question where time stops."""
        return self.last in times_of(self.stream)

    @property
    def needed_rules(self) -> tuple[Rule, ...]:
        """The constraints, and the rules that the query depends on."""
        rules = self.program.rules
        edges = [(edge.head, edge.reads) for rule in rules for edge in readings(rule, integer=self.integer)]
        needed = {self.query, *reachable(edges)[self.query]}
        return tuple(rule for rule in rules if head_predicates([rule]) <= needed)

    def accepts(self, _refusal: tl.TidelogError) -> bool:
        """Whether a refusal is right for another reason than that rules look ahead."""
        return False

    def batch(self, facts: Iterable[Fact], end: Fraction) -> tuple[list[Fact], list[Fact]]:
        """The query's answers up to a time, and when constraints are violated up to then."""
        rules = tuple(relax(rule) for rule in self.program.rules)
        asked = [self.query] + [BAD] * (rules != self.program.rules)
        data = tl.Dataset.from_facts([*self.background, *facts])
        program = replace(self.program, rules=rules)
        found = list(tl.materialise(program, data, query=asked, between=(-INF, end), timeline=self.timeline))
        return [f for f in found if f.predicate == self.query], [f for f in found if f.predicate == BAD]


def relax(rule: Rule) -> Rule:
    """The rule with an ordinary head, if it is a constraint."""
    return replace(rule, head=Atom(BAD)) if isinstance(head_atom(rule.head), Bottom) else rule


def set_up(program: tl.Program, query: str, facts: Iterable[Fact], timeline: TimelineName | None = None) -> Setup:
    """Facts that have no beginning are background."""
    facts = list(facts)
    background = tuple(fact for fact in facts if fact.interval.lo == -INF)
    stream = tuple(fact for fact in facts if fact.interval.lo != -INF)
    return Setup(program, query, timeline or program.timeline, background, stream)


def times_of(facts: Iterable[Fact]) -> list[Fraction]:
    return [Fraction(t) for fact in facts for t in (fact.interval.lo, fact.interval.hi) if abs(t) != INF]


# How a stream is fed


@dataclass(frozen=True)
class Plan:
    """Choices; what is left open is drawn from `seed`."""

    seed: int = 0
    #: By `push` and `advance`, or in bulk by `feed`.
    bulk: bool = False
    step: Fraction | None = None
    memory: Memory | None = None
    at: str | tuple[Fraction, ...] | None = None
    delays: tuple[tuple[str | None, Fraction], ...] = ()
    #: Saved and loaded after about every second step.
    interrupted: bool = False
    #: Some facts come before they begin (not in bulk: there the facts are the clock).
    early: bool = False
    #: How long after the last time of the stream time stops; None lets it stop by itself.
    beyond: Fraction | None = Fraction(0)

    def delay_of(self, predicate: str) -> Fraction:
        delays = dict(self.delays)
        return delays.get(predicate, delays.get(None, Fraction(0)))

    @property
    def longest_delay(self) -> Fraction:
        return max((delay for _, delay in self.delays), default=Fraction(0))

    def options(self) -> dict[str, Any]:
        delays: Any = dict(self.delays)
        if delays.keys() <= {None}:
            delays = delays.get(None, Fraction(0))
        return {"delay": delays, "memory": self.memory, "at": self.at}


class Choose(Protocol):
    """Chooses one of several options."""

    def __call__(self, options: Sequence[T], /) -> T: ...


@st.composite
def plans(draw: st.DrawFn, predicates: tuple[str, ...] = (), *, integer: bool = False) -> Plan:
    return choose_plan(lambda options: draw(st.sampled_from(options)), predicates, integer=integer)


def choose_plan(choose: Choose, predicates: tuple[str, ...] = (), *, integer: bool = False) -> Plan:
    """A plan; the predicates may have delays of their own."""
    tick = Fraction(1) if integer else Fraction(1, 2)
    lengths = (Fraction(0), tick, 2 * tick, 5 * tick)
    delays: list[tuple[str | None, Fraction]] = []
    match choose(("none", "none", "one", "many")):
        case "one":
            delays = [(None, choose(lengths))]
        case "many":
            delays = [(name, choose(lengths)) for name in predicates] + [(None, choose(lengths))]
    at: str | tuple[Fraction, ...] | None = None
    match choose(("intervals", "intervals", "input", "every", "times")):
        case "input":
            at = "input"
        case "every":
            at = f"every:{choose((tick, 2 * tick, Fraction(3)))}{choose(('', '+1', '+4' if integer else '+1/3'))}"
        case "times":
            at = tuple(n * tick for n in sorted({choose(range(-4, 31)) for _ in range(choose(range(9)))}))
    bulk = choose((False, True))
    steps = (None, tick, Fraction(1), Fraction(4))
    memories: tuple[Memory | None, ...] = (None, None, "generic", "bounded")
    ends = (None, Fraction(0), tick, Fraction(5))
    return Plan(
        seed=choose(range(1000)),
        bulk=bulk,
        step=choose(steps) if bulk else None,
        memory=choose(memories),
        at=at,
        delays=tuple(delays),
        interrupted=choose((False, True)),
        early=not bulk and choose(range(4)) == 0,
        beyond=choose(ends),
    )


# The run


@dataclass
class Moment:
    """What had come and what had been answered at some time of a run. After `advance` the time itself is over."""

    clock: Fraction
    over: bool
    came: int
    answered: int


@dataclass
class Run:
    arrived: list[Fact] = field(default_factory=list)
    answers: list[Fact] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    held: list[tuple[Fraction, int, int]] = field(default_factory=list)
    late: int = 0
    inconsistent: bool = False


def arrivals(setup: Setup, plan: Plan, choose: random.Random) -> list[tuple[Fraction, Fact]]:
    """Facts with the time at which they come, within their delays, in any order that these allow."""
    found = []
    for fact in setup.stream:
        delay = plan.delay_of(fact.predicate)
        shift = choose.choice((Fraction(0), delay / 2, delay, delay))
        if plan.early and choose.random() < 0.4:
            shift = -Fraction(choose.choice((1, 4)))
        at = Fraction(fact.interval.lo) + shift
        if setup.integer:
            at = Fraction(at // 1)
        found.append((at, choose.random(), fact))
    return [(at, fact) for at, _, fact in sorted(found, key=lambda each: each[:2])]


def run(maker: Maker, setup: Setup, plan: Plan) -> Run:
    """Feeds the stream. TidelogErrors of the constructor are the caller's; a violated constraint ends the run."""
    done, choose = Run(), random.Random(plan.seed)
    background = tl.Dataset.from_facts(setup.background) if setup.background else None
    try:
        reasoner = maker(setup.program, setup.query, timeline=setup.timeline, background=background, **plan.options())
        came = arrivals(setup, plan, choose)
        reasoner = (_feed if plan.bulk else _push)(reasoner, setup, plan, came, done, choose)
        end = setup.last + plan.beyond if plan.beyond is not None else None if setup.stops_by_itself else setup.last
        last = list(reasoner.finish_step(end).answers) if choose.random() < 0.5 else reasoner.finish(end)
        done.answers += last
        done.late = reasoner.late_count
    except tl.errors.Inconsistent:
        done.inconsistent = True
    return done


def _push(
    reasoner: Any, setup: Setup, plan: Plan, came: list[tuple[Fraction, Fact]], done: Run, choose: random.Random
) -> Any:
    tick = Fraction(1) if setup.integer else Fraction(1, 4)
    while came:
        at = came[0][0]
        group = [fact for t, fact in came if t == at]
        came = came[len(group) :]
        while group:
            size = choose.randint(1, len(group))
            chunk, group = group[:size], group[size:]
            answers = reasoner.push(at, _spelt(chunk, at, setup, choose))
            done.arrived += chunk
            _note(reasoner, done, at, False, answers)
            reasoner = _resumed(reasoner, setup, plan, choose)
        later = came[0][0] if came else at + 2
        # Times without facts are no times of the stream, and whether they count as such is left open.
        if plan.at != "input" and choose.random() < 0.5 and (later - at) > tick:
            silent = at + tick * choose.randint(0, int((later - at) / tick) - 1)
            if choose.random() < 0.7 and silent <= max(setup.last, at):
                _note(reasoner, done, silent, True, reasoner.advance(silent))
            elif silent <= max(setup.last, at):
                _note(reasoner, done, silent, False, reasoner.push(silent))
            reasoner = _resumed(reasoner, setup, plan, choose)
    return reasoner


def _spelt(facts: list[Fact], at: Fraction, setup: Setup, choose: random.Random) -> Any:
    """The same facts as objects, as text, with or without the time, or as a dataset."""
    match choose.randint(0, 2):
        case 0:
            return facts
        case 1:
            points = Interval.point(at)
            return [
                format_fact(fact).rpartition("@")[0] if fact.interval == points else format_fact(fact) for fact in facts
            ]
    return tl.Dataset.from_facts(facts)


def _feed(
    reasoner: Any, setup: Setup, plan: Plan, came: list[tuple[Fraction, Fact]], done: Run, choose: random.Random
) -> Any:
    facts = [fact for _, fact in came]
    while facts:
        size = choose.randint(1, len(facts))
        chunk, facts = facts[:size], facts[size:]
        text = "\n".join(map(format_fact, chunk))
        in_order = not plan.delays and choose.random() < 0.5
        if in_order:
            chunk = choose.sample(chunk, len(chunk))
            text = "\n".join(map(format_fact, chunk))
        for step in reasoner.feed(tl.Dataset.parse(text, ordered=not in_order), step=plan.step):
            done.answers += list(step.answers)
            _hold(done, step)
        done.arrived += chunk
        clock = max(Fraction(fact.interval.lo) for fact in done.arrived)
        done.moments.append(Moment(clock, False, len(done.arrived), len(done.answers)))
        reasoner = _resumed(reasoner, setup, plan, choose)
    return reasoner


def _note(reasoner: Any, done: Run, clock: Fraction, over: bool, answers: list[Fact]) -> None:
    done.answers += answers
    done.moments.append(Moment(clock, over, len(done.arrived), len(done.answers)))
    _hold(done, getattr(reasoner, "stats", None))


def _hold(done: Run, step: Any) -> None:
    if hasattr(step, "window_facts"):
        done.held.append((step.time, step.window_facts, step.history_atoms))


def _resumed(reasoner: Any, setup: Setup, plan: Plan, choose: random.Random) -> Any:
    if not plan.interrupted or choose.random() < 0.5:
        return reasoner
    return type(reasoner).load(reasoner.save(), *([setup.program] if choose.random() < 0.5 else []))


# The judgement


def complaints(maker: Maker, setup: Setup, plan: Plan, *, strict: bool = False) -> Iterator[str]:
    """What is wrong with a run, refusals included.

    An operator that looks ahead for ever may stand where nothing depends on it; only `strict` wants a refusal then.
    """
    try:
        done = run(maker, setup, plan)
    except tl.TidelogError as refusal:
        if plan.memory == "bounded" and not must_be_bounded(setup):
            yield from complaints(maker, setup, replace(plan, memory=None), strict=strict)
        elif not setup.accepts(refusal):
            yield from refusal_complaints(setup, refusal)
        return
    if strict and setup.look_ahead.look_ahead.distance == INF:
        yield "looks ahead without bound, but is not refused"
        return
    if strict and plan.memory == "bounded" and computes(setup):
        yield "computes with numbers, but bounded memory is not refused"
        return
    end = setup.last + (plan.beyond or 0)
    if plan.beyond is None and done.moments:
        end = max(end, done.moments[-1].clock)
    try:
        model, violated = setup.batch(setup.stream, end)
    except tl.errors.Undecided:
        return
    if done.inconsistent or violated:
        if not violated:
            yield "no constraint is violated, but the run says so"
        elif not done.inconsistent:
            yield f"a constraint is violated at {violated[0].interval}, but the run does not say so"
        return
    if done.late:
        yield f"{done.late} facts are called late, but none is"
    yield from _wrong_answers(setup, plan, done, model, end)
    yield from _wrong_order(done.answers)
    yield from _wrong_moments(setup, plan, done)


def _wrong_answers(setup: Setup, plan: Plan, done: Run, model: list[Fact], end: Fraction) -> Iterator[str]:
    expected, given = model, done.answers
    if plan.at is not None:
        expected = restrict_to_times(model, output_times(plan, setup.stream, end))
        # Over the integers (0,3) is [1,2]: whether 0 and 3 are times of the stream, or 1 and 2, is left open.
        other = (
            restrict_to_times(model, output_times(plan, to_integers(setup.stream), end)) if setup.integer else expected
        )
        expected = other if set(given) == set(other) else expected
        if plan.at != "input" and isinstance(plan.at, str):
            # Whether multiples below 0 are asked for is left open; what is said of them must be true.
            early = [fact for fact in given if fact.interval.lo < 0]
            expected += restrict_to_times(model, [Fraction(fact.interval.lo) for fact in early])
        expected = list(dict.fromkeys(expected))
    if set(given) != set(expected):
        difference = same_answers(expected, given, timeline="rational" if plan.at else setup.timeline)
        pieces = "the same answers in other pieces" if difference else str(difference)
        yield f"not the answers of batch reasoning up to {end}: {pieces}"
    elif len(given) != len(set(given)):
        yield "an answer is given twice"


def output_times(plan: Plan, stream: Iterable[Fact], end: Fraction) -> list[Fraction]:
    """The times that are asked for, up to the end."""
    if plan.at == "input":
        found: Iterable[Fraction] = sorted(set(times_of(stream)))
    elif isinstance(plan.at, str):
        found = multiples_up_to(plan.at, end)
    else:
        found = plan.at or ()
    return [t for t in found if t <= end]


def to_integers(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact as the integers have it."""
    return [same for fact in facts for same in coalesce_facts([fact], timeline="integer")]


def restrict_to_times(model: Iterable[Fact], times: Iterable[Fraction]) -> list[Fact]:
    times = list(times)
    return [
        Fact(fact.predicate, fact.args, Interval.point(t))
        for fact in model
        for t in times
        if contains(fact.interval, t)
    ]


def _wrong_order(answers: list[Fact]) -> Iterator[str]:
    for one, other in pairwise(answers):
        if end_key(one) > end_key(other):
            yield f"{format_fact(other)} is given after {format_fact(one)}, which ends later"
            return


def _wrong_moments(setup: Setup, plan: Plan, done: Run) -> Iterator[str]:
    """Answers that are not certain when they are given, and answers that are but are not given."""
    choose = random.Random(plan.seed + 1)
    for moment in choose.sample(done.moments, min(2, len(done.moments))):
        came, answered = done.arrived[: moment.came], done.answers[: moment.answered]
        future = list(generate_continuation(setup, plan, moment, choose))
        end = max([setup.last + 8, moment.clock + 8, *times_of(future)])
        try:
            model, _ = setup.batch([*came, *future], end)
        except tl.errors.Undecided:
            continue
        for fact in answered:
            if plan.at is None and fact not in model:
                yield f"{format_fact(fact)} is given at {moment}, but does not hold if {format_facts(future)} come"
                return
            if plan.at is not None and not restrict_to_times(model, [Fraction(fact.interval.lo)]).count(fact):
                yield f"{format_fact(fact)} is given at {moment}, but does not hold if {format_facts(future)} come"
                return
        if plan.bulk:
            continue
        frontier = moment.clock - plan.longest_delay - needed_ahead(setup) - setup.integer
        if plan.at is None:
            due = [fact for fact in model if fact.interval.hi < frontier]
        else:
            times = set(output_times(plan, came, end)) & set(output_times(plan, to_integers(came), end))
            due = restrict_to_times(model, sorted(t for t in times if t < frontier))
        for fact in due:
            if fact not in answered:
                yield f"{format_fact(fact)} is certain at {moment}, but is not given"
                return


def needed_ahead(setup: Setup) -> Time:
    """How far rules look ahead, also where they look at what is always true or never."""
    rules = tuple(replace(rule, body=tuple(map(_with_atoms, rule.body))) for rule in setup.program.rules)
    report = tl.check(replace(setup.program, rules=rules), setup.query, timeline=setup.timeline)
    return report.look_ahead.distance


def _with_atoms(literal: BodyLiteral) -> BodyLiteral:
    return replace(literal, formula=_atomic(literal.formula)) if isinstance(literal, Literal) else literal


def _atomic(formula: Formula) -> Formula:
    match formula:
        case Unary():
            return replace(formula, arg=_atomic(formula.arg))
        case Binary():
            return replace(formula, left=_atomic(formula.left), right=_atomic(formula.right))
        case Atom():
            return formula
    return Atom("Constant")


def format_facts(facts: Iterable[Fact]) -> str:
    return ", ".join(map(format_fact, facts)) or "no facts"


def generate_continuation(setup: Setup, plan: Plan, moment: Moment, choose: random.Random) -> Iterator[Fact]:
    """Facts that may still come after a moment of a run."""
    constants = sorted({value for fact in (*setup.stream, *setup.background) for value in fact.args}, key=str)
    arities = {name: n for name, n in setup.program.predicates.items() if not name.startswith("$")}
    tick = Fraction(1) if setup.integer else Fraction(1, 2)
    for _ in range(choose.randint(0, 5)):
        name = choose.choice(sorted(arities))
        args = tuple(choose.choice([*constants, "other"]) for _ in range(arities[name]))
        first = moment.clock - plan.delay_of(name)
        start = first + tick * choose.randint(1 if moment.over else 0, 4)
        length = tick * choose.choice((0, 0, 1, 4))
        yield Fact(name, args, Interval(start, start + length))


def oracle_complaints(rules: tuple[Rule, ...], setup: Setup, answers: Iterable[Fact], end: Fraction) -> Iterator[str]:
    """Where intervals that were answered differ from what the oracle knows up to the end."""
    facts = [*setup.background, *setup.stream]
    scope = choose_scope(rules, facts, None, pad=12, integer=setup.integer)
    denominator = max(1, end.denominator)
    if scope.denominator % denominator and not setup.integer:
        return
    truth, said = evaluate(rules, facts, scope), tables_of(answers, scope)
    nothing = scope.constant(False)
    for key in sorted({*truth.possible, *said.possible}, key=str):
        if key[0] != setup.query:
            continue
        for cell in scope.cells:
            true = truth.at(key, cell) if scope.time(cell) <= end else None
            if true is not None and bool(said.possible.get(key, nothing)[scope.index(cell)]) != true:
                yield f"{key} at {scope.interval(cell, cell)} should be {true}"
                return


# Refusals


def must_be_bounded(setup: Setup) -> bool:
    """Whether the bounded variant of the literature covers the program as it stands."""
    report = setup.look_ahead
    plain = {"forward-propagating", "non-punctual"} <= set(report.fragments)
    needed = str(setup.program)
    return (
        plain
        and not computes(setup)
        and (not setup.integer or "Since" not in needed)
        and "not " not in needed
        and "inf" not in needed
    )


def computes(setup: Setup) -> bool:
    """Whether the query depends on arithmetic or aggregates, which need every row."""
    return any(isinstance(literal, Condition) for rule in setup.needed_rules for literal in rule.body)


def looks_ahead_in_recursion(setup: Setup) -> bool:
    """Whether some recursive rule looks ahead, though only so far that what it looks for is older each round."""
    together = [set(found.predicates) for found in find_predicate_components(setup.program.rules) if found.recursive]
    for rule in setup.program.rules:
        head = head_atom(rule.head)
        if isinstance(head, Atom):
            reads = {atom.predicate for atom, _ in body_atoms(rule)}
            own = [group for group in together if head.predicate in group]
            ahead = tl.check(replace(setup.program, rules=(rule,)), timeline=setup.timeline).look_ahead.distance
            if own and reads & own[0] and ahead > 0:
                return True
    return False


def refusal_complaints(setup: Setup, refusal: tl.TidelogError) -> Iterator[str]:
    report = setup.look_ahead
    if report.look_ahead.distance != INF and not looks_ahead_in_recursion(setup):
        yield f"is refused, though it looks ahead by {report.look_ahead.distance} only: {refusal}"
        return
    lines = {rule.place.line for rule in setup.program.rules if rule.place}
    texts = [" ".join(rule.text.split()) for rule in setup.program.rules]
    message = " ".join(str(refusal).split())
    named = any(found.place is not None and found.place.line in lines for found in refusal.diagnostics)
    if not named and not any(text and text in message for text in texts):
        yield f"the refusal names no rule: {refusal}"

"""Alerts: what is told, when, and what is not, against their definition; saved, resumed, late, and at points."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidelog as tl
from examine import parse_case
from formula_parts import head_predicates
from shell import CommandResult, Shell
from slow_alerts import compute_alerts
from spark_by_hand import ByHand
from strategies import Case, Features, cases
from tidelog.analysis.distribution import plan_distribution
from tidelog.data import wire_format
from tidelog.language.syntax import Fact
from tidelog.spark.worker import answer_columns
from tidelog.spark.worker.alert_rows import fact_to_change, pack_alerts, require_alerts_in_one_bucket
from tidelog.streaming.alerts import (
    Alert,
    AlertOptions,
    AlertState,
    Change,
    parse_alert_options,
    render_alerts,
    update_alerts,
)
from tidelog.timeline.interval import INF, Interval, TimelineName

pytestmark = pytest.mark.usefixtures("kernels")

RULES = (
    "A(X) :- Diamondminus[0,2] B(X).",
    "A(X) :- N(X), not Diamondminus[0,3] B(X).",
    "A(X) :- Boxminus[0,2] Diamondminus[0,1] B(X), not C(X).",
    "Boxplus(1,3) A(X) :- B(X), C(X).",
    "A(X,Y) :- Diamondminus[0,1] E(X,Y).",
    "A(X) :- E(X,Y) Since[0,4] B(X).",
    "A :- not Diamondminus[0,4] B(a).",
    "A(X) :- B(X), Diamondplus[0,2] C(X).",
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {"changes": True},
    {"dedupe": 3},
    {"cooldown": 4},
    {"changes": True, "dedupe": 2},
    {"changes": True, "cooldown": "7/2"},
    {"dedupe": 1, "cooldown": 5},
    {"changes": True, "dedupe": 4, "cooldown": 6},
)


def drawn(choose: random.Random, integer: bool) -> list[Fact]:
    """A stream of points and intervals."""
    found = []
    for _ in range(choose.randint(3, 30)):
        name, arity = choose.choice((("B", 1), ("B", 1), ("C", 1), ("E", 2)))
        lo = Fraction(choose.randint(0, 60), 1 if integer else 2)
        hi = lo + choose.choice((0, 0, 0, 1, 5))
        closed = lo == hi or integer or choose.random() < 0.5
        args = tuple(choose.choice("ab") for _ in range(arity))
        found.append(Fact(name, args, Interval(lo, hi, closed, closed or choose.random() < 0.5)))
    return sorted(found, key=lambda fact: fact.interval.lo)


def late(choose: random.Random, delay: Fraction) -> Fraction:
    """By how much a fact comes later than it begins: by less than the delay, in whole numbers."""
    return Fraction(choose.randrange(int(delay) or 1))


def all_answers(program: tl.Program, facts: Iterable[Fact], query: str, timeline: TimelineName) -> list[Fact]:
    data = tl.Dataset.from_facts(facts)
    return list(tl.materialise(program, data, query=query, between=(-INF, 1000), timeline=timeline))


def same(given: Iterable[Alert], expected: Iterable[Alert]) -> bool:
    return Counter(given) == Counter(expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("timeline", ["rational", "integer"])
def test_every_alert_comes_as_soon_as_it_is_certain_and_no_other_comes(rule: str, timeline: TimelineName) -> None:
    program = tl.Program.parse(rule)
    integer = timeline == "integer"
    ahead = tl.check(program, "A", timeline=timeline).look_ahead.distance
    nodes = [Fact("N", (name,), Interval.always()) for name in "ab"]
    for seed in range(len(OPTIONS)):
        choose = random.Random(seed)
        options = dict(OPTIONS[seed % len(OPTIONS)])
        if "cooldown" in options and rule.startswith("A(X,Y)"):
            options["per"] = [choose.choice((1, 2))]
        delay = Fraction(choose.choice((0, 0, 2)))
        stream = drawn(choose, integer)
        model = all_answers(program, [*nodes, *stream], "A", timeline)
        background = tl.Dataset.from_facts(nodes)
        reasoner = tl.Reasoner(program, "A", timeline=timeline, background=background, delay=delay)
        watch = tl.streaming.Watch(reasoner, **options)
        given: list[Alert] = []
        arrivals = sorted(((fact.interval.lo + late(choose, delay), fact) for fact in stream), key=lambda a: a[0])
        while arrivals:
            clock = arrivals[0][0]
            now = [fact for at, fact in arrivals if at <= clock]
            arrivals = [(at, fact) for at, fact in arrivals if at > clock]
            given += watch.push(clock, now)
            known = Fraction(clock - delay - ahead), False
            if choose.random() < 0.3:
                given += watch.advance(clock)
                known = known[0], True
            if choose.random() < 0.4:
                watch = tl.streaming.Watch.load(watch.save())
            assert watch.reasoner.late_count == 0
            expected, silenced = compute_alerts(model, watch.state.config, known, integer)
            if ahead == 0:
                assert same(given, expected), (seed, clock, options)
                assert watch.silenced >= silenced if options.get("dedupe") else watch.silenced == silenced
        given += watch.push(500)
        known = Fraction(500 - delay - ahead), False
        expected, silenced = compute_alerts(model, watch.state.config, known, integer)
        assert same(given, expected), (seed, options)
        assert watch.silenced == silenced


STREAMS = (
    Features(endless_data=False),
    Features(endless_data=False, negation=True),
    Features(endless_data=False, negation=True, integer=True, denominators=(1,)),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=st.sampled_from(STREAMS).flatmap(cases), seed=st.integers(0, 999))
def test_random_programs_are_told_of_as_defined(case: Case, seed: int) -> None:
    choose = random.Random(seed)
    program, timeline = parse_case(case).program, case.features.timeline
    heads = sorted(head_predicates(case.rules))
    if not heads:
        return
    query = choose.choice(heads)
    stream = sorted((f for f in case.facts if f.interval.lo != -INF), key=lambda fact: fact.interval.lo)
    background = tl.Dataset.from_facts(f for f in case.facts if f.interval.lo == -INF)
    try:
        model = all_answers(program, case.facts, query, timeline)
        watch = tl.streaming.Watch(
            tl.Reasoner(program, query, timeline=timeline, background=background), **choose.choice(OPTIONS)
        )
    except tl.TidelogError:
        return  # what cannot run over a stream
    given: list[Alert] = []
    for fact in stream:
        given += watch.push(fact.interval.lo, [fact])
        if choose.random() < 0.3:
            watch = tl.streaming.Watch.load(watch.save())
    given += watch.push(500)
    assert tl.check(program, query, timeline=timeline).look_ahead.distance < 100
    integer = timeline == "integer"
    # Answers of the end, which depend on how far exactly a program looks ahead, may or may not be there.
    early, late = (compute_alerts(model, watch.state.config, (Fraction(t), False), integer)[0] for t in (400, 500))
    assert not Counter(early) - Counter(given)
    assert not Counter(given) - Counter(late)


def test_points_are_filtered_one_by_one() -> None:
    program = tl.Program.parse(RULES[0])
    for seed in range(20):
        choose = random.Random(seed)
        options = choose.choice([options for options in OPTIONS if "changes" not in options])
        at = choose.choice(("input", "every:1", "every:3/2"))
        stream = drawn(choose, False)
        plain, watch = tl.Reasoner(program, "A", at=at), tl.streaming.Watch(tl.Reasoner(program, "A", at=at), **options)
        given: list[Alert] = []
        points: list[Fact] = []
        for fact in stream:
            points += plain.push(fact.interval.lo, [fact])
            given += watch.push(fact.interval.lo, [fact])
            if choose.random() < 0.3:
                watch = tl.streaming.Watch.load(watch.save())
        points += plain.finish()
        given += watch.finish()
        expected, silenced = compute_alerts(points, watch.state.config, (Fraction(1000), False), False)
        assert given == sorted(expected, key=lambda f: (f.interval.hi, f.args))  # type: ignore[union-attr]
        assert watch.silenced == silenced


@pytest.mark.slow
def test_what_can_matter_no_more_is_forgotten() -> None:
    program = tl.Program.parse("A(X) :- B(X).")
    for options in OPTIONS:
        watch = tl.streaming.Watch(tl.Reasoner(program, "A"), **options)
        for t in range(300):
            watch.push(t, [f"B(x{t})"])
            state = watch.state
            assert len(state.holding) + len(state.waiting) + len(state.cooling) < 20


def test_a_silenced_start_has_no_end() -> None:
    config = parse_alert_options(changes=True, cooldown=10)
    assert config is not None
    state = AlertState(config, "A")
    facts = [Fact("A", ("a",), Interval(Fraction(t), Fraction(t + 1))) for t in (0, 5, 12)]
    assert [str(alert) for alert in update_alerts(state, facts, (), (Fraction(20), False))] == [
        "start A(a)@[0",
        "end A(a)@1]",
        "start A(a)@[12",
        "end A(a)@13]",
    ]
    assert state.silenced == 1


def test_other_rules_keep_incidents_that_still_hold() -> None:
    watch = tl.streaming.Watch(tl.Reasoner(tl.Program.parse("A(X) :- Diamondminus[0,9] B(X)."), "A"), changes=True)
    assert watch.push(0, ["B(a)", "B(b)"]) == []
    assert [str(alert) for alert in watch.push(2)] == ["start A(a)@[0", "start A(b)@[0"]
    other = tl.Program.parse("A(X) :- Diamondminus[0,9] B(X). C(X) :- B(X).")
    watch = tl.streaming.Watch.load(watch.save(), other, changed=True)
    assert [str(alert) for alert in watch.push(3, ["B(c)"])] == []
    assert [str(alert) for alert in watch.push(12)] == ["start A(c)@[3", "end A(a)@9]", "end A(b)@9]"]


def test_a_violated_constraint_loses_no_alert() -> None:
    program = tl.Program.parse("A(X) :- B(X).  Bottom :- Bad(X).")
    watch = tl.streaming.Watch(tl.Reasoner(program, "A"), changes=True)
    watch.push(0, ["B(a)@[0,2]"])
    with pytest.raises(tl.errors.Inconsistent):
        watch.push(5, ["Bad(x)"])
    assert [str(alert) for alert in watch.push(7)] == ["start A(a)@[0", "end A(a)@2]"]


# On many engines


@pytest.mark.slow
def test_buckets_tell_what_one_reasoner_tells() -> None:
    nodes = [Fact("N", (name,), Interval.always()) for name in "ab"]
    compared = 0
    for seed in range(3 * len(OPTIONS)):
        choose = random.Random(seed)
        program = tl.Program.parse(choose.choice(RULES))
        delay = Fraction(choose.choice((0, 2)))
        config = parse_alert_options(**OPTIONS[seed % len(OPTIONS)])
        assert config is not None
        work = ByHand.start(
            program, "A", nodes, buckets=choose.choice((1, 3)), delay=delay, seed=seed, faults=True, alerts=config
        )
        stream = drawn(choose, False)
        arrivals = [
            fact for _, fact in sorted(((f.interval.lo + late(choose, delay), f) for f in stream), key=lambda a: a[0])
        ]
        if choose.random() < 0.3:
            size = choose.randint(1, len(arrivals))
            work.backfill(arrivals[:size])
            arrivals = arrivals[size:]
        while arrivals:
            size = choose.randint(1, 5)
            work.batch(arrivals[:size])
            arrivals = arrivals[size:]
        work.batch(until=500 + delay)
        work.batch()
        assert not work.late
        given: list[Alert] = [fact_to_change(f) for f in work.answers] if config.changes else list(work.answers)
        ahead = tl.check(program, "A").look_ahead.distance
        model = all_answers(program, [*nodes, *stream], "A", "rational")
        expected, _ = compute_alerts(model, config, (Fraction(500 - ahead) + Fraction(1, 1000), False), False)
        assert same(given, expected), (seed, config, program)
        compared += len(expected)
    assert compared > 50


def test_changes_are_columns_on_spark() -> None:
    changes = [
        Change("start", "A", ("a", Fraction(2)), -INF, False),
        Change("end", "A", ("a", Fraction(2)), Fraction(3, 2), True),
        Change("start", "A", ("b", Fraction(2)), Fraction(4), False),
        Change("end", "A", ("b", Fraction(2)), Fraction(5), False),
    ]
    piece = wire_format.unpack(pack_alerts(changes, False))
    columns = answer_columns.AnswerColumns(("string", "bigint"), "double", changes=True)
    assert columns.schema == "arg1 string, arg2 bigint, event string, time double, closed boolean"
    assert answer_columns.answers_to_arrow(piece, columns).to_pylist() == [
        {"arg1": "a", "arg2": 2, "event": "start", "time": None, "closed": False},
        {"arg1": "a", "arg2": 2, "event": "end", "time": 1.5, "closed": True},
        {"arg1": "b", "arg2": 2, "event": "start", "time": 4.0, "closed": False},
        {"arg1": "b", "arg2": 2, "event": "end", "time": 5.0, "closed": False},
    ]


def test_a_silence_that_buckets_would_share_is_refused() -> None:
    split = plan_distribution(tl.Program.parse("A(X,Y) :- E(X,Y), B(X)."), "A")
    for per in (None, (1,), (1, 2)):
        require_alerts_in_one_bucket(split, "A", 3, AlertOptions(cooldown=Fraction(1), per=per))
    spread = AlertOptions(cooldown=Fraction(1), per=(2,))
    require_alerts_in_one_bucket(split, "A", 1, spread)
    with pytest.raises(tl.TidelogError, match="spread over buckets by argument 1"):
        require_alerts_in_one_bucket(split, "A", 3, spread)


# `tidelog stream`

DOWN = "Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).\n"
BEATS = "Node(a)\nNode(b)\n" + "".join(
    f"Beat({name})@{t}\n"
    for t, name in sorted([(0, "a"), (0, "b"), (3, "a"), (12, "a"), (15, "b"), (20, "a"), (40, "a")])
)
STREAM = ("stream", "down.dmtl", "--query", "Down", "--input", "-")


@pytest.fixture
def down(sh: Shell) -> Shell:
    sh.write("down.dmtl", DOWN)
    return sh


def test_starts_and_ends_are_printed(down: Shell) -> None:
    ran = down(*STREAM, "--changes", stdin=BEATS)
    assert ran.out.splitlines()[:6] == [
        "start Down(a)@(-inf",
        "start Down(b)@(-inf",
        "end Down(a)@0)",
        "end Down(b)@0)",
        "start Down(b)@(5",
        "start Down(a)@(8",
    ]
    first = json.loads(down(*STREAM, "--changes", "--json", stdin=BEATS).out.splitlines()[4])
    assert first == {
        "event": "start",
        "fact": "Down(b)",
        "time": "5",
        "closed": False,
        "predicate": "Down",
        "args": ["b"],
    }


def test_arguments_that_are_times_are_dates_in_alerts_as_in_answers(sh: Shell) -> None:
    sh.write("hot.dmtl", "Hot(X, S) :- S = start{ High(X) }, High(X).\n")
    sh.write("high.facts", "High(a)@[2026-01-31T10:00:00Z,2026-01-31T11:00:00Z]\nHigh(b)@2026-01-31T12:00:00Z\n")
    stream = ("stream", "hot.dmtl", "--query", "Hot", "--input", "high.facts")
    assert sh(*stream, "--changes").out.splitlines() == [
        "start Hot(a,2026-01-31T10:00:00Z)@[2026-01-31T10:00:00Z",
        "end Hot(a,2026-01-31T10:00:00Z)@2026-01-31T11:00:00Z]",
        "start Hot(b,2026-01-31T12:00:00Z)@[2026-01-31T12:00:00Z",
    ]
    # Silence that silences nothing gives the answers.
    assert sh(*stream, "--cooldown", "1s").out == sh(*stream).out
    answers = sh(*stream, "--format", "jsonl").out
    assert json.loads(answers.splitlines()[0])["args"] == ["a", "2026-01-31T10:00:00Z"]
    assert sh(*stream, "--cooldown", "1s", "--format", "jsonl").out == answers
    changes = sh(*stream, "--changes", "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["args"][1] for line in changes][:2] == ["2026-01-31T10:00:00Z"] * 2


def test_silence_is_counted(down: Shell) -> None:
    ran = down(*STREAM, "--cooldown", "20", "--stats", "stats.jsonl", stdin=BEATS)
    assert ran == CommandResult(
        0,
        "Down(a)@(-inf,0)\nDown(b)@(-inf,0)\nDown(a)@(17,20)\nDown(a)@(25,40)\nDown(b)@(20,40]\n",
        "2 answers were silenced\n",
    )
    steps = [json.loads(line) for line in (down.folder / "stats.jsonl").read_text().splitlines()]
    assert steps[-1]["silenced"] == 2
    assert sum(step["alerts"] for step in steps) == 5
    per = down(*STREAM[:2], "--query", "Down", "--input", "-", "--cooldown", "1000", "--per", "1", stdin=BEATS)
    assert per.out == "Down(a)@(-inf,0)\nDown(b)@(-inf,0)\n"


@pytest.mark.parametrize("form", [(), ("--json",), ("--time", "iso"), ("--at", "every:2"), ("--step", "7")])
def test_alerts_that_silence_nothing_are_the_answers(down: Shell, form: tuple[str, ...]) -> None:
    plain = down(*STREAM, *form, stdin=BEATS)
    assert down(*STREAM, *form, "--cooldown", "1/1000", stdin=BEATS) == plain
    assert down(*STREAM, *form, "--dedupe", "1/1000", stdin=BEATS) == plain


@pytest.mark.parametrize(
    "options", [("--changes",), ("--dedupe", "6"), ("--changes", "--dedupe", "6", "--cooldown", "30")]
)
@pytest.mark.parametrize("continues", [True, False])
def test_a_stream_that_is_cut_is_told_of_as_one(down: Shell, options: tuple[str, ...], continues: bool) -> None:
    whole = down(*STREAM, *options, "--until", "60", stdin=BEATS).out
    lines = BEATS.splitlines(keepends=True)
    for cut in range(3, len(lines)):
        state = f"{cut}-{continues}.state"
        more = ("--continues",) if continues else ()
        one = down(*STREAM, *options, "--state", state, *more, stdin="".join(lines[:cut]))
        two = down(*STREAM, "--until", "60", "--state", state, stdin="".join(lines[cut:]))
        assert (one.code, two.code) == (0, 0), two.err
        if continues or "--changes" in options:
            assert sorted((one.out + two.out).splitlines()) == sorted(whole.splitlines())


def test_options_of_a_state_stay(down: Shell) -> None:
    assert down(*STREAM, "--changes", "--state", "s", stdin=BEATS).code == 0
    ran = down(*STREAM, "--cooldown", "5", "--state", "s", stdin="")
    assert ran.code == 2
    assert "another --cooldown: not given, not 5" in ran.err


def test_options_that_cannot_be_had(down: Shell) -> None:
    for more, said in (
        (("--changes", "--at", "input"), "points neither start nor end"),
        (("--per", "1"), "needs a `cooldown`"),
        (("--per", "2", "--cooldown", "5"), "there is no argument 2"),
        (("--per", "x", "--cooldown", "5"), "is not a list of argument positions"),
        (("--cooldown", "0"), "the cooldown must be greater than 0"),
        (("--dedupe", "soon"), "is not a length of time"),
    ):
        ran = down(*STREAM, *more, stdin=BEATS)
        assert ran.code == 2
        assert said in ran.err


def test_answers_and_changes_as_text() -> None:
    alerts: list[Alert] = [
        Fact("A", ("a b", Fraction(1, 2)), Interval(Fraction(0), INF, True, False)),
        Change("end", "B", (), INF, False),
    ]
    assert render_alerts(alerts) == b'A("a b",0.5)@[0,inf)\nend B@inf)\n'

"""Calendars, judged by `zoneinfo` time by time, and by the same rules over facts of the calendar written out."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from random import Random
from zoneinfo import ZoneInfo

import pytest

import tidelog as tl
from spark_by_hand import ByHand
from tidelog.data.calendar_facts import find_ranges
from tidelog.language.calendar_predicates import CALENDAR_UNITS, WEEKDAYS, is_calendar
from tidelog.spark.worker.bucket import Bucket
from tidelog.timeline.interval import Interval, TimelineName

#: Zones with odd offsets, changes at midnight or by half an hour, a skipped day, and none at all.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Monrovia",
    "Asia/Beirut",
    "Antarctica/Troll",
)


def name_at(unit: str, zone: str, time: int) -> str | int | None:
    """Return what a time is called in a zone, as Python's own calendar says; None if it is no end of a month."""
    local = datetime.fromtimestamp(time, UTC).astimezone(ZoneInfo(zone))
    year, week, _ = local.isocalendar()
    last = (date(local.year + local.month // 12, local.month % 12 + 1, 1) - timedelta(days=1)).day
    month = local.strftime("%Y-%m")
    names: dict[str, str | int | None] = {
        "year": local.year,
        "quarter": f"{local.year}-Q{-(-local.month // 3)}",
        "month": month,
        "month_end": month if local.day == last else None,
        "week": f"{year}-W{week:02}",
        "day": local.date().isoformat(),
        "weekday": WEEKDAYS[local.weekday()],
        "hour": local.hour,
    }
    return names[unit]


@pytest.mark.parametrize("zone", ZONES)
def test_every_time_is_in_the_ranges_that_python_names(zone: str) -> None:
    random = Random(zone)
    for unit in CALENDAR_UNITS:
        for _ in range(3):
            first = random.randrange(-2_100_000_000, 6_000_000_000)
            last = first + random.randrange(0, 900 * 86400 if unit != "hour" else 20 * 86400)
            ranges = find_ranges(unit, zone, first, last)
            starts = [one.start for one in ranges]
            assert starts == sorted(set(starts))
            assert all(one.end > first and one.start <= last for one in ranges)
            near = [end + by for one in random.sample(ranges, min(6, len(ranges))) for end in one[1:] for by in (-1, 0)]
            for time in (*(random.randrange(first, last + 1) for _ in range(12)), *near):
                place = bisect_right(starts, time) - 1
                inside = place >= 0 and time < ranges[place].end
                if inside or first <= time <= last:
                    assert (ranges[place].name if inside else None) == name_at(unit, zone, time), (unit, time)
            # Ranges are whole: right before and after each, another name begins.
            for one in ranges:
                assert name_at(unit, zone, one.start) == one.name == name_at(unit, zone, one.end - 1)
                assert name_at(unit, zone, one.start - 1) != one.name != name_at(unit, zone, one.end)


def test_days_on_which_clocks_change_have_23_and_25_hours() -> None:
    spring = int(datetime(2026, 3, 29, 12, tzinfo=UTC).timestamp())
    autumn = int(datetime(2026, 10, 25, 12, tzinfo=UTC).timestamp())
    for time, hours in ((spring, 23), (autumn, 25)):
        (day,) = find_ranges("day", "Europe/Berlin", time, time)
        assert day.end - day.start == hours * 3600
    night = [one for one in find_ranges("hour", "Europe/Berlin", autumn - 43200, autumn) if one.name == 2]
    assert [one.end - one.start for one in night] == [7200]
    assert not [one for one in find_ranges("day", "Pacific/Apia", 1325000000, 1325400000) if one.name == "2011-12-30"]


# Programs

#: Conditions that a rule may have; each binds or uses X, D or M.
POSITIVE = (
    "A(X)",
    "Diamondminus[0,30h] A(X)",
    "B(X)",
    "Boxminus[0,5h] B(X)",
    "Diamondplus(0,2d] B(X)",
    "(B(X) Since[0,3d] A(X))",
    "(A(X), calendar:month(ZONE, M))",
)
CALENDAR = (
    "calendar:day(ZONE, D)",
    "calendar:month(ZONE, D)",
    "calendar:weekday(ZONE, D), D != sunday",
    "Diamondminus[2d,3d] calendar:day(ZONE, D)",
    "Diamondplus[0,25h] calendar:week(ZONE, D)",
    "Boxplus[0,30h] calendar:month(ZONE, D)",
    "calendar:hour(ZONE, D), D >= 9, D < 17",
    "(calendar:day(ZONE, D) Since[0,25h] (A(X), calendar:day(ZONE, D)))",
    "(calendar:day(ZONE, D) Until(0,25h] (A(X), calendar:day(ZONE, D)))",
    "calendar:month_end(ZONE, D)",
    "Off(D)",
)
OTHERS = (
    "not calendar:weekday(ZONE, monday)",
    "not Diamondminus[0,1d] calendar:hour(ZONE, 5)",
    "not Diamondplus[0,4d] Free",
    "count[0,31d]{ A(X), calendar:month(ZONE, _M) } >= 2",
    "count[0,9d]{ calendar:day(ZONE, _D), B(X) } >= 2",
    "count{ A(_Y), calendar:day(ZONE, _D) } = 0",
    "Free",
    "not A(X)",
)
HELPERS = """
Off(D) :- calendar:day(ZONE, D), calendar:weekday(ZONE, sunday).
Free :- calendar:weekday(ZONE, saturday).
Free :- calendar:weekday(ZONE, sunday).
Boxplus[0,6h] Free :- calendar:weekday(ZONE, friday), calendar:hour(ZONE, 18).
"""


def make_program(random: Random, anchored: bool = True) -> str:
    body = [random.choice(CALENDAR)]
    if anchored or "X" in body[0]:
        body.append(random.choice(POSITIVE))
    others = [text for text in OTHERS if anchored or "X" not in text]
    body += random.sample(others, random.randrange(0, 3))
    random.shuffle(body)
    head = "Q(X, D)" if any("X" in text for text in body) else "Q(D)"
    shift = random.choice(("", "", "Boxplus[0,8h] ", "Boxminus[1d,1d] "))
    recursion = "Q(X, D) :- Diamondminus[40h,40h] Q(X, D), B(X).\n" if "X" in head and random.random() < 0.3 else ""
    text = f"{shift}{head} :- {', '.join(body)}.\n{recursion}{HELPERS}"
    return text.replace("ZONE", f'"{random.choice(ZONES)}"')


def make_facts(random: Random) -> list[str]:
    start = random.randrange(1_300_000_000, 1_900_000_000)
    facts = []
    for _ in range(random.randrange(1, 8)):
        lo = start + random.randrange(0, 40 * 86400)
        hi = lo + random.choice((0, 3600, 86400, 5 * 86400))
        ends = [datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for t in (lo, hi)]
        facts.append(f"{random.choice('AB')}({random.choice('xy')})@[{ends[0]},{ends[1]}]")
    return facts


def write_out(program: str, facts: list[str]) -> tuple[tl.Program, tl.Dataset]:
    """Return rules over ordinary predicates, and their facts for some years around the others."""
    times = [tl.Dataset.parse(fact) for fact in facts]
    ends = [end for data in times for fact in data for end in (fact.interval.lo, fact.interval.hi)]
    given = [fact for data in times for fact in data]
    for predicate, zones in tl.Program.parse(program).calendars.items():
        for zone in zones:
            unit = predicate.removeprefix("calendar:")
            for one in find_ranges(unit, zone, int(min(ends)) - 500 * 86400, int(max(ends)) + 500 * 86400):
                interval = Interval(Fraction(one.start), Fraction(one.end), True, False)
                given.append(tl.Fact(f"written:{unit}", (zone, one.name), interval))
    return tl.Program.parse(program.replace("calendar:", "written:")), tl.Dataset.from_facts(given)


def check_program(random: Random, anchored: bool) -> None:
    text, facts = make_program(random, anchored), make_facts(random)
    timelines: tuple[TimelineName, TimelineName] = ("rational", "integer")
    timeline = random.choice(timelines)
    program, data = tl.Program.parse(text), tl.Dataset.parse("\n".join(facts))
    rules, written = write_out(text, facts)
    ends = [Fraction(end) for fact in data for end in (fact.interval.lo, fact.interval.hi)]
    first, last = min(ends), max(ends)
    model = tl.materialise(program, data, query="Q", timeline=timeline)
    span = None if not model.cut else (first, last)
    expected = tl.materialise(rules, written, query="Q", between=span, timeline=timeline)
    assert model.render(iso=False) == expected.render(iso=False), text
    expected = tl.materialise(rules, written, query=["Q", "Free"], between=(first, last), timeline=timeline)
    found = tl.materialise(program, data, query=["Q", "Free"], between=(first, last), timeline=timeline)
    assert found.render(iso=False) == expected.render(iso=False), text
    if anchored:
        check_buckets(random, program, facts, timeline)
    check_stream(random, program, data, expected.render(iso=False).decode(), (first, last), timeline)
    for fact in random.sample(list(expected), min(3, len(expected))):
        assert tl.entails(program, data, fact, timeline=timeline) is tl.types.Answer.YES
        assert tl.explain(program, data, fact, timeline=timeline).answer is tl.types.Answer.YES


def check_stream(
    random: Random,
    program: tl.Program,
    data: tl.Dataset,
    expected: str,
    span: tuple[Fraction, Fraction],
    timeline: TimelineName,
) -> None:
    """The stream gives what the model has between the first and the last time of the data."""
    delay = random.choice((0, 0, 86400))
    for query in ("Q", "Free"):
        reasoner = tl.Reasoner(program, query, timeline=timeline, delay=delay)
        found: list[tl.Fact] = []
        if random.random() < 0.5:
            for step in reasoner.feed(data):
                found += step.answers
        else:
            for fact in sorted(data, key=lambda fact: fact.interval.lo):
                found += reasoner.push(datetime.fromtimestamp(int(fact.interval.lo), UTC), [fact])
                if random.random() < 0.3:
                    reasoner = tl.Reasoner.load(reasoner.save(), program)
        found += reasoner.finish(span[1])
        within = tl.Dataset.from_facts(
            tl.Fact(one.predicate, one.args, clipped)
            for one in found
            if (clipped := clip(one.interval, span[0])) is not None
        )
        assert str(within) == "".join(
            line + "\n" for line in expected.splitlines() if line.startswith((f"{query}(", f"{query}@"))
        ), program


def check_buckets(random: Random, program: tl.Program, facts: list[str], timeline: TimelineName) -> bool:
    """A job gives what one reasoner gives, in every bucket; return whether it takes the program."""
    last = max(Fraction(one.interval.hi) for fact in facts for one in tl.Dataset.parse(fact))
    work = ByHand.start(program, "Q", buckets=2, timeline=timeline, seed=random.randrange(99), until=last)
    for stage in work.job.stages:
        calendar = Bucket.new(work.job, stage, 0, tl.Dataset()).reasoner.evaluation.calendar
        if any(map(is_calendar, stage.stage.aliases.values())) or calendar.is_endless():
            return False
    ordered = sorted(facts, key=lambda fact: fact.partition("@")[2])
    while ordered:
        size = random.randint(1, len(ordered))
        work.batch(ordered[:size])
        ordered = ordered[size:]
    work.batch(until=last)
    work.batch()
    reasoner = tl.Reasoner(program, "Q", timeline=timeline)
    found = [fact for step in reasoner.feed(tl.Dataset.parse("\n".join(facts)), until=last) for fact in step.answers]
    expected = tl.Dataset.from_facts([*found, *reasoner.finish(last)])
    assert str(tl.Dataset.from_facts(work.answers)) == str(expected), program
    return True


def clip(interval: Interval, first: Fraction) -> Interval | None:
    if interval.hi < first or (interval.hi == first and not interval.hi_closed):
        return None
    return interval if interval.lo >= first else Interval(first, interval.hi, True, interval.hi_closed)


@pytest.mark.parametrize("seed", range(6))
def test_rules_over_calendars_give_what_their_facts_written_out_give(seed: int) -> None:
    random = Random(seed)
    check_program(random, anchored=seed % 3 > 0)

"""The compiled scanner reads what the slow reader of single facts reads, and refuses what it refuses."""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction
from math import lcm
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.data import fact_scanner
from tidelog.data.dataset import Dataset
from tidelog.data.relation import to_facts
from tidelog.data.symbol_table import Symbols
from tidelog.errors import TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, Interval

SPACES = st.sampled_from(["", "", "", " ", "  ", "\t", "\r"])
PREDICATES = st.sampled_from(["P", "Q", "a1:Scientist", "_x", "Größe", "longPredicateName12", "p:q:r", "Alarm"])
NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["0", "-0", "+7", "007", "1.0", "0.50", "-1.25", "2/4", "-1/3", "1/7", "123456789012345678"]),
    st.decimals(-1000, 1000, places=3).map(str),
)
BARE = st.text(st.characters(codec="utf-8", exclude_characters=',()@"%#', exclude_categories=["Z", "C"]), min_size=1)
QUOTED = st.text('ab\\"\n\t,()@%# é1', max_size=6).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
)
ARGUMENTS = st.one_of(
    NUMBERS,
    BARE,
    QUOTED,
    st.sampled_from(
        ["ID0", "http://x.org/a_1", "10.0.0.1", "2026-01-31", "1e5", "-", "5.", ".5", "12345678901234567890"]
    ),
)
DATES = st.one_of(
    st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.sampled_from(
        [
            "2026-01-31T10:00:00Z",
            "2026-01-31T10:00:00.125Z",
            "2026-01-31T10:00:00.123456789Z",
            "2024-02-29T23:59:59+02:00",
            "2026-01-31T10:00-05:30",
            "2026-01-31 10:00:00",
            "1969-12-31T23:59:59.5",
            "2026-01-31T10:00:00+0200",
        ]
    ),
)
TIMES = st.one_of(NUMBERS, DATES, st.sampled_from(["5s", "500ms", "1 / 3", "- 2"]))
ENDS = st.one_of(TIMES, st.sampled_from(["inf", "+inf", "-inf", "INF"]))


@st.composite
def facts(draw: st.DrawFn) -> str:
    """One fact, with spaces wherever they may be; now and then it is a wrong one."""

    def spaced(*parts: str) -> str:
        return "".join(part + draw(SPACES) for part in parts)

    text = draw(SPACES) + spaced(draw(PREDICATES))
    arguments = draw(st.lists(ARGUMENTS, max_size=3))
    if arguments:
        text += spaced("(", arguments[0], *(part for argument in arguments[1:] for part in (",", argument)), ")")
    match draw(st.sampled_from(["always", "point", "interval"])):
        case "point":
            text += spaced("@", draw(TIMES))
        case "interval":
            text += spaced("@", draw(st.sampled_from("[(")), draw(ENDS), ",", draw(ENDS), draw(st.sampled_from("])")))
        case _:
            pass
    return text + spaced(draw(st.sampled_from(["", "", "."]))) + draw(st.sampled_from(["", "", "% why", "# why"]))


def read_slowly(text: str) -> tuple[Counter[Fact], bool, list[int]]:
    """Every line by the slow reader: its facts, whether there were dates, and the lines that are wrong."""
    found: Counter[Fact] = Counter()
    dates, wrong = False, []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.strip().startswith(("%", "#")):
            continue
        try:
            fact, dated = parse_fact(line, deletions=True)
        except TidelogError:
            wrong.append(number)
        else:
            found[fact] += 1
            dates |= dated
    return found, dates, wrong


def agrees_with_the_slow_reader(text: str) -> None:
    """Compare with the slow reader; arguments that are left unread are checked all the same, and read in the end."""
    found, dates, wrong = read_slowly(text)
    for reads in (None, ()):
        try:
            data = Dataset.parse(text, reads=reads)
        except TidelogError as error:
            if any("63 bits" in diagnostic.message for diagnostic in error.diagnostics):
                return  # each line alone is fine, but together they are too fine and too far away
            lines = {diagnostic.place.line for diagnostic in error.diagnostics if diagnostic.place}
            assert sorted(lines) == wrong[: fact_scanner.MOST_ERRORS]
            continue
        assert not wrong
        assert Counter(data) == found
        assert data.dates == dates
        assert data.denominator == lcm(*(t.denominator for fact in found for t in _finite_ends(fact)))


def _finite_ends(fact: Fact) -> list[Fraction]:
    return [t for t in (fact.interval.lo, fact.interval.hi) if isinstance(t, Fraction)]


@settings(max_examples=300, deadline=None)
@given(st.lists(facts(), max_size=5), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_reads_what_the_slow_reader_reads(lines: list[str], end: str) -> None:
    agrees_with_the_slow_reader(end.join(lines))


@settings(max_examples=300, deadline=None)
@given(st.text('Pab1.-/:,()[]@"\\%# \t\r\n\x0b\xa0\u2028éT0', max_size=40))
def test_refuses_what_the_slow_reader_refuses(text: str) -> None:
    agrees_with_the_slow_reader(text)


def only(text: str) -> Fact:
    (fact,) = Dataset.parse(text)
    return fact


@pytest.mark.parametrize(
    ("text", "args", "interval"),
    [
        ("P(a,b)@[0,3)", ("a", "b"), Interval(Fraction(0), Fraction(3), True, False)),
        ("P(a)@7", ("a",), Interval.point(Fraction(7))),
        ("P@(-inf,2]", (), Interval(-INF, Fraction(2), False, True)),
        ("P(ID0)", ("ID0",), Interval.always()),
        ('P("a b",01,1.50,"1")@-2.', ("a b", Fraction(1), Fraction(3, 2), "1"), Interval.point(Fraction(-2))),
        ("P@2026-01-31T10:00:00Z", (), Interval.point(Fraction(1769853600))),
        ("P@1970-01-01T01:00:00.25+01:00", (), Interval.point(Fraction(1, 4))),
        ("P@(-12,-1)", (), Interval(Fraction(-12), Fraction(-1), False, False)),
    ],
)
def test_a_fact(text: str, args: tuple[str | Fraction, ...], interval: Interval) -> None:
    assert only(text) == Fact("P", args, interval)


def test_all_spellings_of_a_constant_are_one() -> None:
    data = Dataset.parse('P(abc)@1\nP("abc")@1\nP(1)@1\nP(1.0)@1\nP(+01)@1\nP("1")@1')
    name, same_name, one, same_one, also_one, text = data.relations["P", 1].args[0].tolist()
    assert name == same_name
    assert one == same_one == also_one
    assert len({name, one, text}) == len(data.symbols) == 3


def test_two_arities_are_two_relations() -> None:
    assert set(Dataset.parse("P(a)@1\nP(a,b)@1\nP@1\nP(b)@2").relations) == {("P", 1), ("P", 2), ("P", 0)}


def test_says_where_every_bad_line_is_and_stops_at_a_readable_number() -> None:
    with pytest.raises(TidelogError) as caught:
        Dataset.parse("P(a)@[3,1]\nok(a)@1\nP(a\nP@x\nP@(2,2]\nP(a)@99999999999999999999\n", source="facts.txt")
    assert [str(error.place) for error in caught.value.diagnostics] == [
        "facts.txt:1:6",
        "facts.txt:3:4",
        "facts.txt:4:3",
        "facts.txt:5:3",
        "facts.txt:6:6",
    ]
    with pytest.raises(TidelogError) as caught:
        Dataset.parse("P(\n" * 100)
    assert len(caught.value.diagnostics) == fact_scanner.MOST_ERRORS


def test_times_that_together_leave_63_bits_are_refused_with_their_place() -> None:
    with pytest.raises(TidelogError, match="does not fit into 63 bits") as caught:
        Dataset.parse("P(a)@0.000001\nP(a)@999999999999999999\n", source="facts.txt")
    assert str(caught.value.diagnostics[0].place) == "facts.txt:2:6"


def test_a_text_of_many_blocks_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_scanner, "BLOCK", 64)
    monkeypatch.setattr(fact_scanner, "BATCH", 50)
    lines = [f"P{i % 3}(c{i % 17},{i})@[{i},{i}.{i % 4})" if i % 4 else f"Q(c{i})@{i}/3" for i in range(1000)]
    lines[500] = "Long(" + ",".join(f"x{i}" for i in range(200)) + ")@1"
    lines[600] = "Slow(a)@5min"
    agrees_with_the_slow_reader("\n".join(line.replace("[", "(") for line in lines))
    agrees_with_the_slow_reader("\n".join(lines))


def test_no_text_gives_no_facts() -> None:
    assert len(Dataset.parse("")) == 0
    assert len(Dataset.parse("% nothing\n\n  # here")) == 0


def in_order(data: Dataset) -> list[Fact]:
    """The facts of an ordered dataset, sorted by their positions, which are 0, 1, 2, ..."""
    found: dict[int, Fact] = {}
    for relation in data.relations.values():
        assert relation.order is not None
        found |= dict(zip(relation.order.tolist(), to_facts(data.symbols, data.denominator, relation), strict=True))
    assert sorted(found) == list(range(len(data)))
    return [fact for _, fact in sorted(found.items())]


def mixed_lines(count: int) -> list[str]:
    lines = [f"P{i % 3}(c{i % 17},{i})@[{i},{i}.5)" if i % 4 else f"Q(c{i})@{i}/3" for i in range(count)]
    for i in range(0, count, 7):
        lines[i] = f"Slow{i % 2}(a)@{i}min"
    return ["% a comment", *lines]


def test_positions_are_those_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_scanner, "BLOCK", 64)
    monkeypatch.setattr(fact_scanner, "BATCH", 50)
    for lines in (mixed_lines(300), [f"P(x{i})@{i}" for i in range(300)], ["Slow(a)@3min", "Slow(b)@1min"], []):
        given_order = [parse_fact(line)[0] for line in lines if not line.startswith("%")]
        data = Dataset.parse("\n".join(lines), ordered=True)
        assert in_order(data) == given_order
        assert in_order(data.with_denominator(60 * data.denominator)) == given_order
        assert in_order(data | data) == given_order * 2
        assert all(relation.order is None for relation in Dataset.parse("\n".join(lines)).relations.values())


def test_positions_go_through_temporal_facts() -> None:
    data = Dataset.parse("P(a,3)\nQ(b)@1\nP(b)@2\nP(c,1)", ordered=True).with_time_arguments(frozenset({("P", 1)}))
    assert [(fact.predicate, fact.args, str(fact.interval)) for fact in in_order(data)] == [
        ("P", ("a",), "3"),
        ("Q", ("b",), "1"),
        ("P", ("b",), "2"),
        ("P", ("c",), "1"),
    ]


def test_positions_go_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.facts").write_text("P(a)@1\nS@5min\nQ(b)@2\n")
    (tmp_path / "P.csv").write_text("x,time\nc,0\nd,1\n")
    data = Dataset.load(tmp_path / "P.csv", tmp_path / "a.facts", tmp_path / "P.csv", ordered=True)
    assert [fact.args for fact in in_order(data)] == [("c",), ("d",), ("a",), (), ("b",), ("c",), ("d",)]
    assert all(relation.order is None for relation in Dataset.load(tmp_path / "a.facts").relations.values())


def test_lines_may_be_counted_from_another_number() -> None:
    with pytest.raises(TidelogError) as caught:
        fact_scanner.scan_facts(b"P(a)@1\nP(a@4\n", Symbols(), "facts.txt", line=1000)
    assert str(caught.value.diagnostics[0].place).startswith("facts.txt:1001:")


@pytest.mark.parametrize("mark", [chr(code) for code in range(33, 128)])
def test_tokens_of_all_lengths_end_where_the_slow_reader_ends_them(mark: str) -> None:
    for length in (0, 1, 6, 7, 8, 9, 15, 16):
        word = "abcdefghijklmnopqr"[:length]
        for line in (f"P{word}{mark}x(a)@3", f"P({word}{mark}b,c)@3", f"P({word}{mark})"):
            agrees_with_the_slow_reader(line)
            agrees_with_the_slow_reader(f"{line}\nQ({word}c)@4 % more text than the scanner reads at once")


def unread_arguments(data: Dataset) -> set[str]:
    return {name for (name, _), relation in data.relations.items() if not relation.is_read}


def test_arguments_that_nobody_asks_for_are_left_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_scanner, "BLOCK", 64)
    monkeypatch.setattr(fact_scanner, "BATCH", 50)
    text = "\n".join([*mixed_lines(300), "P0(a,b,c)@1", "Größe(ä)@2", "P1@3"])
    for ordered in (False, True):
        data = Dataset.parse(text, ordered=ordered, reads=["P1", "Slow0", "None"])
        assert unread_arguments(data) >= {"P0", "Q"}
        assert "P1" not in unread_arguments(data)
        finer = data.with_denominator(60 * data.denominator)
        assert unread_arguments(finer) == unread_arguments(data)
        some = {key: relation.select(relation.lo % 3 == 0) for key, relation in data.relations.items()}
        assert not some["P0", 2].is_read
        known = Dataset.parse(text, ordered=ordered)
        wanted = {key: relation.select(relation.lo % 3 == 0) for key, relation in known.relations.items()}
        for key, relation in some.items():
            assert list(to_facts(data.symbols_so_far, data.denominator, relation)) == list(
                to_facts(known.symbols, known.denominator, wanted[key])
            )
        assert list(finer) == list(known)
        assert not unread_arguments(finer)
        assert list(data | known) == list(known | known)
        assert str(Dataset.parse(text, ordered=ordered, reads=[])) == str(known)
        assert str(pickle.loads(pickle.dumps(Dataset.parse(text, reads=[]).with_denominator(6)))) == str(known)


def test_arguments_that_are_left_unread_are_checked() -> None:
    text = "P(a)@1\nQ(a,)@2\nP(b@3\nQ(b)@4\nQ(2/)@5"
    with pytest.raises(TidelogError) as plain:
        Dataset.parse(text)
    with pytest.raises(TidelogError) as hinted:
        Dataset.parse(text, reads=["P"])
    assert [str(one) for one in hinted.value.diagnostics] == [str(one) for one in plain.value.diagnostics]


@settings(max_examples=200, deadline=None)
@given(st.lists(facts(), max_size=8), st.lists(PREDICATES, max_size=3))
def test_a_hint_what_is_read_changes_no_facts(lines: list[str], reads: list[str]) -> None:
    def read(reads: list[str] | None) -> list[Fact] | list[str]:
        try:
            return in_order(Dataset.parse("\n".join(lines), ordered=True, reads=reads))
        except TidelogError as error:
            return list(map(str, error.diagnostics))

    assert read(reads) == read(None)

"""Data that would give wrong answers in silence: numbers next to text, units of time, times that are not found."""

from __future__ import annotations

import pytest

from shell import Shell

pytestmark = pytest.mark.usefixtures("kernels")

PAID = "Done(X) :- Order(X), Diamondplus[0,100] Paid(X).\n"
#: Both ways to read all data at once and bit by bit.
WAYS = [
    ("materialise", "rules.dmtl", "Order.csv", "Paid.jsonl", "--query", "Done"),
    ("stream", "rules.dmtl", "--query", "Done", "--input", "Order.csv", "--input", "Paid.jsonl"),
    ("stream", "rules.dmtl", "--query", "Done", "--input", "Order.csv", "--background", "Paid.jsonl"),
]


@pytest.mark.parametrize("command", WAYS, ids=" ".join)
@pytest.mark.parametrize(
    ("orders", "payments", "said"),
    [
        (
            ["1001", "1002"],
            ['"1001"'],
            "column `order` of Order.csv holds only numbers, and column `id` of Paid.jsonl only text, but",
        ),
        (
            ["1001", "A17"],
            ['"1001"', '"A17"'],
            "column `order` of Order.csv holds numbers and text, and column `id` of Paid.jsonl holds text that",
        ),
        (
            ["007", "1001"],
            ["1001"],
            "column `id` of Paid.jsonl holds only numbers, and column `order` of Order.csv only text, but",
        ),
    ],
)
def test_numbers_that_are_joined_with_text_are_reported(
    sh: Shell, command: tuple[str, ...], orders: list[str], payments: list[str], said: str
) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\n" + "".join(f"{order},1\n" for order in orders))
    sh.write("Paid.jsonl", "".join(f'{{"id": {payment}, "time": 1}}\n' for payment in payments))
    ran = sh(*command)
    assert ran.code == 0
    assert f"warning[TL208]: {said}" in ran.err
    strict = sh(*command, "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert "error[TL208]" in strict.err


def test_columns_that_mix_numbers_and_text_alike_join_without_a_warning(sh: Shell) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\n1001,1\nA17,1\n")
    sh.write("Paid.csv", "order,time\n1001,1\nB5,1\n")
    ran = sh("materialise", "rules.dmtl", "Order.csv", "Paid.csv")
    assert (ran.code, ran.out, ran.err) == (0, "Done(1001)@1\n", "")


@pytest.mark.parametrize(
    ("comparison", "values", "said"),
    [
        ("C > 80", "90,n/a", "the constant 80 is a number, and column `celsius` of Reading.csv holds numbers and text"),
        ("C < 80", "hot,cold", "the constant 80 is a number, and column `celsius` of Reading.csv holds only text"),
        ('C = "90"', "90,91", 'column `celsius` of Reading.csv holds only numbers, and the constant "90" is a text'),
        ('C != "90"', "90,91", 'column `celsius` of Reading.csv holds only numbers, and the constant "90" is a text'),
    ],
)
def test_comparisons_of_numbers_with_text_are_reported(sh: Shell, comparison: str, values: str, said: str) -> None:
    sh.write("rules.dmtl", f"Hot(T) :- Reading(T, C), {comparison}.\n")
    sh.write("Reading.csv", "turbine,celsius,time\n" + "".join(f"t1,{value},1\n" for value in values.split(",")))
    ran = sh("materialise", "rules.dmtl", "Reading.csv")
    assert f"rules.dmtl:1:26: warning[TL208]: {said}, but the rule" in ran.err


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sum[0,5]{ C : Reading(T, C) } > 80", "but the rule adds it up in `sum[0,5]{ C : Reading(T, C) }`"),
        ("avg{ C * 2 : Reading(T, C) } > 80", "but the rule calculates with it in `C * 2`"),
        ("max[0,5]{ C : Reading(T, C) } > 80", "but the rule compares them in `max[0,5]{ C : Reading(T, C) } > 80`"),
        ("Reading(T, _), count{ Reading(T, C), C > 80 } > 0", "but the rule compares them in `C > 80`"),
        ("Reading(T, C), C > 2 * 40", "but the rule compares them in `C > 2 * 40`"),
        ("Reading(T, C), C * 2 > 80", "but the rule calculates with it in `C * 2`"),
        ("Reading(T, C), D = C, D > 80", "but the rule compares them in `D > 80`"),
        ("Reading(T, C), lower(C) != high", "but the rule reads it as text in `lower(C)`"),
        ('Reading(T, C), not starts_with(C, "9")', 'but the rule reads it as text in `not starts_with(C, "9")`'),
    ],
)
def test_numbers_and_text_that_meet_in_expressions_are_reported(sh: Shell, body: str, said: str) -> None:
    sh.write("rules.dmtl", f"Hot(T) :- {body}.\n")
    sh.write("Reading.csv", "turbine,celsius,time\nt1,90,1\nt1,n/a,2\n")
    ran = sh("materialise", "rules.dmtl", "Reading.csv")
    assert ran.code == 0
    assert "warning[TL208]" in ran.err
    assert "column `celsius` of Reading.csv holds numbers and text, " in ran.err
    assert said in ran.err
    assert ran.err.count("warning") == 1


def test_the_type_of_a_value_follows_equations_and_braces_to_a_join(sh: Shell) -> None:
    sh.write("rules.dmtl", "Done(X) :- Order(X), not Shipped(X).\nShipped(X) :- Sent(Y), X = Y.\n")
    sh.write("Order.csv", "order,time\n1001,1\n")
    sh.write("Sent.jsonl", '{"order": "1001", "time": 1}\n')
    said = "column `order` of Order.csv holds only numbers, and column `order` of Sent.jsonl only text, but"
    assert said in sh("materialise", "rules.dmtl", "Order.csv", "Sent.jsonl").err
    sh.write("rules.dmtl", "Done(X) :- Order(X), not Shipped(X).\nShipped(X) :- count{ Sent(X) } > 0.\n")
    assert said in sh("materialise", "rules.dmtl", "Order.csv", "Sent.jsonl").err


@pytest.mark.parametrize(
    "body",
    [
        "Reading(T, C), N = count{ Reading(T, _) }, N * C > 80",
        "sum{ C : Reading(T, C) } > 80, T ++ x != y",
        'Reading(T, C), starts_with(T, "t"), max(C, 3) > abs(-C) - 1',
        "Reading(T, C), P = last(0,5]{ D : Reading(T, D) }, C - P > 1",
        "Reading(T, _), S = start{ Reading(T, _) }, S > 0",
    ],
)
def test_expressions_over_values_of_the_right_type_are_fine(sh: Shell, body: str) -> None:
    sh.write("rules.dmtl", f"Hot(T) :- {body}.\n")
    sh.write("Reading.csv", "turbine,celsius,time\nt1,90,1\n")
    ran = sh("materialise", "rules.dmtl", "Reading.csv")
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize("comparison", ["C > 80", "C = 90", 'T != "90"', "T > a", "C > D"])
def test_comparisons_of_values_of_one_type_are_fine(sh: Shell, comparison: str) -> None:
    sh.write("rules.dmtl", f"Hot(T) :- Reading(T, C, D), {comparison}.\nWarm(T) :- Reading(T, C, D), C < D.\n")
    sh.write("Reading.csv", "turbine,celsius,limit,time\nt1,90,80,1\n")
    assert "TL208" not in sh("materialise", "rules.dmtl", "Reading.csv").err


def test_rules_that_the_query_does_not_need_are_not_judged(sh: Shell) -> None:
    sh.write("rules.dmtl", 'Hot(T) :- Reading(T, C), C > 80.\nOdd(T) :- Reading(T, "90").\n')
    sh.write("Reading.csv", "turbine,celsius,time\nt1,90,1\n")
    for command in (
        ("materialise", "rules.dmtl", "Reading.csv", "--query"),
        ("stream", "rules.dmtl", "--input", "Reading.csv", "--query"),
    ):
        assert sh(*command, "Hot").err == ""
        assert 'the constant "90" is a text, but the rule joins them' in sh(*command, "Odd").err


def test_a_leading_zero_far_down_a_stream_is_refused_by_value(sh: Shell) -> None:
    sh.write("rules.dmtl", "Late(X) :- Order(X).\n")
    sh.write("Order.csv", "order,time\n" + "".join(f"{1000 + n},{n}\n" for n in range(100_000)) + "007,100000\n")
    ran = sh("stream", "rules.dmtl", "--query", "Late", "--input", "Order.csv")
    assert ran.code == 2
    assert "Order.csv:100002:1: error[TL206]: column `order`: `007` has a leading zero\n" in ran.err
    assert "`tidelog infer Order.csv` prints one for --schema FILE" in ran.err
    ran = sh("stream", "rules.dmtl", "--query", "Late", "--input", "Order.csv", "--bad-rows", "bad.jsonl")
    assert (ran.code, ran.err) == (0, "Order.csv: 1 row could not be read and was set aside in bad.jsonl\n")
    assert ran.out.endswith("Late(100999)@99999\n")


def test_a_leading_zero_far_down_a_stream_of_text_is_text(sh: Shell) -> None:
    sh.write("rules.dmtl", "Late(X) :- Order(X), Order(X).\n")
    sh.write("Order.csv", "order,time\n" + "".join(f"A{1000 + n},{n}\n" for n in range(100_000)) + "007,100000\n")
    ran = sh("stream", "rules.dmtl", "--query", "Late", "--input", "Order.csv")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith('Late("007")@100000\n')


@pytest.mark.parametrize("command", ["materialise r.dmtl Paid.csv", "stream r.dmtl --query Big --input Paid.csv"])
def test_spaces_around_a_number_do_not_make_it_text(sh: Shell, command: str) -> None:
    sh.write("r.dmtl", "Big(O, A) :- Paid(O, A), A > 5.\n")
    sh.write("Paid.csv", "order, amount, time\no1, 5, 1\no2 , 6.5 , 2\no 3, -1, 3\n")
    ran = sh(*command.split())
    assert (ran.code, ran.out) == (0, 'Big("o2 ",6.5)@2\n')
    assert ran.err.startswith("warning[TL212]: column `order` of Paid.csv has text with spaces at its ends\n")
    assert ran.err.count("warning") == 1


def test_leading_zeros_behind_spaces_make_a_column_text(sh: Shell) -> None:
    sh.write("r.dmtl", "Seen(O) :- Paid(O).\n")
    sh.write("Paid.csv", "order, time\n 007, 1\n 12, 2\n")
    assert sh("materialise", "r.dmtl", "Paid.csv").out == 'Seen("007")@1\nSeen("12")@2\n'


def test_background_and_followed_files_are_held_to_the_unit_of_the_stream(sh: Shell) -> None:
    sh.write("rules.dmtl", "C(X) :- A(X), Diamondminus[0,1h] B(X).\n")
    sh.write("a.facts", "A(a)@2026-01-31T10:00:00Z\n")
    sh.write("b.facts", "B(a)@5\n")
    dates = "error[TL209]: some times are dates, like A(a)@2026-01-31T10:00:00Z in a.facts, and others numbers, like "
    stream = ("stream", "rules.dmtl", "--query", "C", "--input", "a.facts")
    for more, where in (
        (("--background", "b.facts"), "the background"),
        (("--input", "b.facts"), "b.facts"),
        (("--input", "b.facts", "--follow"), "b.facts"),
    ):
        ran = sh(*stream, *more)
        assert ran.code == 2
        assert f"{dates}B(a)@5 in {where}\n" in ran.err


DATED = "some times are dates, like A(a)@2026-01-31T10:00:00Z in"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("materialise rules.dmtl a.facts --until 5", "--until 5"),
        ("materialise rules.dmtl a.facts --between 0,9", "--between 0,9"),
        ("stream rules.dmtl --query C --input a.facts --until 1769853600000", "--until 1769853600000"),
        ("entails rules.dmtl a.facts C(a)@5", "C(a)@5"),
        ("explain rules.dmtl a.facts C(a)@[5,9]", "C(a)@[5,9]"),
    ],
)
def test_questions_and_options_are_held_to_the_unit_of_the_data(sh: Shell, command: str, shown: str) -> None:
    sh.write("rules.dmtl", "C(X) :- A(X).\n")
    sh.write("a.facts", "A(a)@2026-01-31T10:00:00Z\n")
    ran = sh(*command.split())
    assert (ran.code, ran.out) == (2, "")
    assert DATED in ran.err
    assert f"and others numbers, like {shown}\n" in ran.err


def test_times_near_1970_seconds_and_open_ends_are_fine_next_to_dates(sh: Shell) -> None:
    sh.write("rules.dmtl", "C(X) :- A(X).\n")
    sh.write("a.facts", "A(a)@2026-01-31T10:00:00Z\n")
    assert sh("materialise", "rules.dmtl", "a.facts", "--until", "1769853600").code == 0
    assert sh("materialise", "rules.dmtl", "a.facts", "--between", "0,2026-02-01").code == 0
    assert sh("entails", "rules.dmtl", "a.facts", "C(a)@(-inf,inf)").code == 1
    sh.write("a.facts", "A(a)@1970-01-01T00:00:05Z\n")
    assert sh("materialise", "rules.dmtl", "a.facts", "--until", "1970-01-01T00:00:09Z").code == 0
    stream = sh("stream", "rules.dmtl", "--query", "C", "--input", "a.facts", "--until", "1970-01-01T00:00:09Z")
    assert (stream.code, stream.out) == (0, "C(a)@1970-01-01T00:00:05Z\n")


@pytest.mark.parametrize(("column", "arity"), [("ts", 2), ("at", 1), ("when", 1)])
def test_a_time_column_with_another_name_is_mentioned_by_batch_and_stream(sh: Shell, column: str, arity: int) -> None:
    sh.write("rules.dmtl", "Alarm(X) :- Smoke(X).\n" if arity == 1 else "Alarm(X) :- Smoke(X, _).\n")
    sh.write("Smoke.csv", f"room,{column}\nr1,2026-01-31T10:00:00Z\n")
    for command in (
        ("materialise", "rules.dmtl", "Smoke.csv"),
        ("stream", "rules.dmtl", "--query", "Alarm", "--input", "Smoke.csv"),
    ):
        ran = sh(*command)
        assert ran.code == (0 if arity == 2 else 2)
        assert ran.err.count("TL210") == 1
        assert f'write time = "{column}" into a schema' in ran.err


def test_a_table_without_rows_is_not_a_misspelt_name(sh: Shell) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\no1,1\n")
    sh.write("Paid.csv", "order,time\n")
    assert sh("materialise", "rules.dmtl", "Order.csv", "Paid.csv").err == ""
    ran = sh("stream", "rules.dmtl", "--query", "Done", "--input", "Order.csv", "--input", "Paid.csv")
    assert (ran.code, ran.err) == (0, "")


def test_a_query_without_rules_and_facts_is_mentioned(sh: Shell) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\no1,1\n")
    said = "warning[TL112]: the query Paid has neither rules nor facts, so that it has no answers\n"
    assert said in sh("materialise", "rules.dmtl", "Order.csv", "--query", "Paid").err


@pytest.mark.parametrize("command", WAYS, ids=" ".join)
@pytest.mark.parametrize("text", ["o2 ", " o2", "\\to2"])
def test_texts_with_spaces_at_their_ends_are_reported(sh: Shell, command: tuple[str, ...], text: str) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\no1,1\no2,2\n")
    sh.write("Paid.jsonl", f'{{"id": "o1", "time": 3}}\n{{"id": "{text}", "time": 4}}\n')
    ran = sh(*command)
    assert (ran.code, ran.out) == (0, "Done(o1)@1\n")
    assert "warning[TL212]: column `id` of Paid.jsonl has text with spaces at its ends\n" in ran.err
    assert f'help: correct the data if "{text}" should be "o2"\n' in ran.err
    assert ran.err.count("TL212") == 1
    assert sh(*command, "--strict").code == 2
    sh.write("Paid.jsonl", '{"id": "o1", "time": 3}\n{"id": "o 2", "time": 4}\n')
    assert sh(*command).err == ""


def test_spaces_that_no_rule_reads_or_that_were_quoted_are_no_warning(sh: Shell) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\no1,1\n")
    sh.write("Note.csv", "text,time\nhello ,1\n")
    sh.write("paid.facts", 'Paid("o1 ")@2\nPaid(o1)@3\n')
    ran = sh("materialise", "rules.dmtl", "Order.csv", "Note.csv", "paid.facts", "--query", "Done")
    assert ran.out == "Done(o1)@1\n"
    assert "TL212" not in ran.err


@pytest.mark.parametrize("command", WAYS, ids=" ".join)
def test_a_key_that_occurs_twice_is_a_bad_row(sh: Shell, command: tuple[str, ...]) -> None:
    sh.write("rules.dmtl", PAID)
    sh.write("Order.csv", "order,time\no1,1\no2,2\n")
    sh.write("Paid.jsonl", '{"id": "o1", "time": 3}\n{"id": "o1", "id": "o2", "time": 4}\n')
    ran = sh(*command)
    assert ran.code == 2
    assert 'Paid.jsonl:2:1: error[TL207]: the key "id" occurs twice' in ran.err
    ran = sh(*command, "--bad-rows", "bad.jsonl")
    assert (ran.code, ran.out) == (0, "Done(o1)@1\n")
    assert '"line": 2, "reason": "the key \\"id\\" occurs twice"' in (sh.folder / "bad.jsonl").read_text()


@pytest.mark.parametrize("command", WAYS[:2], ids=" ".join)
def test_milliseconds_under_rules_with_durations_are_reported(sh: Shell, command: tuple[str, ...]) -> None:
    sh.write("rules.dmtl", "Done(X) :- Order(X), Diamondminus[0,2h] Paid(X).\n")
    sh.write("Order.csv", "order,time\n1001,1769853600000\n")
    sh.write("Paid.jsonl", '{"order": 1001, "time": 1769850000000}\n')
    ran = sh(*command)
    assert ran.code == 0
    assert "warning[TL211]: times as in " in ran.err
    assert "(1001)@17698" in ran.err
    assert " seem to be milliseconds since 1970, and `2h` in the rules is 7200 of them" in ran.err
    assert ran.err.count("TL211") == 1
    strict = sh(*command, "--strict")
    assert (strict.code, strict.out) == (2, "")
    sh.write("rules.dmtl", "Done(X) :- Order(X), Diamondminus[0,7200000] Paid(X).\n")
    ran = sh(*command)
    assert (ran.code, ran.out, ran.err) == (0, "Done(1001)@1769853600000\n", "")


def test_seconds_small_numbers_and_far_ends_under_rules_with_durations_are_fine(sh: Shell) -> None:
    sh.write("rules.dmtl", "Done(X) :- Diamondminus[0,2h] Paid(X).\n")
    sh.write("p.facts", "Paid(a)@1769850000\nPaid(b)@3\nPaid(c)@[3,253402300799]\nPaid(d)@[3,inf)\n")
    assert sh("materialise", "rules.dmtl", "p.facts").err == ""


LOCAL, ZONED = "2026-01-31T10:00:00", "2026-01-31T10:00:00+01:00"


@pytest.mark.parametrize("command", WAYS, ids=" ".join)
@pytest.mark.parametrize(("order", "paid"), [(LOCAL, ZONED), (ZONED, LOCAL), (f"{LOCAL}.5", "2026-01-31 09:00Z")])
def test_times_with_and_without_a_time_zone_are_reported(
    sh: Shell, command: tuple[str, ...], order: str, paid: str
) -> None:
    sh.write("rules.dmtl", "Done(X) :- Order(X), Diamondminus[0,2h] Paid(X).\n")
    sh.write("Order.csv", f"order,time\no1,{order}\n")
    sh.write("Paid.jsonl", f'{{"order": "o1", "time": "{paid}"}}\n')
    local, zoned = ("Paid.jsonl", "Order.csv") if paid == LOCAL else ("Order.csv", "Paid.jsonl")
    said = f"warning[TL213]: the times of {local} have no time zone, and those of {zoned} have one\n"
    ran = sh(*command)
    assert ran.code == 0
    assert (ran.err.count("TL213"), said in ran.err) == (1, True)
    strict = sh(*command, "--strict")
    assert (strict.code, strict.out) == (2, "")
    sh.write("tidelog.toml", schema_with_zone("Order", "csv") + schema_with_zone("Paid", "jsonl"))
    assert sh(*command).err == ""


def schema_with_zone(predicate: str, form: str) -> str:
    columns = '{ order = "text", time = "time" }'
    return f'[schema.{predicate}]\nfile = "{predicate}.{form}"\ncolumns = {columns}\nzone = "Europe/Berlin"\n'


@pytest.mark.parametrize(
    ("facts", "warned"),
    [
        (f"Paid(o1)@{LOCAL}\nPaid(o2)@{ZONED}\n", True),
        (f"Paid(o1)@[{ZONED},{LOCAL}]\n", True),
        (f"Paid(o1)@{LOCAL}\nPaid(o2)@[2026-01-31 , 2026-01-31T10:00:00+0100]\n", True),  # the slow reader's form
        (f"Paid(o1)@{LOCAL}\nPaid(o2)@2026-01-31T11:00\n", False),
        (f"Paid(o1)@{ZONED}\nPaid(o2)@2026-01-31T11:00:00Z\n", False),
        (f"Paid(o1)@{ZONED}\nPaid(o2)@2026-01-31\n", False),  # a day has no time zone to forget
    ],
)
def test_fact_text_that_mixes_times_with_and_without_a_time_zone_is_reported(
    sh: Shell, facts: str, warned: bool
) -> None:
    sh.write("rules.dmtl", "Done(X) :- Paid(X).\n")
    sh.write("p.facts", facts)
    said = "some times of p.facts have no time zone, and others have one"
    for command in (["materialise", "rules.dmtl"], ["stream", "rules.dmtl", "--query", "Done", "--input"]):
        ran = sh(*command, "p.facts")
        assert (ran.code, said in ran.err) == (0, warned)


def test_timestamps_of_dataframes_with_and_without_a_time_zone_are_reported() -> None:
    import pyarrow as pa

    import tidelog as tl
    from tidelog.data.input_warnings import find_warnings

    program = tl.Program.parse("Done(X) :- Order(X), Paid(X).")
    local, zoned = (pa.table({"id": ["o1"], "time": pa.array([0], pa.timestamp("us", tz))}) for tz in (None, "UTC"))
    data = tl.Dataset.from_arrow({"Order": local, "Paid": zoned})
    said = "the times of the table Order have no time zone, and those of the table Paid have one"
    assert [warning.message for warning in find_warnings(program, data)] == [said]
    assert find_warnings(program, tl.Dataset.from_arrow({"Order": local, "Paid": local})) == ()


@pytest.mark.parametrize(
    ("first", "second"), [(5, "2026-01-31T10:00:00Z"), ("2026-01-31T10:00:00Z", 7), ("2026-01-31T10:00:00Z", 1e12)]
)
def test_a_clock_that_goes_from_numbers_to_dates_or_back_is_refused(first: float | str, second: float | str) -> None:
    import tidelog as tl

    reasoner = tl.Reasoner(tl.Program.parse("Q(X) :- P(X)."), "Q")
    reasoner.push(first, ["P(a)"])
    for move in (reasoner.push, reasoner.advance):
        with pytest.raises(tl.TidelogError, match="TL209"):
            move(second)
    assert [fact.args for fact in reasoner.finish()] == [("a",)]


def test_a_clock_may_have_seconds_since_1970_next_to_dates() -> None:
    import tidelog as tl

    for first, second in ((5, "1970-01-01T00:00:07Z"), ("2026-01-31T10:00:00Z", 1769853605)):
        reasoner = tl.Reasoner(tl.Program.parse("Q(X) :- P(X)."), "Q")
        reasoner.push(first, ["P(a)"])
        assert [fact.args for fact in reasoner.push(second)] == [("a",)]

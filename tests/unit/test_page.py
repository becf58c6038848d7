"""The data of pages: round trips, what is given and what is derived, proofs, escaping, size, streams."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from base64 import b64encode
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases
from locations import ROOT
from pages import AWAITED, DERIVED, GIVEN, Page, extract_data, numbers, read_atoms, read_spans
from shell import Shell
from tidelog.language.fact_text import format_fact, parse_fact
from tidelog.language.syntax import Fact
from tidelog.page.html_document import read_static, render_page, to_script_json
from tidelog.page.packed_columns import pack_column, unpack_column
from tidelog.page.report_data import Heading, ReportTimeline, build_proofs, build_report, materialise_timeline
from tidelog.page.step_charts import StepCharts
from tidelog.page.written_durations import find_written_durations, write_durations
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.why_not import explain_absence, split_absence
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import Interval, TimelineName

pytestmark = pytest.mark.usefixtures("kernels")

RULES = """
Hot(X) :- Diamondminus[0,2] High(X).
Hot(X) :- Told(X).
Alarm(X) :- Boxminus[0,1] Hot(X), not Off(X).
Boxplus[0,3) Warned(Y) :- Alarm(X), Near(X,Y).
"""
SHORT = "Hot(X) :- Diamondminus[0,2] High(X).\nAlarm(X) :- Boxminus[0,1] Hot(X).\n"
NASTY = "a</script><script>alert(1)</script>\"'&<!--\u2028\u2029 ünïcödé 🌊 \\"


def shown(program: tl.Program, found: ReportTimeline, title: str = "a test") -> Page:
    return Page.read(render_page(build_report(program, found, Heading(title))))


# Columns


@pytest.mark.slow
@given(st.lists(st.integers(-(1 << 62), 1 << 62)) | st.lists(st.integers(1 << 40, (1 << 40) + 70_000)))
def test_columns_come_back_as_they_were(column: list[int]) -> None:
    assert numbers(pack_column(column)) == column
    assert unpack_column(pack_column(column)).tolist() == column


# Timelines


def random_facts(rng: Random, parts: int = 2) -> str:
    """Facts whose times are multiples of 1/`parts`."""
    lines = ["Near(a,b)", "Near(b,c)@[0,20)"]
    for _ in range(rng.randint(0, 25)):
        lo, length = Fraction(rng.randint(0, 40), rng.choice([1, parts])), Fraction(rng.randint(0, 6), parts)
        name = f"{rng.choice(['High', 'Told', 'Off', 'Hot', 'Alarm'])}({rng.choice('abc')})"
        ends = f"[{lo},{lo}]" if not length else f"{rng.choice('[(')}{lo},{lo + length}{rng.choice('])')}"
        lines.append(f"{name}@{rng.choice([ends, ends, f'(-inf,{lo}]', f'[{lo},inf)'])}")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(40))
def test_a_timeline_has_what_holds_and_tells_given_from_derived(seed: int) -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse(random_facts(Random(seed)))
    found = shown(program, materialise_timeline(program, data))
    names = sorted({name for name, _ in data.relations} | set(program.predicates))
    model = tl.materialise(program, data, query=names)
    assert found.lines() == model.render().decode().splitlines()
    denominator = 2 * int(found.data["timeline"]["denominator"])
    grid = Grid(True, denominator)
    facts = [(fact, grid.to_pair(fact.interval)) for fact in data]
    for fact, kind, parts in zip(found.facts, found.kinds, found.parts, strict=True):
        pair = grid.to_pair(fact.interval)
        pairs = [own for other, own in facts if other.predicate == fact.predicate and other.args == fact.args]
        assert pair is not None
        lo, hi = max(pair[0], -8 * denominator), min(pair[1], 120 * denominator)
        covered = [any(own and own[0] <= at <= own[1] for own in pairs) for at in range(lo, hi + 1)]
        expected = GIVEN if all(covered) else GIVEN | DERIVED if any(covered) else DERIVED
        assert kind == expected, fact
        told = [grid.to_pair(part) for part in parts]
        if kind == GIVEN | DERIVED:
            assert covered == [any(own and own[0] <= at <= own[1] for own in told) for at in range(lo, hi + 1)]
        else:
            assert not told


def test_a_calendar_is_given() -> None:
    program = tl.Program.parse('Rest(X) :- Stop(X), calendar:weekday("Europe/Berlin", friday).')
    data = tl.Dataset.parse("Stop(a)@[2026-01-30T10:00:00Z,2026-01-30T11:00:00Z]")
    page = shown(program, materialise_timeline(program, data))
    kinds = {fact.predicate: kind for fact, kind in zip(page.facts, page.kinds, strict=True)}
    assert kinds == {"Rest": DERIVED, "Stop": GIVEN, "calendar:weekday": GIVEN}


def test_infinite_and_open_ends_dates_and_points_are_exact() -> None:
    text = "P@(-inf,2026-01-31T10:00:00.25Z)\nQ(a)@[2026-01-31T10:00:00Z,inf)\nR@1/3\nS"
    program, data = tl.Program.parse("T :- P, Q(X)."), tl.Dataset.parse(text)
    found = shown(program, materialise_timeline(program, data))
    assert found.lines() == tl.materialise(program, data, query=list("PQRST")).render().decode().splitlines()


def test_times_beyond_what_a_float_holds_stay_exact() -> None:
    text = "P@[1000000000000000001/7,1000000000000000003/7)"
    found = shown(
        tl.Program.parse("Q :- P."), materialise_timeline(tl.Program.parse("Q :- P."), tl.Dataset.parse(text))
    )
    assert found.lines() == [text, text.replace("P", "Q")]


def test_what_repeats_for_ever_is_kept_as_such() -> None:
    program = tl.Program.parse("A(X) :- Diamondminus[3,3] A(X).")
    found = shown(program, materialise_timeline(program, tl.Dataset.parse("A(a)@[17,18)")))
    assert found.lines() == ["A(a)@[17,18)"]
    assert found.kinds == [GIVEN]
    assert found.data["timeline"]["repeats"] == [
        {"atom": 0, "lo": "34", "hi": "35", "every": "6", "start": "34", "before": False}
    ]


def test_a_stretch_and_some_predicates_are_shown_alone() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse("High(a)@[0,10]\nHigh(b)@50")
    found = shown(program, materialise_timeline(program, data, query=["Hot", "High"], between=(5, 11)))
    assert found.lines() == ["High(a)@[5,10]", "Hot(a)@[5,11]"]
    assert found.kinds == [GIVEN, DERIVED]


def test_what_is_too_much_is_left_out_from_the_end_and_said() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse("\n".join(f"High(a)@{9 * n}" for n in range(50)))
    some = materialise_timeline(program, data, limit=10)
    assert [fact.interval.lo for fact in shown(program, some).facts if fact.predicate == "High"] == [0, 9, 18, 27]
    assert some.notes[0].startswith("Left out: 140 intervals")


def behaviours() -> list[Behaviour]:
    return [case for case in load_cases() if case.inconsistent is None]


@pytest.mark.parametrize("case", behaviours(), ids=lambda case: case.name)
def test_the_behaviour_suite_is_shown_and_proved(case: Behaviour) -> None:
    program = tl.Program.parse(case.rules, syntax=case.syntax)
    data = tl.Dataset.parse(case.facts)
    try:
        found = materialise_timeline(
            program, data, query=case.queries or None, between=case.between, timeline=case.timeline
        )
    except tl.errors.Undecided:
        pytest.skip("this has no model to show")
    proofs, found = build_proofs(program, data, found, 10_000, case.timeline)
    if proofs is None and found.notes:
        assert found.notes[-1].startswith("There are no proofs on this page: it could not be decided")
        pytest.skip("this has no model for all time to prove")
    read = Page.read(render_page(build_report(program, found, Heading(case.name), proofs=proofs)))
    names = case.queries or sorted({name for name, _ in data.relations} | set(program.predicates))
    model = tl.materialise(program, data, query=names, between=case.between, timeline=case.timeline)
    once = set(map(format_fact, model))
    shown_facts = dict(zip(map(format_fact, read.facts), range(len(read.facts)), strict=True))
    assert once <= set(shown_facts)
    # What else is shown was given, and is part of what repeats.
    assert all(read.kinds[shown_facts[fact]] == GIVEN for fact in set(shown_facts) - once)
    assert len(read.data["timeline"]["repeats"]) == len(model.repeats)
    for row, kind in enumerate(read.kinds):
        assert (read.proof(row) is not None) == (kind != GIVEN), read.facts[row]
    if model.repeats:
        firsts = [format_fact(repeat.fact) for repeat in model.repeats]
        assert [read.node(node) for node in numbers(read.data["proofs"]["repeats"])] == firsts


# Proofs


def test_every_derived_interval_has_its_proof(sh: Shell) -> None:
    facts = "High(a)@[0,4]\nHigh(a)@20\nNear(a,b)\nOff(a)@[3,5)\n"
    rules, data = sh.write("rules.dmtl", RULES), sh.write("data.facts", facts)
    assert sh("report", rules, data).code == 0
    found = Page.read(sh.folder / "report.html")
    explainer = Explainer(tl.Program.parse(RULES), tl.Dataset.parse(facts))
    proved = 0
    for row, (fact, kind) in enumerate(zip(found.facts, found.kinds, strict=True)):
        proof = found.proof(row)
        if kind == GIVEN:
            assert proof is None
            continue
        step = explainer.step(fact)
        assert step is not None
        assert proof is not None
        assert list(proof[1:]) == [
            *map(format_fact, step.parts),
            *(format_fact(premise) for condition in step.conditions for premise in condition.facts),
        ]
        assert step.rule is None or proof[0] == step.rule.text
        proved += 1
    assert proved >= 5


def test_a_rule_with_alternatives_is_listed_once(sh: Shell) -> None:
    rules = sh.write("rules.dmtl", "Q(X) :- A(X) or (B(X), C(X)).\nR(X) :- Q(X).\n")
    assert sh("report", rules, sh.write("data.facts", "A(a)@1\nB(b)@2\nC(b)@2\n")).code == 0
    found = Page.read(sh.folder / "report.html")
    assert found.data["rules"] == ["Q(X) :- A(X) or (B(X), C(X)).", "R(X) :- Q(X)."]
    proofs = (found.proof(row) for row in range(len(found.facts)))
    assert sorted(proof[0] for proof in proofs if proof is not None) == [
        *found.data["rules"][:1] * 2,
        *found.data["rules"][1:] * 2,
    ]


def test_a_proof_that_is_not_on_the_page_is_a_command_away(sh: Shell) -> None:
    rules, data = sh.write("my rules.dmtl", RULES), sh.write("data.facts", "High(a)@[0,4]\nNear(a,b)\n")
    assert sh("report", rules, data, "--timeline", "integer").code == 0
    found = Page.read(sh.folder / "report.html")
    command = shlex.split(found.data["command"])
    assert command[0] == "tidelog"
    for line in found.lines(DERIVED):
        ran = sh(*command[1:], line)
        assert ran.code == 0
        assert ran.out.startswith(line)


def test_proofs_are_limited_and_that_is_said(sh: Shell) -> None:
    data = sh.write("data.facts", "".join(f"High(a)@{10 * n}\n" for n in range(30)))
    ran = sh("report", sh.write("rules.dmtl", RULES), data, "--proofs", "10")
    assert "proofs of the first 10 of" in ran.err
    found = Page.read(sh.folder / "report.html")
    assert sum(found.proof(row) is not None for row in range(len(found.facts))) == 10
    assert "proofs" not in sh("report", "rules.dmtl", data, "--proofs", "0").err
    assert extract_data((sh.folder / "report.html").read_text(encoding="utf-8"))["proofs"] is None


def gaps_of(found: Page) -> list[tuple[Fact, list[tuple[str, list[str]]]]]:
    """The parts of gaps on a page, each with the rules that fail and what is said about them."""
    gaps, timeline = found.data["proofs"]["gaps"], found.data["timeline"]
    rules, rule, lines, line = (numbers(gaps[name]) for name in ("rules", "rule", "lines", "line"))
    parts = []
    for part, (of, when, _) in enumerate(read_spans(gaps["parts"], int(timeline["denominator"]))):
        blocked = [
            (found.data["rules"][rule[at]], [gaps["texts"][n] for n in line[lines[at] : lines[at + 1]]])
            for at in range(rules[part], rules[part + 1])
        ]
        parts.append((Fact(*read_atoms(timeline)[of], when), blocked))
    return parts


def proved(program: tl.Program, data: tl.Dataset, timeline: TimelineName | None = None) -> Page:
    found = materialise_timeline(program, data, timeline=timeline)
    proofs, found = build_proofs(program, data, found, 10_000, timeline, query=["Alarm"])
    return Page.read(render_page(build_report(program, found, Heading("gaps"), proofs=proofs)))


def test_gaps_say_which_condition_fails_where() -> None:
    rules = "Alarm(X) :- Boxminus[0,10min] Open(X), not Diamondminus[0,5min] Guard(X)."
    found = proved(tl.Program.parse(rules), tl.Dataset.parse("Open(a)@[0,2000]\nGuard(a)@900"))
    said = [(format_fact(fact), blocked[0][1]) for fact, blocked in gaps_of(found)]
    assert said == [
        ("Alarm(a)@[-100,600)", ["Boxminus[0,10min] Open(a) fails throughout [-100,600)", "it holds on [600,2000]"]),
        (
            "Alarm(a)@[900,1200]",
            [
                "not Diamondminus[0,5min] Guard(a) fails throughout [900,1200]",
                "Boxminus[0,10min] Open(a) holds",
                "since Guard(a)@900",
                "it holds on (-inf,900) and (1200,inf)",
            ],
        ),
        ("Alarm(a)@(2000,2100]", ["Boxminus[0,10min] Open(a) fails throughout (2000,2100]", "it holds on [600,2000]"]),
    ]


@pytest.mark.parametrize("timeline", ["rational", "integer"])
@pytest.mark.parametrize("seed", range(6))
def test_one_explanation_is_right_for_all_of_a_part(seed: int, timeline: TimelineName) -> None:
    rules = RULES + "Alarm(X) :- Near(X,Y), Hot(Y), Diamondminus[1,3] Told(Y).\n"
    program, data = tl.Program.parse(rules), tl.Dataset.parse(random_facts(Random(seed), 1 + (timeline == "rational")))
    found = proved(program, data, timeline)
    explainer = Explainer(program, data, timeline=timeline, denominator=1 if timeline == "integer" else 2)
    model, parts = explainer.model, gaps_of(found)
    assert parts
    covered: dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]] = {}
    for fact, blocked in parts:
        inside = fact.interval if timeline == "rational" else _without_neighbours(fact.interval)
        atom, pair = explainer.encode_fact(Fact(fact.predicate, fact.args, inside))
        covered.setdefault(atom, []).append(pair)
        for at in {pair[0], (pair[0] + pair[1]) // 2, pair[1]}:
            assert model.missing_times(atom, (at, at))
            here = [(one.rule.text, one.text) for one in explain_absence(model, atom, (at, at), 0).blocked]
            assert here == [(rule, lines[0].partition(" fails")[0]) for rule, lines in blocked], (fact, at)
    for atom, pairs in covered.items():  # no gap between the first and the last part is left out
        whole = min(lo for lo, _ in pairs), max(hi for _, hi in pairs)
        assert sorted(pairs) == sorted(
            part for gap in model.missing_times(atom, whole) for part in split_absence(model, atom, gap)
        )


def _without_neighbours(interval: Interval) -> Interval:
    return Interval(interval.lo + 1, interval.hi - 1)


def test_predicates_have_roles_and_names_of_columns(sh: Shell) -> None:
    rules, data = sh.write("rules.dmtl", RULES), sh.write("data.facts", "High(a)@[0,4]\nNear(a,b)\nTold(a)@0\n")
    sh.write("s.toml", '[schema.Near]\ncolumns = { who = "text", whom = "text" }\n')
    assert sh("report", rules, data, "--schema", "s.toml").code == 0
    found = Page.read(sh.folder / "report.html")
    roles = {p["name"]: (p["role"], p["derived"], p["columns"]) for p in found.data["timeline"]["predicates"]}
    assert roles == {
        "Alarm": ("helper", True, None),
        "High": ("given", False, None),
        "Hot": ("helper", True, None),
        "Near": ("given", False, ["who", "whom"]),
        "Told": ("given", False, None),
        "Warned": ("query", True, None),
    }
    assert {fact.predicate for fact, _ in gaps_of(found)} == {"Alarm", "Hot", "Warned"}


def test_the_gaps_of_a_stream_end_with_it(sh: Shell) -> None:
    rules, stream = sh.write("rules.dmtl", RULES), sh.write("stream.facts", "High(a)@0\nHigh(a)@20\nTold(b)@30\n")
    args = ["--query", "Hot", "--input", stream, "--report", "page.html"]
    assert sh("stream", rules, *args).code == 0
    found = gaps_of(Page.read(sh.folder / "page.html"))
    assert max(fact.interval.hi for fact, _ in found) == 30
    assert sh("stream", rules, *args, "--at", "every:1").code == 0
    assert "gaps" not in extract_data((sh.folder / "page.html").read_text(encoding="utf-8"))["proofs"]


@pytest.mark.parametrize(
    ("rule", "condition", "written"),
    [
        ("P(X) :- Boxminus[2h,1d] Q(X).", "Boxminus[7200,86400] Q(a)", "Boxminus[2h,1d] Q(a)"),
        ("P :- Q Since(0,90s] R.", "Q Since(0,90] R", "Q Since(0,90s] R"),
        ("P :- Diamondminus[0,inf) Q, R.", "Diamondminus[0,inf) Q", "Diamondminus[0,inf) Q"),
        ("P(X) :- Diamondminus[0,600] Q(X).", "Diamondminus[0,600] Q(a)", "Diamondminus[0,600] Q(a)"),
        ('P(X) :- Boxminus[0,1min] Q(X, "Boxminus[0,60]").', 'Boxminus[0,60] Q(a, "Boxminus[0,60]")',
         'Boxminus[0,1min] Q(a, "Boxminus[0,60]")'),
        ('P(X) :- Q(X, "1min"), Boxminus[0,60] R(X).', "Boxminus[0,60] R(a)", "Boxminus[0,60] R(a)"),
        ("P(X) :- Boxminus[0,0.5min] Q(X, 30).", "Boxminus[0,30] Q(a, 30)", "Boxminus[0,0.5min] Q(a, 30)"),
        ("P(X) :- duration[0,1h]{ Q(X) } >= 30min.", "duration[0,3600]{ Q(a) } is 60, needs >= 1800",
         "duration[0,1h]{ Q(a) } is 60, needs >= 30min"),
    ],
)  # fmt: skip
def test_durations_are_written_as_the_rule_writes_them(rule: str, condition: str, written: str) -> None:
    assert write_durations(condition, find_written_durations(rule)) == written


# Documents


def test_no_fact_can_break_out_of_the_page() -> None:
    value = json.dumps(NASTY, ensure_ascii=False)
    data = tl.Dataset.from_facts([tl.Fact("High", (NASTY,), Interval.point(Fraction(1)))])
    program = tl.Program.parse(f"Hot(X) :- High(X), X != {value}.\nHot(X) :- High(X).")
    found = materialise_timeline(program, data)
    html = render_page(build_report(program, found, Heading(NASTY, (("Data", NASTY),), NASTY)))
    assert len(re.findall(r"</script", html, re.IGNORECASE)) == 2
    assert "<!--" not in html
    assert "alert(1)</" not in html
    read = Page.read(html)
    assert [fact.args for fact in read.facts] == [(NASTY,), (NASTY,)]
    assert read.data["title"] == NASTY
    assert read.data["rules"][0] == f"Hot(X) :- High(X), X != {value}."


@pytest.mark.slow
@given(st.dictionaries(st.text(), st.text() | st.lists(st.text())))
def test_data_in_a_script_are_the_same_data(data: dict[str, object]) -> None:
    text = to_script_json(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028\u2029") & set(text)


def test_a_page_allows_itself_its_own_script_and_style_alone() -> None:
    html = render_page({"kind": "report", "title": "x"})
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', html)
    for element, name in (("script", "bundle.js"), ("style", "bundle.css")):
        digest = b64encode(hashlib.sha256(read_static(name).encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
        assert f"<{element}>{read_static(name)}</{element}>" in html
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "connect-src 'self'" in render_page({"kind": "live", "title": "x"})
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", html.replace(read_static("bundle.js"), ""))


def test_a_hundred_thousand_intervals_are_a_few_bytes_each() -> None:
    facts = "\n".join(f"High(m{n % 1000})@{n}" for n in range(50_000))
    program, data = tl.Program.parse("Hot(X) :- Diamondminus[0,2] High(X)."), tl.Dataset.parse(facts)
    found = materialise_timeline(program, data)
    assert len(found.timeline.rows) == 100_000
    whole = len(render_page(build_report(program, found, Heading("many"))))
    assert whole - len(read_static("bundle.js")) - len(read_static("bundle.css")) < 1_600_000


def test_the_bundle_belongs_to_its_sources() -> None:
    """If this fails, run `make page` and commit what it builds."""
    folder = ROOT / "page"
    names = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
    names += [f"src/{file.name}" for file in (folder / "src").iterdir()]
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(names)]
    built = json.loads(read_static("built.json"))
    assert built["sources"] == hashlib.sha256("".join(lines).encode()).hexdigest()
    for name in ("bundle.js", "bundle.css"):
        assert built[name] == hashlib.sha256(read_static(name).encode()).hexdigest()


# The command


def test_report_says_what_it_wrote(sh: Shell) -> None:
    rules, data = sh.write("rules.dmtl", SHORT), sh.write("data.facts", "High(a)@1\n")
    ran = sh("report", rules, data, "-o", "page.html", "--title", "Ours")
    assert (ran.code, ran.out, ran.err) == (0, "page.html: 3 intervals of 3 atoms\n", "")
    found = extract_data((sh.folder / "page.html").read_text(encoding="utf-8"))
    assert found["title"] == "Ours"
    assert found["command"] == "tidelog explain rules.dmtl data.facts"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["rules.dmtl"], "name files with facts"),
        (["rules.dmtl", "data.facts", "-o", "data.facts"], "would be overwritten"),
        (["rules.dmtl", "data.facts", "--query", "Hott"], "did you mean Hot?"),
        (["rules.dmtl", "data.facts", "--hypothetical", "Hot(X,T)"], "go together"),
        (["rules.dmtl", "data.facts", "--delay", "3"], "need --arrivals"),
        (["rules.dmtl", "none.facts"], "none.facts"),
        (["rules.dmtl", "data.facts", "-o", "no/such/folder.html"], "no/such/folder.html"),
    ],
)
def test_report_refuses_what_it_cannot_do(sh: Shell, args: list[str], message: str) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("data.facts", "High(a)@1\n")
    ran = sh("report", *args)
    assert ran.code == 2
    assert message in ran.err


def test_possible_answers_are_shown_with_what_they_wait_for(sh: Shell) -> None:
    examples = ROOT / "examples"
    stream = str(examples / "turbines" / "turbines.jsonl")
    args = ["--hypothetical", "Malf(X,T)", "--arrivals", stream, "--delay", "Temp=1"]
    assert sh("report", str(examples / "turbines" / "turbines.tdl"), *args).code == 0
    found = Page.read(sh.folder / "report.html")
    program = tl.Program.load(examples / "turbines" / "turbines.tdl")
    arrivals = [json.loads(line) for line in (examples / "turbines" / "turbines.jsonl").read_text().splitlines()]
    *_, last = tl.hypotheses(program, "Malf(X,T)", arrivals, delay="Temp=1")
    assert last.hypothetical
    entries = {(entry["text"], tuple(entry["hypotheses"])) for entry in found.data["awaited"]}
    assert entries == {(f"Malf({e.bindings['X']})@{e.bindings['T']}", e.hypotheses) for e in last.hypothetical}
    for entry in found.data["awaited"]:
        assert format_fact(found.facts[entry["row"]]) == entry["text"]
        assert found.kinds[entry["row"]] == AWAITED
    data = tl.Dataset.from_facts(arrival["fact"] for arrival in arrivals)
    certain = tl.materialise(program, data, query=sorted(program.predicates)).render().decode().splitlines()
    assert sorted(found.lines(GIVEN | DERIVED)) == sorted(certain)


def test_arrivals_that_came_too_late_are_no_data(sh: Shell) -> None:
    rules = sh.write("rules.tdl", "Alarm(X, T) :- Hot(X, T), Hot(X, T+1).\n")
    lines = [(0, "Hot(a,0)"), (5, "Hot(a,1)"), (5, "Hot(a,5)"), (6, "Hot(a,0)")]
    text = "".join(json.dumps({"arrival": at, "fact": fact}) + "\n" for at, fact in lines)
    ran = sh("report", rules, "--arrivals", sh.write("a.jsonl", text), "--hypothetical", "Alarm(X,T)", "--delay", "1")
    assert "2 arrivals were not taken" in ran.err
    found = Page.read(sh.folder / "report.html")
    assert found.lines(GIVEN) == ["Hot(a)@0", "Hot(a)@5"]
    assert found.lines(AWAITED) == ["Alarm(a)@5"]


# Streams


STREAM = "Near(a,b)\n" + "".join(f"High(a)@{t}\nHigh(b)@{t + 1}\n" for t in (0, 1, 2, 9, 10)) + "High(c)@4\n"


def test_the_report_of_a_stream_has_its_answers_and_its_figures(sh: Shell) -> None:
    rules, stream = sh.write("rules.dmtl", RULES), sh.write("stream.facts", STREAM)
    args = ["--report", "page.html", "--stats", "stats.jsonl", "--late", "late.facts"]
    ran = sh("stream", rules, "--query", "Hot", "--input", stream, *args)
    found = Page.read(sh.folder / "page.html")
    assert [line for line in found.lines() if line.startswith("Hot")] == sorted(ran.out.splitlines())
    late = (sh.folder / "late.facts").read_text().splitlines()
    assert late
    given_facts = [line for line in STREAM.splitlines() if "@" in line and line not in late]
    assert sorted(line for line in found.lines(GIVEN) if line.startswith("High")) == sorted(given_facts)
    steps = [json.loads(line) for line in (sh.folder / "stats.jsonl").read_text().splitlines()]
    figures = found.data["steps"]
    assert figures["t"] == [step["t"] for step in steps]
    for name in ("facts_in", "answers"):
        assert figures[name] == [step[name] for step in steps]
    assert figures["held"] == [step["window_facts"] + step["history_atoms"] for step in steps]
    for row, fact in enumerate(found.facts):
        assert (found.proof(row) is not None) == (fact.predicate == "Hot")


def test_what_comes_after_the_end_of_a_stream_proves_nothing(sh: Shell) -> None:
    rules, stream = sh.write("rules.dmtl", RULES), sh.write("stream.facts", "High(a)@0\nTold(a)@1\nTold(a)@9\n")
    args = ["--until", "5", "--report", "page.html"]
    ran = sh("stream", rules, "--query", "Hot", "--input", stream, *args)
    found = Page.read(sh.folder / "page.html")
    assert ran.out == "Hot(a)@[0,2]\n"
    assert found.lines() == ["High(a)@0", "Hot(a)@[0,2]", "Told(a)@1"]
    assert found.proof(1) is not None


def test_a_report_that_cannot_be_written_is_refused_at_once(sh: Shell) -> None:
    ran = sh("stream", sh.write("r.dmtl", RULES), "--query", "Hot", "--input", "none", "--report", "no/page.html")
    assert ran.code == 2
    assert "--report no/page.html: there is no such folder" in ran.err


@pytest.mark.parametrize("timeline", ["rational", "integer"])
def test_answers_at_points_are_points_in_the_report(sh: Shell, timeline: TimelineName) -> None:
    rules, stream = sh.write("rules.dmtl", RULES), sh.write("stream.facts", "Hot(a)@[0,3]\nHigh(a)@2\nHigh(a)@6\n")
    args = ["--at", "every:1", "--report", "page.html", "--timeline", timeline]
    ran = sh("stream", rules, "--query", "Hot", "--input", stream, *args)
    found = Page.read(sh.folder / "page.html")
    assert [line for line in found.lines() if line.startswith("Hot")] == ran.out.splitlines()
    kinds = {fact.interval.lo: kind for fact, kind in zip(found.facts, found.kinds, strict=True)}
    assert [kinds[t] for t in (0, 3, 4)] == [GIVEN, GIVEN, DERIVED]


def test_the_report_of_a_stream_that_goes_on_proves_nothing_of_what_it_has_not_seen(sh: Shell) -> None:
    rules = sh.write("rules.dmtl", RULES)
    first, second = sh.write("1.facts", "High(a)@0\nHigh(a)@1\n"), sh.write("2.facts", "High(a)@2\nHigh(a)@9\n")
    args = ["--query", "Hot", "--state", "state"]
    assert sh("stream", rules, "--input", first, *args, "--continues").code == 0
    assert sh("stream", rules, "--input", second, *args, "--report", "page.html").code == 0
    found = Page.read(sh.folder / "page.html")
    assert found.lines() == ["High(a)@2", "High(a)@9", "Hot(a)@[0,4]", "Hot(a)@9"]
    assert found.data["proofs"] is None


def test_a_stream_that_contradicts_itself_still_has_its_report(sh: Shell) -> None:
    rules = sh.write("rules.dmtl", "Hot(X) :- High(X).\nBottom :- High(X), Off(X).\n")
    stream = sh.write("stream.facts", "High(a)@0\nHigh(a)@3\nOff(a)@3\nHigh(a)@4\n")
    ran = sh("stream", rules, "--query", "Hot", "--input", stream, "--report", "page.html")
    assert ran.code == 2
    assert ran.err.count("a constraint is violated") == 1
    found = Page.read(sh.folder / "page.html")
    assert "Hot(a)@0" in found.lines()
    assert "There are no proofs" in found.data["notes"][0]


def test_figures_stay_few_and_add_up() -> None:
    program = tl.Program.parse(RULES)
    reasoner = tl.Reasoner(program, "Hot")
    steps = list(reasoner.feed(tl.Dataset.parse("\n".join(f"High(a)@{2 * n}" for n in range(101)), ordered=True)))
    figures = StepCharts(most=8)
    for step in steps:
        figures.add(step)
    found = figures.to_json(dates=False)
    assert len(found["t"]) <= 8
    assert sum(found["steps"]) == len(steps)
    assert sum(found["facts_in"]) == 101
    assert sum(found["answers"]) == sum(len(step.answers) for step in steps)
    assert max(found["held"]) == max(step.window_facts + step.history_atoms for step in steps)
    assert max(found["slowest"]) == max(step.seconds for step in steps)
    assert found["t"][-1] == "200"


# Notebooks


def test_results_show_themselves_in_notebooks() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse("High(a)@[0,3)\nHigh(b)@[5,inf)\nNear(a,b)")
    model = tl.materialise(program, data)
    html = model._repr_html_()
    for fact in model:
        assert f"<title>{format_fact(fact)}</title>" in html
    assert html.count("<tr>") == len(model) + 1
    assert "<script" not in html
    assert "<td>Near(a,b)</td><td>-inf</td><td>inf</td>" in data._repr_html_()
    reasoner = tl.Reasoner(program, "Hot")
    answers = reasoner.push(0, ["High(a)"]) + reasoner.push(9, [])
    assert [format_fact(fact) for fact in answers] == ["Hot(a)@[0,2]"]
    last = reasoner.push(20, ["High(a)"])
    assert isinstance(last, list)
    assert "no facts" in last._repr_html_()


def test_notebooks_show_the_first_of_many_facts_and_escape_all_of_them() -> None:
    fact, _ = parse_fact('P("<img src=x onerror=alert(1)>")@1')
    data = tl.Dataset.from_facts(tl.Fact(f"P{n}", fact.args, fact.interval) for n in range(501))
    html = data._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
    assert "and 451 more facts" in html
    assert len(html) < 40_000
    model = tl.materialise(tl.Program.parse("A(X) :- Diamondminus[3,3] A(X)."), tl.Dataset.parse("A(a)@17"))
    assert "repeats every 3 from 17" in model._repr_html_()
    assert "no facts" in tl.Dataset()._repr_html_()


def test_the_folder_of_the_bundle_has_what_a_page_needs() -> None:
    folder = Path(read_static.__code__.co_filename).parent / "static"
    assert sorted(file.name for file in folder.iterdir()) == ["built.json", "bundle.css", "bundle.js"]

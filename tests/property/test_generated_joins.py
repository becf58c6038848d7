"""Joins that are generated for a program do what the plan machine does, and the two can take turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, note, settings

import tidelog as tl
from behaviour import load_cases
from checked_arrays import check_arrays
from examine import format_as_behaviour
from formula_parts import head_predicates
from kernel_ways import run_kernels
from strategies import BOTH, FORWARD, Case, cases
from tidelog import warm
from tidelog.engine import generated_tier, stream_kernel
from tidelog.engine.generated_kernel import generate_source
from tidelog.engine.generated_tier import JoinTier
from tidelog.jit import background_compiler, compiled_cache, generated_cache
from tidelog.language.fact_text import format_fact
from tidelog.streaming.stream_plans import _plan_empty_store

SHORT_STOP = """
NotPos(V) :- NotOnMap(V).
Stop(V) :- NotPos(V), Diamondminus[1,1] Pos(V), Diamondminus[2,2] NotPos(V).
Stop(V) :- NotPos(V), Diamondminus[1,1] Pos(V), Diamondminus[2,2] Pos(V), Diamondminus[3,3] NotPos(V).
"""
TRAFFIC = "\n".join(
    f"{('Pos', 'NotPos', 'NotOnMap')[(7 * v + 3 * t + v * t) % 3]}(v{v})@{t}" for t in range(12) for v in range(9)
)
NETWORK = """
Flag(X, Z) :- Monit(X, Z), Boxminus[0,2] Diamondminus[0,2] Signal(Z).
Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Connect(X, Y).
"""
READINGS = "\n".join(
    [
        *(f"Connect(n{node},n{(3 * node + k) % 6})" for node in range(6) for k in (1, 2)),
        "Monit(n0,z0)",
        "Monit(n4,z1)@[2,3]",
        *(f"Signal(z{z})@{t}" for t in range(14) for z in range(2) if (t + z) % 7 != 3),
    ]
)
FEATURES = {
    "rationals": replace(FORWARD, denominators=(2, 3)),
    "integers": replace(FORWARD, integer=True, denominators=(1,)),
    "looking ahead": replace(BOTH, unbounded=True),
}


@contextmanager
def use_joins(*ways: str) -> Iterator[None]:
    """Let calls of the stream kernel take turns between ways of joining: `generated`, `machine`."""
    _plan_empty_store.cache_clear()
    turns = itertools.cycle(ways)
    with pytest.MonkeyPatch.context() as patch, run_kernels("interpreted"):
        patch.setattr(generated_tier, "_mode", lambda: next(turns))
        yield
    _plan_empty_store.cache_clear()


def is_generated(program: tl.Program, query: str, timeline: Any = None) -> bool:
    """Return whether joins are generated for a query."""
    evaluation = tl.Reasoner(program, query, timeline=timeline).evaluation
    return generate_source(evaluation.engine.code, evaluation.task, evaluation.store.preds) is not None


def follow(program: tl.Program, query: str, facts: str, timeline: Any = None, at: str | None = None) -> list[object]:
    """Return everything that a stream shows: in bulk, and step by step."""
    found: list[object] = []
    try:
        data = tl.Dataset.parse(facts, ordered=True)
        reasoner = tl.Reasoner(program, query, timeline=timeline, at=at)
        for step in reasoner.feed(data):
            found.append((step.time, step.facts_in, step.window_facts, step.history_atoms, step.answers.render()))
        found.append(reasoner.count_held_atoms())
        again = tl.Reasoner.load(reasoner.save())
        found.append(sorted(map(str, reasoner.finish())))
        found.append(sorted(map(str, again.finish())))
        reasoner = tl.Reasoner(program, query, timeline=timeline, at=at, delay=2)
        for step in reasoner.feed(data, step=2):
            found.append((step.window_facts, reasoner.count_held_atoms(), sorted(map(str, step.answers))))
    except tl.TidelogError as error:
        found.append(str(error))
    return found


def compare(rules: str, facts: str, syntax: str = "dmtl", timeline: Any = None) -> Iterator[str]:
    """Yield the queries of a program for which joins are generated; they must agree with the plan machine."""
    program = tl.Program.parse(rules, syntax=syntax)
    for query in sorted(name for name in head_predicates(program.rules) if not name.startswith("$")):
        with use_joins("machine"):
            try:
                if not is_generated(program, query, timeline):
                    continue
            except tl.TidelogError:
                continue
            expected = follow(program, query, facts, timeline), follow(program, query, facts, timeline, "input")
        for ways in (("generated",), ("generated", "machine"), ("machine", "generated", "generated")):
            with use_joins(*ways):
                found = follow(program, query, facts, timeline), follow(program, query, facts, timeline, "input")
            assert found == expected, f"{query}, {ways}"
        yield query


@pytest.mark.slow
def test_behaviour_cases() -> None:
    served = [case.name for case in load_cases() if list(compare(case.rules, case.facts, case.syntax, case.timeline))]
    assert len(served) > 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", FEATURES)
def test_random_programs(kind: str) -> None:
    served: list[str] = []

    @settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
    @given(cases(FEATURES[kind]))
    def check(case: Case) -> None:
        note(format_as_behaviour("joins that are generated", case))
        rules, facts = str(tl.Program(case.rules, case.features.timeline)), "\n".join(map(format_fact, case.facts))
        served.extend(compare(rules, facts, timeline=case.features.timeline))

    check()
    assert len(served) > 10


@pytest.mark.parametrize(
    ("rules", "query", "facts"), [(SHORT_STOP, "Stop", TRAFFIC), (NETWORK, "Flag", READINGS)], ids=["keys", "indexes"]
)
def test_kernels_stay_within_arrays_that_have_no_room_to_spare(rules: str, query: str, facts: str) -> None:
    program = tl.Program.parse(rules)
    assert is_generated(program, query)
    with use_joins("machine"):
        expected = follow(program, query, facts)
    with use_joins("generated"), check_arrays(tight=True):
        assert follow(program, query, facts) == expected


def test_joins_by_some_arguments_and_records_that_are_merged() -> None:
    assert list(compare(NETWORK, READINGS)) == ["Flag", "Monit"]
    assert any("Flag" in str(found) for found in follow(tl.Program.parse(NETWORK), "Flag", READINGS))


@pytest.mark.parametrize(
    "rules",
    [
        "P(X) :- Q(X), not R(X).",
        "P(X) :- count[0,5]{ Q(X, _) } >= 2.",
        "P(X) :- Q(X), E(X, Y), X < Y.",
        "P(X) :- Q(X), R(X), X < 3.",
        "P(X) :- Q(X) Since[0,3] R(X).",
    ],
)
def test_other_programs_are_left_to_the_plan_machine(rules: str) -> None:
    assert not is_generated(tl.Program.parse(rules), "P")


def test_work_is_counted_per_rule() -> None:
    program = tl.Program.parse(SHORT_STOP)
    with use_joins("generated"):
        reasoner = tl.Reasoner(program, "Stop")
        list(reasoner.feed(tl.Dataset.parse(TRAFFIC, ordered=True)))
        assert {cost.number for cost in reasoner.slowest_rules()} == {0, 1, 2}


def run_tier(tier: JoinTier, nanoseconds: int) -> Callable[..., Any]:
    """Count time, and return the kernel that is chosen then."""
    evaluation = tl.Reasoner(tl.Program.parse(SHORT_STOP), "Stop").evaluation
    parts = evaluation.engine.code, evaluation.task, evaluation.store.preds
    tier.count(nanoseconds, *parts)
    return tier.choose(*parts)


def test_a_hot_stream_gets_joins_of_its_own_once_they_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    compiled = False

    def start(source: str) -> bool:
        started.append(source)
        return True

    monkeypatch.delenv("TIDELOG_JOINS", raising=False)
    monkeypatch.setattr(generated_tier, "is_compiled", lambda made: True)
    monkeypatch.setattr(generated_cache, "is_compiled", lambda source: compiled)
    monkeypatch.setattr(generated_cache, "start_compiling", start)
    tier = JoinTier()
    assert run_tier(tier, generated_tier.WARM) is stream_kernel.take
    assert not started
    assert run_tier(tier, generated_tier.HOT) is stream_kernel.take
    assert len(started) == 1
    compiled = True
    assert run_tier(tier, generated_tier.PAUSE - 1) is stream_kernel.take
    made = run_tier(tier, 1)
    assert made is not stream_kernel.take
    assert run_tier(tier, generated_tier.HOT) is made
    assert len(started) == 1


def test_joins_that_are_compiled_already_are_used_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELOG_JOINS", raising=False)
    monkeypatch.setattr(generated_tier, "is_compiled", lambda made: True)
    monkeypatch.setattr(generated_cache, "is_compiled", lambda source: True)
    tier = JoinTier()
    assert run_tier(tier, generated_tier.WARM - 1) is stream_kernel.take
    assert run_tier(tier, 1) is not stream_kernel.take
    monkeypatch.setenv("TIDELOG_JOINS", "machine")
    assert run_tier(tier, 1) is stream_kernel.take


def test_a_process_that_may_start_no_other_stays_with_the_plan_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELOG_JOINS", raising=False)
    monkeypatch.setenv("TIDELOG_BACKGROUND", "off")
    monkeypatch.setattr(generated_tier, "is_compiled", lambda made: True)
    monkeypatch.setattr(generated_cache, "is_compiled", lambda source: False)
    tier = JoinTier()
    for _ in range(3):
        assert run_tier(tier, generated_tier.HOT) is stream_kernel.take


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache without generated kernels, for kernels that are all compiled, in which processes may be started."""
    monkeypatch.setattr(generated_cache, "find_cache_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled_cache, "describe_version", lambda: "these kernels")
    monkeypatch.setattr(background_compiler, "is_allowed", lambda: True)
    return tmp_path


def test_one_process_compiles_a_source_and_marks_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(background_compiler, "spawn", started.append)
    assert generated_cache.start_compiling("def drive(): pass")
    assert generated_cache.start_compiling("def drive(): pass")
    (file,) = started
    assert Path(file).read_text() == "def drive(): pass"
    assert not generated_cache.is_compiled("def drive(): pass")
    generated_cache.mark_compiled("def drive(): pass")
    assert generated_cache.is_compiled("def drive(): pass")
    assert not generated_cache.is_compiled("def drive(): return 1")
    monkeypatch.setattr(compiled_cache, "describe_version", lambda: "other kernels")
    assert not generated_cache.is_compiled("def drive(): pass")


def test_without_kernels_or_a_folder_nothing_is_started(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_compiler, "spawn", lambda *files: pytest.fail("a process was started"))
    monkeypatch.setattr(compiled_cache, "describe_version", lambda: None)
    assert not generated_cache.start_compiling("def drive(): pass")
    assert not list(cache.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("kernels")
def test_compiled_joins_do_what_the_plan_machine_does(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tl.Program.parse("P(X) :- Q(X), Diamondminus[1,2] R(X).")
    facts = "\n".join(f"{'QRR'[(v + t * t) % 3]}(v{v})@{t}" for t in range(40) for v in range(7))
    expected = follow(program, "P", facts)
    evaluation = tl.Reasoner(program, "P").evaluation
    source = generate_source(evaluation.engine.code, evaluation.task, evaluation.store.preds)
    assert source is not None
    (cache / "joins").write_text(source)
    warm.compile_joins(cache / "joins")
    assert generated_cache.is_compiled(source)
    monkeypatch.setenv("TIDELOG_JOINS", "generated")
    _plan_empty_store.cache_clear()
    assert follow(program, "P", facts) == expected
    _plan_empty_store.cache_clear()

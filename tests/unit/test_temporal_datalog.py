"""Temporal Datalog: which predicates are temporal, what is refused, and what the rules mean in the DatalogMTL core."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.groups import expand_groups
from tidelog.language.printer import format_program
from tidelog.language.program import Program
from tidelog.language.rule_checks import diagnose_rules
from tidelog.language.syntax import (
    Atom,
    Comparison,
    Constant,
    Formula,
    Literal,
    Rule,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    TimeTerm,
    Unary,
    UnaryOp,
    Value,
    Variable,
)
from tidelog.language.tdl_translation import translate_to_mtl

INTRUSION = """
Attk(X, Y, T+1) :- Brst(X, Y, T), Brst(Z, Y, T+1).
Black(X, T+2)   :- Attk(X, Y, T), Attk(X, Y, T+1), Attk(X, Y, T+2).
"""


def parse(text: str) -> Program:
    """The program; its printed form reads back as the same."""
    program = Program.parse(text, syntax="tdl", source="r.tdl")
    assert Program.parse(str(program), syntax="tdl").temporal == program.temporal
    return program


def temporal(text: str) -> set[tuple[str, int]]:
    program = parse(text).temporal
    assert program is not None
    return set(program.temporal)


def core(text: str) -> str:
    """The rules in the core, and after them the facts."""
    program = parse(text)
    return format_program(program.rules) + "".join(format_fact(fact) + "\n" for fact in program.facts)


def errors(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(TidelogError) as caught:
        Program.parse(text, syntax="tdl", source="r.tdl")
    return caught.value.diagnostics


def test_the_intrusion_example_is_temporal_throughout() -> None:
    program = parse(INTRUSION)
    assert program.timeline == "integer"
    assert program.temporal is not None
    assert program.temporal.temporal == {("Brst", 2), ("Attk", 2), ("Black", 1)}
    assert program.temporal.rigid == frozenset()
    assert program.predicates == {"Attk": 2, "Brst": 2, "Black": 1}


def test_times_become_relative_to_the_head() -> None:
    assert core(INTRUSION + "Next(T) :- Brst(a, a, T+3).") == (
        "Attk(X, Y) :- Diamondminus[1,1] Brst(X, Y), Brst(Z, Y).\n"
        "Black(X) :- Diamondminus[2,2] Attk(X, Y), Diamondminus[1,1] Attk(X, Y), Attk(X, Y).\n"
        "Next :- Diamondplus[3,3] Brst(a, a).\n"
    )


def test_the_program_prints_in_its_own_syntax() -> None:
    text = 'P(X, T+1) :- P(X, T-2), not Q("A b", T), X != 3.\nBottom :- P(X, 4), R.\nP(a, 3).\nR.\n'
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P(X, T) :- Q(X, T).", set()),
        ("P(X, T) :- Q(X, T+0).", {("P", 1), ("Q", 1)}),
        ("P(X, T) :- Q(X, T).\nQ(X, T) :- R(X, T).\nR(X, T-1) :- S(X).", {("P", 1), ("Q", 1), ("R", 1)}),
        ("P(X, T) :- Q(X, T), R(X).\n#temporal P/2.", {("P", 1), ("Q", 1)}),
        ("#temporal P/2\n#rigid Q/2\nP(X, T) :- P(X, T), Q(a, b).", {("P", 1)}),
        ("#temporal P/1, Q/2.", {("P", 0), ("Q", 1)}),
        ("Alarm(T+1) :- Alarm(T).", {("Alarm", 0)}),
        ("P(X, T+1) :- P(X, T), Edge(X, Y).", {("P", 1)}),
    ],
)
def test_use_and_directives_say_which_predicates_are_temporal(text: str, expected: set[tuple[str, int]]) -> None:
    assert temporal(text) == expected


def test_facts_may_stand_among_the_rules() -> None:
    assert core(
        "Brst(a, B1, 3).\n".replace("B1", '"B1"') + "Succ(l1, 2).\nAlarm(0).\nGo.\n" + INTRUSION + "Alarm(T+1) :- Go."
    ) == (core(INTRUSION + "Alarm(T+1) :- Go.") + "Brst(a,B1)@3\nSucc(l1,2)@(-inf,inf)\nAlarm@0\nGo@(-inf,inf)\n")


def test_only_percent_starts_a_comment() -> None:
    assert core("% a\nP(T+1) :- P(T). % b") == "P :- Diamondminus[1,1] P.\n"
    assert [d.code for d in errors("P(T+1) :- P(T). # b")] == ["TL001"]


def test_another_time_variable_means_at_some_time() -> None:
    assert core("P(X, T+1) :- P(X, T), Q(X, Y, S), R(Y, Z, S+2).") == (
        "$g1(X) :- Q(X, Y), Diamondplus[2,2] R(Y, Z).\n"
        "$s1(X) :- Diamondminus[0,inf) $g1(X).\n"
        "$s1(X) :- Diamondplus[0,inf) $g1(X).\n"
        "P(X) :- Diamondminus[1,1] P(X), $s1(X).\n"
    )


def test_a_rigid_head_holds_always_if_its_body_holds_at_some_time() -> None:
    assert core("Ever(X) :- P(X, T), not P(X, T+1), Node(X).") == (
        "$g1(X) :- P(X), not Diamondplus[1,1] P(X).\n"
        "$s1(X) :- Diamondminus[0,inf) $g1(X).\n"
        "$s1(X) :- Diamondplus[0,inf) $g1(X).\n"
        "Ever(X) :- Node(X), $s1(X).\n"
    )


def test_a_number_is_a_time_of_its_own() -> None:
    assert core("#temporal P/2.\nP(X, 5) :- P(X, 3), not Q(X, 4), Q(X, T+1).") == (
        "$g1(X) :- Q(X), $at(4).\n"
        "$s1(X) :- Diamondminus[0,inf) $g1(X).\n"
        "$s1(X) :- Diamondplus[0,inf) $g1(X).\n"
        "$g2(X) :- P(X), $at(3).\n"
        "$s2(X) :- Diamondminus[0,inf) $g2(X).\n"
        "$s2(X) :- Diamondplus[0,inf) $g2(X).\n"
        "$g3(X) :- Diamondplus[1,1] Q(X).\n"
        "$s3(X) :- Diamondminus[0,inf) $g3(X).\n"
        "$s3(X) :- Diamondplus[0,inf) $g3(X).\n"
        "P(X) :- $at(5), not $s1(X), $s2(X), $s3(X).\n"
        "$at(3)@3\n$at(4)@4\n$at(5)@5\n"
    )


def test_a_constraint_speaks_of_the_first_time_in_its_body() -> None:
    assert core("Bottom :- P(X, T+1), not Q(X, T).") == "Bottom :- Diamondplus[1,1] P(X), not Q(X).\n"


def test_a_negated_literal_of_another_time_is_guarded_by_what_binds_it() -> None:
    assert core("P(X, T+1) :- P(X, T), Dom(Y), Q(S), not R(X, Y, S).\nQ(T+1) :- Q(T).") == (
        "$g1(X) :- P(X).\n"
        "$s1(X) :- Diamondminus[0,inf) $g1(X).\n"
        "$s1(X) :- Diamondplus[0,inf) $g1(X).\n"
        "$g2(X, Y) :- $s1(X), Dom(Y), Q, not R(X, Y).\n"
        "$s2(X, Y) :- Diamondminus[0,inf) $g2(X, Y).\n"
        "$s2(X, Y) :- Diamondplus[0,inf) $g2(X, Y).\n"
        "P(X) :- Diamondminus[1,1] P(X), Dom(Y), $s2(X, Y).\n"
        "Q :- Diamondminus[1,1] Q.\n"
    )


def test_the_time_of_a_head_ranges_over_all_integers() -> None:
    assert (
        core("P(X, T+1) :- Node(X), not P(X, T).\nQ(a, T+1).")
        == "P(X) :- Node(X), not Diamondminus[1,1] P(X).\nQ(a).\n"
    )


def test_auxiliary_rules_keep_the_text_of_the_users_rule_and_stay_hidden() -> None:
    program = parse("Ever(X) :- P(X, T+1).")
    assert {rule.text for rule in program.rules} == {"Ever(X) :- P(X, T+1)."}
    assert {rule.place.line for rule in program.rules if rule.place} == {1}
    assert program.predicates == {"P": 1, "Ever": 1}


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ("P(X, T+1) :- P(X, T).\nP(a, b).", "TL107", "2:6", "as r.tdl:1:6 shows"),
        ("P(X, T+1) :- P(X, T).\nP(a).", "TL107", "2:1", "with one at r.tdl:1:1"),
        ("#rigid P/2.\nP(X, T+1) :- Q(X).", "TL107", "2:6", "declared rigid at r.tdl:1:8"),
        ("#rigid P/2.\n#temporal P/2.", "TL107", "2:11", "both temporal and rigid"),
        ("P(X, T+1) :- P(X, T), E(T, X).", "TL108", "1:25", "used as an object in E"),
        ("P(X, T+1) :- P(X, T), T < 3.", "TL108", "1:23", "in a comparison"),
        ("P(T+1, X) :- Q(X).", "TL108", "1:3", "last argument"),
        ("Q(X) :- P(X, Y), E(Y, X).\nP(X, T+1) :- P(X, T).", "TL108", "1:20", "Y is a time, as r.tdl:1:14 shows"),
        ("P(X, T+1) :- Q(X), not R(X, S+1).", "TL109", "1:29", "time variable of its own"),
        ("Bottom :- not P(a, T+1).", "TL109", "1:20", "time variable of its own"),
        ("P(a, T+1) :- P(a, -1).", "TL110", "1:19", "natural number"),
        ("P(a, T+1) :- P(a, 1/2).", "TL110", "1:19", "natural number"),
        ("P(a, T+0.5) :- Q.", "TL110", "1:8", "whole number"),
        ("P(a, t+1) :- Q.", "TL110", "1:6", "not a variable"),
        ("P(X, T+1) :- Q(Y).", "TL101", "1:3", "X of the head"),
        ("P(T+1) :- not Q(X, T+1).", "TL101", "1:17", "negated literal"),
        ("P(a, T+1) :- P(a, b, T).", "TL102", "1:14", "3 arguments here but 2"),
        ("#tempral P/3.", "TL009", "1:1", "did you mean #temporal?"),
        ("#temporal P/0.", "TL009", "1:13", "at least one"),
        ("#temporal P.", "TL001", "1:12", "expected `/`"),
        ("P(X) :- Diamondminus[0,1] Q(X).", "TL004", "1:9", ".dmtl"),
        ("P(1+T) :- Q.", "TL001", "1:4", "unexpected `+`"),
    ],
)
def test_an_error_names_its_code_place_and_reason(text: str, code: str, place: str, words: str) -> None:
    (found,) = errors(text)
    assert (found.code, str(found.place)) == (code, f"r.tdl:{place}"), found.render()
    assert words in found.render()


def test_several_errors_come_at_once() -> None:
    found = errors("P(X, T+1) :- P(X, T), E(T, X).\nQ(X) :- R(.\n#rgid P/2.\nP(a, b).")
    assert [d.code for d in found] == ["TL108", "TL001", "TL009", "TL107"]


def test_a_long_chain_of_inference_is_quick() -> None:
    chain = "".join(f"P{i}(X, T) :- P{i + 1}(X, T).\n" for i in range(500))
    assert len(temporal(chain + "P500(X, T+1) :- P500(X, T).")) == 501


# The meaning of the translation, against the definition: a rule is applied to all its instances.

STEPS = range(-6, 7)
OBJECTS = ("a", "b")
OBJECT_TERMS = st.sampled_from([Variable("X"), Variable("Y"), Constant("a")])
TIMES = st.one_of(
    st.builds(TimeTerm, st.sampled_from(["T", "S"]), st.integers(-1, 1)),
    st.builds(TimeTerm, st.none(), st.integers(0, 2)),
)
INPUTS = {"P": 1, "Q": 2, "E": 1}


def atoms(predicate: str) -> st.SearchStrategy[TemporalAtom]:
    args = st.tuples(*[OBJECT_TERMS] * INPUTS[predicate])
    return st.builds(TemporalAtom, st.just(predicate), args, st.none() if predicate == "E" else TIMES)


@st.composite
def temporal_rules(draw: st.DrawFn) -> TemporalRule:
    """A safe rule for H, rigid or temporal, over two temporal predicates and a rigid one."""
    any_atom = st.sampled_from(sorted(INPUTS)).flatmap(atoms)
    positive = draw(st.lists(any_atom, min_size=1, max_size=3))
    bound = {term for atom in positive for term in atom.args if isinstance(term, Variable)}
    clocks = {atom.time.variable for atom in positive if atom.time and atom.time.variable}
    head_time = draw(st.none() | TIMES)
    if head_time and head_time.variable:
        clocks.add(head_time.variable)
    negative = [
        atom
        for atom in draw(st.lists(any_atom, max_size=2))
        if {term for term in atom.args if isinstance(term, Variable)} <= bound
        and (atom.time is None or atom.time.variable is None or atom.time.variable in clocks)
    ]
    args = tuple(sorted(bound, key=lambda variable: variable.name)[: draw(st.integers(0, 2))])
    literals = [*(TemporalLiteral(atom) for atom in positive), *(TemporalLiteral(atom, True) for atom in negative)]
    compared: list[TemporalLiteral | Comparison] = [*literals]
    if len(bound) == 2 and draw(st.booleans()):
        compared.append(Comparison("!=", Variable("X"), Variable("Y")))
    return TemporalRule(TemporalAtom("H", args, head_time), tuple(draw(st.permutations(compared))))


FACTS = st.sets(
    st.tuples(st.just("P"), st.tuples(st.sampled_from(OBJECTS)), st.integers(0, 2))
    | st.tuples(st.just("Q"), st.tuples(*[st.sampled_from(OBJECTS)] * 2), st.integers(0, 2))
    | st.tuples(st.just("E"), st.tuples(st.sampled_from(OBJECTS)), st.none()),
    max_size=7,
)
Ground = tuple[str, tuple[str, ...], int | None]


def consequences(rule: TemporalRule, facts: set[Ground]) -> set[tuple[tuple[str, ...], int | None]]:
    """The heads of all instances of a rule whose body holds; a rigid head has no time."""
    found: set[tuple[tuple[str, ...], int | None]] = set()
    for x, y, t, s in product(OBJECTS, OBJECTS, STEPS, STEPS):
        names, clocks = {"X": x, "Y": y}, {"T": t, "S": s}

        def ground(atom: TemporalAtom, names: dict[str, str] = names, clocks: dict[str, int] = clocks) -> Ground:
            args = tuple(names[a.name] if isinstance(a, Variable) else str(a.value) for a in atom.args)
            if atom.time is None:
                return atom.predicate, args, None
            return atom.predicate, args, atom.time.offset + clocks.get(atom.time.variable or "", 0)

        if all(
            (x != y) if isinstance(literal, Comparison) else (ground(literal.atom) in facts) != literal.negated
            for literal in rule.body
        ):
            assert rule.head is not None
            found.add(ground(rule.head)[1:])
    return found


Table = dict[tuple[str, tuple[Value, ...]], set[int]]


def holds(formula: Formula, t: int, binding: dict[str, Value], table: Table) -> bool:
    """Truth at t of the formulas that translations are made of. Outside STEPS all is as at its ends."""
    match formula:
        case Atom(predicate, args):
            values = tuple(binding[a.name] if isinstance(a, Variable) else a.value for a in args)
            return t in table.get((predicate, values), ())
        case Unary(op, interval, arg):
            sign = -1 if op is UnaryOp.DIAMOND_MINUS else 1
            distances = [int(interval.lo)] if interval.is_point() else range(len(STEPS))
            return any(holds(arg, t + sign * distance, binding, table) for distance in distances)
    raise AssertionError(formula)


def derive(rule: Rule, table: Table) -> None:
    """Add what one rule says, given everything that its body speaks of."""
    assert isinstance(rule.head, Atom)
    for x, y, t in product(OBJECTS, OBJECTS, STEPS):
        binding: dict[str, Value] = {"X": x, "Y": y}
        if all(
            holds(literal.formula, t, binding, table) != literal.negated if isinstance(literal, Literal) else x != y
            for literal in rule.body
        ):
            values = tuple(binding[a.name] if isinstance(a, Variable) else a.value for a in rule.head.args)
            table.setdefault((rule.head.predicate, values), set()).add(t)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(temporal_rules(), FACTS)
def test_the_translation_means_what_the_rule_says(rule: TemporalRule, facts: set[Ground]) -> None:
    rules, clocks = translate_to_mtl(TemporalProgram((rule,), (), frozenset(), frozenset()))
    assert diagnose_rules(expand_groups(rules)) == []
    table: Table = {}
    for name, args, time in facts:
        table.setdefault((name, args), set()).update(STEPS if time is None else [time])
    for clock in clocks:
        table[clock.predicate, clock.args] = {int(clock.interval.lo)}
    for translated in rules:
        derive(translated, table)
    said = consequences(rule, facts)
    inner = range(-3, 4)
    expected = {(args, t) for args, time in said for t in (inner if time is None else [time]) if t in inner}
    assert {(args, t) for (name, args), times in table.items() for t in times if name == "H" and t in inner} == expected

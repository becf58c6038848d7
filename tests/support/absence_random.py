"""Random programs with negation, and a comparison of sessions with all continuations of a stream."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import chain, combinations
from typing import Any

from completion_oracle import find_answers, find_facts_to_come
from hypothetical_oracle import Domain, Ground, parse_printed_fact
from hypothetical_random import Case, delay_of
from tidelog.hypothetical import Hypotheses
from tidelog.language.program import Program
from tidelog.language.tdl_parser import parse_query

PREDICATES = {"p": 1, "r": 1, "n": 1, "m": 0}
DOMAIN = Domain(("a", "b"), range(3), range(-3, 6))
#: An answer: the values of its variables.
Theta = tuple[tuple[str, Any], ...]
#: More continuations than 2 to the power of this are not tried.
MOST_TO_COME = 10


def random_absence_case(seed: int) -> Case:
    """Return a case in which a few facts support answers and others prevent them."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rng.choice([1, 1, 2])):
        body = [_literal(rng, rng.choice(["p", "p", "r"]), "X", [0, 0, 1])]
        if rng.random() < 0.3:
            body.append(_literal(rng, rng.choice("prm"), rng.choice(["X", "X", "a"]), [0, 1]))
        for _ in range(rng.choice([0, 1, 1, 2])):
            body.append("not " + _literal(rng, rng.choice(["n", "n", "m", "d", "p"]), "X", [0, 0, 1]))
        lines.append(f"q(X,{rng.choice(['T', 'T', 'T+1'])}) :- {', '.join(body)}.")
    if "d(" in "".join(lines):
        for _ in range(rng.choice([1, 2])):
            first = _literal(rng, "n", rng.choice(["X", "Y"]), [0, 0, 1])
            bodies = [[first, _literal(rng, rng.choice("rm"), rng.choice(["X", "Y"]), [0, 1])], [first]]
            body = rng.choice(bodies) + (["Y != X"] if "Y" in first and rng.random() < 0.3 else [])
            head = "X" if any("X" in part for part in body if "!=" not in part) else rng.choice(["a", "b"])
            lines.append(f"d({head},T) :- {', '.join(part for part in body if head == 'X' or '!=' not in part)}.")
    if rng.random() < 0.1:
        lines.append(f"n(a,{rng.randrange(2)}).")
    lines += [f"#temporal {name}/{arity + 1}." for name, arity in {**PREDICATES, "q": 1}.items()]
    delays = tuple(f"{name}={rng.choice([0, 1, 1, 2])}" for name in PREDICATES)
    arrivals = []
    for _ in range(rng.randrange(2, 9)):
        name = rng.choice(list(PREDICATES))
        fact = (
            f"{name}({rng.choice('ab')},{rng.choice([0, 0, 1, 2])})"
            if PREDICATES[name]
            else f"{name}({rng.choice([0, 0, 1, 2])})"
        )
        ground = parse_printed_fact(fact)
        arrivals.append((ground[2] + rng.randint(0, delay_of(ground, delays)), fact))
    query = rng.choice(["q(X,T)", "q(X,T)", "q(a,T)", "q(X,_)" if rng.random() < 0.3 else "q(X,0)"])
    return Case("\n".join(lines) + "\n", query, delays, tuple(sorted(arrivals, key=lambda pair: pair[0])))


def _literal(rng: random.Random, name: str, argument: str, offsets: list[int]) -> str:
    offset = rng.choice(offsets)
    time = f"T+{offset}" if offset else "T"
    return f"{name}({argument},{time})" if PREDICATES.get(name, 1) else f"{name}({time})"


def compare_with_continuations(case: Case) -> tuple[int, int]:
    """Compare every moment of a case with its continuations; return how many answers and possible ones there were."""
    program = Program.parse(case.program, syntax="tdl")
    assert program.temporal is not None
    query = parse_query(case.query, program.temporal)
    session = Hypotheses(program, case.query, delay=case.delays)
    used = set(re.findall(r"\b([prnm])\(", case.program))
    arrived: set[Ground] = set()
    given: set[Theta] = set()
    numbers = [0, 0]
    for tau in range(7):
        batch = [fact for arrival, fact in case.arrivals if arrival == tau]
        answers = list(session.push(tau, batch))
        if tau % 2:
            session = Hypotheses.load(session.save())
        arrived |= {parse_printed_fact(fact) for fact in batch}
        new = {tuple(sorted(answer.bindings.items())) for answer in answers}
        assert not new & given, (tau, "twice", str(case))
        given |= new
        numbers[0] += len(new)
        to_come = find_facts_to_come(program.temporal, arrived, partial(delay_of, delays=case.delays), tau, DOMAIN)
        to_come = [fact for fact in to_come if fact[0] in used]
        if len(to_come) > MOST_TO_COME or "_" in case.query:
            continue
        known = {fact for fact in arrived if fact[0] in used}
        ways = list(chain.from_iterable(combinations(to_come, n) for n in range(len(to_come) + 1)))
        found = {way: find_answers(program.temporal, query, known | set(way), DOMAIN) for way in ways}
        certain = set.intersection(*map(set, found.values()))
        possible = set().union(*found.values())
        # Answers near the end need facts beyond the times of the continuations.
        compared = {theta for theta in possible | given if dict(theta).get("T", 0) in (-1, 0)}
        assert given & compared == certain & compared, (tau, given, certain, str(case))
        listed = set()
        for entry in session.hypothetical():
            theta = tuple(sorted(entry.bindings.items()))
            if theta in compared:
                listed.add(theta)
                assert theta in possible - certain, (tau, entry, str(case))
                _check_hypotheses(entry.hypotheses, theta, found, (tau, entry, str(case)))
        numbers[1] += len(listed)
        if case.program.count("q(X,T") == 1:
            evidence = [fact for fact in known if fact[0] in "pr"]
            expected = {t for t in (possible - certain) & compared if _is_supported(case, t, evidence)}
            assert listed >= expected, (tau, "missing", expected - listed, str(case))
    return numbers[0], numbers[1]


def _check_hypotheses(
    hypotheses: Iterable[str], theta: Theta, found: Mapping[tuple[Ground, ...], Collection[Theta]], case: object
) -> None:
    """Check that an answer holds in all continuations that agree with its hypotheses, and that there is one."""
    if any("(" in text[4:] and text.startswith("not (") for text in hypotheses):
        return
    wanted = {parse_printed_fact(text) for text in hypotheses if not text.startswith("not ")}
    if any(str(arg)[0].isupper() for fact in wanted for arg in fact[1]):
        return
    unwanted = [text.removeprefix("not ") for text in hypotheses if text.startswith("not ")]
    agreeing = [way for way in found if wanted <= set(way) and not any(_matches(f, t) for f in way for t in unwanted)]
    assert agreeing, case
    assert all(theta in found[way] for way in agreeing), case


def _matches(fact: Ground, text: str) -> bool:
    name, args, time = parse_printed_fact(text)
    pairs = zip(args, fact[1], strict=False)
    return fact[0] == name and fact[2] == time and all(str(a)[0].isupper() or a == b for a, b in pairs)


def _is_supported(case: Case, theta: Theta, evidence: list[Ground]) -> bool:
    """Return whether a premise of the only rule has arrived for an answer."""
    rule = next(line for line in case.program.splitlines() if line.startswith("q("))
    head, _, body = rule.partition(" :- ")
    fixed = {"X": "a", "T": 0, **dict(theta)}
    time = int(str(fixed["T"])) - ("T+1" in head)
    for name, arg, offset in re.findall(r"(?<!not )\b([prm])\((?:(\w),)?T(?:\+(\d))?\)", body):
        args = () if name == "m" else (fixed["X"] if arg == "X" else arg,)
        if (name, args, time + int(offset or 0)) in evidence:
            return True
    return False

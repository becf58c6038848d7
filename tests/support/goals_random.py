"""Random questions to random programs: what is computed for the question alone is what all facts give, filtered.

The model of all facts is judged by the oracle in other suites; here it is computed with focusing switched off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

import tidelog as tl
from examine import ParsedCase, parse_case
from strategies import Case
from tidelog.engine.batch_problem import Problem
from tidelog.goals import fact_source, focused_problem
from tidelog.language.fact_text import format_value, quote
from tidelog.language.syntax import Fact, Value
from tidelog.proofs import asked_facts, explained_model, explanation
from tidelog.proofs.asked_facts import AskedFacts
from tidelog.proofs.explanation import explain_fact
from tidelog.timeline.interval import Interval, Time

#: Questions to each program.
QUESTIONS = 4


@contextmanager
def evaluating_everything() -> Iterator[None]:
    """Let questions be answered from all facts."""
    with patch("tidelog.batch.focus", lambda problem, *_: problem):
        yield


@contextmanager
def counting(seen: Counter[str], *, guards: bool) -> Iterator[None]:
    """Count the problems that are focused, guarded and given up; guard rules always or never."""
    focus = focused_problem.focus

    def count(problem: Problem, *question: Any) -> Problem:
        focused = focus(problem, *question)
        fewer = sum(map(len, focused.given.values())) < sum(map(len, problem.given.values()))
        seen["fewer facts" if fewer else "all facts"] += 1
        seen["guarded rules"] += focused.compiled is not problem.compiled
        return focused

    with patch("tidelog.batch.focus", count), patch.object(focused_problem, "MOST_KEPT", 1e9 if guards else -1.0):
        yield


def examine_goals(case: Case, number: int, seen: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with the answers to some questions; count what they were like."""
    given, rng = parse_case(case), Random(number)
    arities = {**given.program.predicates, **dict(given.data.relations.keys())}
    values = [*sorted({value for fact in case.facts for value in fact.args}, key=str), "unheard", Fraction(1)]
    for turn in range(QUESTIONS):
        name = rng.choice(sorted(arities))
        span = choose_span(rng, case.features.denominators) if rng.random() < 0.6 else None
        between = None if span is None else (span.lo, span.hi)

        def ask(text: str, between: tuple[Time, Time] | None = between) -> tl.Model:
            return tl.materialise(given.program, given.data, query=text, between=between, timeline=given.timeline)

        with evaluating_everything():
            everything = attempt(partial(ask, name))
        held = list(everything)[:20] if isinstance(everything, tl.Model) else []
        atom = rng.choice(held).args if held and rng.random() < 0.7 else rng.choices(values, k=arities[name])
        terms = [rng.choice("XY_") if rng.random() < 0.4 else format_term(value) for value in atom]
        with counting(seen, guards=turn % 2 == 0):
            query = f"{name}({','.join(terms)})" if terms else name
            yield from compare(query, everything, attempt(partial(ask, query)), terms, seen)
            interval = span or Interval.always()
            if held and rng.random() < 0.5:
                interval = rng.choice([fact.interval for fact in held])
            yield from examine_fact(given, Fact(name, tuple(atom), interval), seen)


def compare(query: str, everything: Any, found: Any, terms: list[str], seen: Counter[str]) -> Iterator[str]:
    """Yield how the answers to a query differ from those among everything that holds."""
    if is_refusal(everything):
        # What is refused, or cannot be decided, may be about facts that the question does not need.
        seen["refused"] += 1
    elif isinstance(everything, str) or isinstance(found, str):
        if everything != found:
            yield f"{query} gives {found}, not {everything}"
    else:
        expected = [fact for fact in everything if fits(terms, fact)]
        repeats = [repeat for repeat in everything.repeats if fits(terms, repeat.fact)]
        seen["answers"] += bool(expected or repeats)
        seen["answers for ever"] += bool(repeats)
        if list(found) != expected or list(found.repeats) != repeats:
            yield f"{query} gives {found}, not {expected} {repeats}"


def examine_fact(given: ParsedCase, fact: Fact, seen: Counter[str]) -> Iterator[str]:
    """Yield how the answer about a fact differs from that of an evaluation of everything, or lacks a proof."""
    ask = partial(given.entails, fact)
    with evaluating_everything():
        everything = attempt(ask)
    found = attempt(ask)
    seen[f"a fact: {everything}" if everything in ("yes", "no") else "a fact: unknown"] += 1
    if found != everything and everything != "unknown" and not is_refusal(everything):
        yield f"{fact} is {found}, not {everything}"
    if everything == "yes":
        explanation = attempt(lambda: tl.explain(given.program, given.data, fact, timeline=given.timeline))
        if not isinstance(explanation, tl.proofs.Explanation) or explanation.answer.value not in ("yes", "unknown"):
            yield f"{fact} holds, but its explanation is {explanation}"
    if everything == "no":
        yield from examine_absence(given, fact, seen)


def examine_absence(given: ParsedCase, fact: Fact, seen: Counter[str]) -> Iterator[str]:
    """Yield how the reasons why a fact does not hold differ from those that the whole model gives."""
    ask = partial(tl.explain, given.program, given.data, fact, timeline=given.timeline)
    with evaluating_everything():
        everything = attempt(ask)
    if not isinstance(everything, tl.proofs.Explanation) or everything.answer.value != "no":
        return
    for chunks in ((), (1, 2, 10)):
        with asking(seen, chunks):
            found = attempt(ask)
        if str(found) != str(everything) or found.as_json() != everything.as_json():
            yield f"{fact} does not hold because\n{found}\nnot because\n{everything}"


@contextmanager
def asking(seen: Counter[str], chunks: tuple[int, ...]) -> Iterator[None]:
    """Let why-not ask for facts, however few there are, and count what it finds; in chunks, with a tight limit."""

    def count(explainer: tl.proofs.Explainer, *question: Any) -> tl.proofs.Explanation:
        found = explain_fact(explainer, *question)
        seen["absences from facts asked for"] += isinstance(explainer.model.index, AskedFacts)
        return found

    limits = patch.multiple(fact_source, MOST_FACTS=0.7 if chunks else 1e9, FACTS_IN_ANY_CASE=1)
    few = patch.object(explained_model, "FEWEST_FACTS", 0)
    with limits, few, patch.object(asked_facts, "CHUNKS", chunks), patch.object(explanation, "explain_fact", count):
        yield


def is_refusal(answer: Any) -> bool:
    """Return whether an answer is that there is none."""
    return isinstance(answer, str) and (answer == "Undecided" or "[TL311]" in answer or "[TL312]" in answer)


def format_term(value: Value) -> str:
    """Format a constant as rules have it, where a name may need quotes that a fact does without."""
    return quote(value) if isinstance(value, str) else format_value(value)


def choose_span(rng: Random, denominators: tuple[int, ...]) -> Interval:
    """Choose an interval of time."""
    lo, hi = sorted(Fraction(rng.randint(-8, 40), rng.choice(denominators)) for _ in "ab")
    return Interval(lo, hi, lo == hi or rng.random() < 0.7, lo == hi or rng.random() < 0.7)


def attempt(ask: Callable[[], Any]) -> Any:
    """Return an answer, or the error as text."""
    try:
        return ask()
    except tl.errors.Undecided:
        return "Undecided"
    except tl.TidelogError as error:
        return str(error)


def fits(terms: list[str], fact: Fact) -> bool:
    """Return whether a fact fits the arguments of a query: constants, `_` and variables, which are equal if named."""
    bound: dict[str, Value] = {}
    for term, value in zip(terms, fact.args, strict=True):
        if term == "_":
            continue
        if term in ("X", "Y"):
            if bound.setdefault(term, value) != value:
                return False
        elif term != format_term(value):
            return False
    return True

"""Random programs that fall apart by a key, with random histories: most corrections concern some keys only."""

from __future__ import annotations

import random
from fractions import Fraction
from unittest.mock import patch

import tidelog as tl
from corrected_streams import Arrival, History, Operation, complaints, draw_operation, format_history, shift
from strategies import Case, Features
from tidelog.language.syntax import Fact
from tidelog.streaming import joined_steps, query_evaluation
from tidelog.timeline.interval import Interval

#: Rules by the predicate that they derive; all are local by their first variable.
RULES = {
    "A": ("A(X) :- P(X).", "A(X) :- Diamondminus[0,2] P(X).", "A(X) :- R(X,Y), not Diamondminus[0,1] Q(X)."),
    "B": (
        "B(X) :- A(X), not Q(X).",
        "B(X) :- Boxminus[0,1] A(X).",
        "B(X) :- A(X), not Diamondminus[0,3] R(X,a).",
        "B(X) :- A(X) Since[0,4] P(X).",
        "B(X) :- P(X) Since[0,3] Q(X).",
        "B(X) :- P(X), not Diamondplus[0,2] Q(X).",
        "B(X) :- R(X,Y), Shared(Y).",
        "B(X) :- A(X), not On.",
    ),
    "C": (
        "C(X) :- B(X).",
        "C(X) :- Diamondminus[1,2] C(X), not Q(X).",
        "C(X) :- B(X), Diamondminus[0,inf) P(X).",
        "C(X) :- Q(X), Diamondplus[0,2] A(X).",
        "C(X) :- Boxminus[0,2] C(X).",
        "C(X) :- A(X), R(X,Y), B(X).",
    ),
    "E": (
        "E(X,Y) :- R(X,Y), not B(X).",
        "E(X,Y) :- E(X,Z), Diamondminus[0,1] R(X,Y).",
        "E(X,Y) :- Diamondminus[0,2] R(X,Y), C(X).",
    ),
}
NUMBERS = (
    "N(X) :- K = count[0,3]{ P(X) }, K >= 2.",
    "N(X) :- K = count[0,4]{ R(X,Y) }, K >= 2, not Q(X).",
    "N(X) :- K = sum[0,3]{ Y : V(X,Y) }, K > 3.",
    "N(X) :- K = avg[0,5]{ Y : V(X,Y) }, K < 3.",
    "N(X) :- L = last[0,4]{ Y : V(X,Y) }, L = 2.",
    "N(X) :- K = max[0,4]{ Y : V(X,Y) }, K > 3.",
    "N(X) :- P(X), K = count[1,3]{ R(X,Y) }, K > 0.",
    "N(X) :- V(X,Y), Y > 2.",
    "C(X) :- Diamondminus[0,2] N(X).",
    "A(X) :- N(X), not Diamondminus[0,2] Q(X).",
)


def keyed_case(seed: int, *, numeric: bool, integer: bool) -> Case:
    """Draw a program and facts."""
    choices = random.Random(seed)
    texts = [rule for rules in RULES.values() for rule in choices.sample(rules, choices.randint(1, 2))]
    if numeric:
        texts += choices.sample(NUMBERS, choices.randint(1, 3))
        texts = [text for text in texts if "Diamondplus" not in text and "C(X) :- Diamondminus[1,2] C" not in text]
        texts = [text for text in texts if not text.startswith("C(X) :- Boxminus")]
    program = tl.Program.parse("\n".join(dict.fromkeys(texts)))
    features = Features(integer=integer, denominators=(1,) if integer else (1, 2))
    facts = [_draw_fact(choices) for _ in range(choices.randint(4, 14))]
    return Case(program.rules, tuple(facts), features)


def _draw_fact(choices: random.Random) -> Fact:
    name = choices.choice(["P", "P", "Q", "R", "R", "V", "Shared", "On"])
    key, other = choices.choice("abcd"), choices.choice("ab")
    value = Fraction(choices.randint(1, 4), choices.choice([1, 1, 2]))
    others: dict[str, tuple[str | Fraction, ...]] = {"R": (key, other), "V": (key, value), "Shared": (other,), "On": ()}
    args = others.get(name, (key,))
    start = Fraction(choices.randint(0, 12))
    length = choices.choice([0, 0, 0, 1, 3])
    closed = length == 0 or choices.random() < 0.8
    return Fact(name, args, Interval(start, start + length, closed, True))


def draw_keyed_history(case: Case, seed: int) -> History:
    """Draw a history: many facts in few calls, so that several steps with late facts are evaluated at once."""
    choices = random.Random(seed)
    heads = sorted({rule.head.predicate for rule in case.rules if hasattr(rule.head, "predicate")})
    tick = Fraction(1, choices.choice(case.features.denominators))
    delay = choices.choice([Fraction(0), Fraction(0), tick, Fraction(2)])
    length = delay + choices.choice([tick, Fraction(3), Fraction(6), Fraction(20)])
    pool = [shift(fact, n * choices.choice([tick, Fraction(2), Fraction(5)])) for fact in case.facts for n in range(3)]
    history: list[Arrival] = []
    inserted: list[Fact] = []
    clock = Fraction(0)
    deletes = choices.choice([0.0, 0.0, 0.1, 0.3])
    for _ in range(choices.randint(2, 6)):
        bulk = choices.random() < 0.75
        operations: list[Operation] = []
        for _ in range(choices.choice([1, 3, 8, 15]) if bulk else choices.choice([0, 1, 2])):
            clock += choices.choice([Fraction(0), Fraction(0), tick, Fraction(1)])
            operation = draw_operation(choices, pool, inserted, clock, length)
            if operation.deletes and choices.random() > deletes:
                continue
            operations.append(operation)
            clock = clock if operation.deletes else max(clock, operation.start)
        over = not operations and choices.random() < 0.5
        history.append(Arrival(None if bulk else clock, tuple(operations), over, choices.random() < 0.2))
    step = choices.choice([None, None, Fraction(2)])
    query = choices.choice(heads)
    saves = choices.random() < 0.2
    return History(query, case.features.timeline, length, delay, None, step, (), tuple(history), saves)


def examine_keyed_corrections(seed: int, *, numeric: bool) -> str:
    """What is wrong with the corrections of a random program that falls apart by a key; an empty text if nothing is.

    In half of the runs, constants get new numbers as often as possible; in others, few records are taken in one step.
    """
    case = keyed_case(seed, numeric=numeric, integer=seed % 3 == 0)
    history = draw_keyed_history(case, seed)
    names = -(10**6) if seed % 2 else query_evaluation.MANY_NAMES
    words = (8, 16, 64, query_evaluation.WORDS_PER_STEP)[seed // 2 % 4]
    try:
        with patch.object(query_evaluation, "MANY_NAMES", names), patch.object(joined_steps, "WORDS_PER_STEP", words):
            return next(complaints(tl.Program(case.rules, case.features.timeline), history), "")
    except tl.TidelogError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} <= {"TL311", "TL312", "TL313"}:
            return ""
        raise


def describe_keyed_history(found: str, seed: int, *, numeric: bool) -> str:
    """Show a failing history."""
    case = keyed_case(seed, numeric=numeric, integer=seed % 3 == 0)
    return format_history(found, case, draw_keyed_history(case, seed), seed)

"""Regular expressions, plainly: their containment by derivatives, and their translation to queries (theorem 18).

`F(t)` marks where a word begins and `Ax(t)` that x is its letter at t; the query derives `G(t)` if a word of the
language begins at some F and ends right before t. Expressions are text in Polish notation kept as nested tuples.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

#: ("0",), ("1",), ("a",), ("b",), ("|", e, e), (".", e, e), ("+", e)
Expression = tuple[Any, ...]
#: A state of the automaton: the sequences of expressions of which one has to be matched by what follows.
State = frozenset[tuple[Expression, ...]]

EMPTY: Expression = ("0",)
EPSILON: Expression = ("1",)
LETTERS = "ab"


def random_expression(random: Random, depth: int) -> Expression:
    kind = random.choice(
        ["a", "b", "a", "b", "1", "0"] if depth == 0 or random.random() < 0.15 else ["|", ".", ".", "+"]
    )
    if kind in ("|", "."):
        return (kind, random_expression(random, depth - 1), random_expression(random, depth - 1))
    return (kind, random_expression(random, depth - 1)) if kind == "+" else (kind,)


def accepts_nothing(e: Expression) -> bool:
    """Whether the empty word is in the language."""
    match e:
        case ("|", a, b):
            return accepts_nothing(a) or accepts_nothing(b)
        case (".", a, b):
            return accepts_nothing(a) and accepts_nothing(b)
        case ("+", a):
            return accepts_nothing(a)
        case _:
            return e == EPSILON


def derivative(states: State, letter: str) -> State:
    """The sequences of expressions that remain after a letter: an automaton whose states are sets of sequences."""
    return frozenset(rest for sequence in states for rest in _after(sequence, letter))


def _after(sequence: tuple[Expression, ...], letter: str) -> set[tuple[Expression, ...]]:
    if not sequence:
        return set()
    head, tail = sequence[0], sequence[1:]
    found: set[tuple[Expression, ...]] = set()
    match head:
        case ("|", a, b):
            found |= _after((a, *tail), letter) | _after((b, *tail), letter)
        case (".", a, b):
            found |= _after((a, b, *tail), letter)
        case ("+", a):
            found |= {(*rest, *tail) for rest in _after((a,), letter)}
            found |= {(*rest, head, *tail) for rest in _after((a,), letter)}
            if accepts_nothing(a):
                found |= _after(tail, letter)
        case (name,):
            if name == letter:
                found.add(tail)
            elif head == EPSILON:
                found |= _after(tail, letter)
    return found


def final(states: State) -> bool:
    return any(all(map(accepts_nothing, sequence)) for sequence in states)


def included(first: Expression, second: Expression) -> str | None:
    """A shortest word of the first language that is not in the second; None if there is none."""
    start: tuple[State, State] = frozenset({(first,)}), frozenset({(second,)})
    seen, waiting = {start}, deque([(start, "")])
    while waiting:
        (left, right), word = waiting.popleft()
        if final(left) and not final(right):
            return word
        for letter in LETTERS:
            following = derivative(left, letter), derivative(right, letter)
            if following not in seen:
                seen.add(following)
                waiting.append((following, word + letter))
    return None


def translated(e: Expression, prefix: str) -> list[str]:
    """The rules of a query for an expression; predicates other than F, G and letters begin with the prefix."""
    rules: list[str] = []
    _translate(e, "F", "G", prefix, rules)
    return rules


def _translate(e: Expression, begin: str, end: str, prefix: str, rules: list[str]) -> None:
    number = len(rules)
    inner = [f"{kind}{prefix}{number}x{i}" for i in (1, 2) for kind in ("F", "G")]
    match e:
        case ("|", a, b):
            rules += [f"{inner[0]}(T) :- {begin}(T).", f"{inner[2]}(T) :- {begin}(T)."]
            rules += [f"{end}(T) :- {inner[1]}(T).", f"{end}(T) :- {inner[3]}(T)."]
            _translate(a, inner[0], inner[1], prefix, rules)
            _translate(b, inner[2], inner[3], prefix, rules)
        case (".", a, b):
            rules += [
                f"{inner[0]}(T) :- {begin}(T).",
                f"{inner[2]}(T) :- {inner[1]}(T).",
                f"{end}(T) :- {inner[3]}(T).",
            ]
            _translate(a, inner[0], inner[1], prefix, rules)
            _translate(b, inner[2], inner[3], prefix, rules)
        case ("+", a):
            rules += [
                f"{inner[0]}(T) :- {begin}(T).",
                f"{inner[0]}(T) :- {inner[1]}(T).",
                f"{end}(T) :- {inner[1]}(T).",
            ]
            _translate(a, inner[0], inner[1], prefix, rules)
        case ("1",):
            rules.append(f"{end}(T) :- {begin}(T).")
        case ("0",):
            rules.append(f"{end}(T) :- {end}(T).")  # derived by a rule, but never
        case (letter,):
            rules.append(f"{end}(T+1) :- {begin}(T), A{letter}(T).")

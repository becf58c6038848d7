"""Regular expressions: their containment by derivatives, and their translation to queries (theorem 18 of the paper).

`F(t)` marks the beginning of a word, and `Ax(t)` says that x is its letter at t. The query derives `G(t)` if a word of
the language begins at some F and ends right before t. Expressions are nested tuples in Polish notation.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

#: ("0",), ("1",), ("a",), ("b",), ("|", e, e), (".", e, e), ("+", e)
Expression = tuple[Any, ...]
#: A state of the automaton: sequences of expressions; the rest of the word has to match one of them.
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


def accepts_empty_word(e: Expression) -> bool:
    """Return whether the empty word is in the language."""
    match e:
        case ("|", a, b):
            return accepts_empty_word(a) or accepts_empty_word(b)
        case (".", a, b):
            return accepts_empty_word(a) and accepts_empty_word(b)
        case ("+", a):
            return accepts_empty_word(a)
        case _:
            return e == EPSILON


def derivative(states: State, letter: str) -> State:
    """Return the sequences of expressions that remain after a letter: the successor of a state."""
    return frozenset(rest for sequence in states for rest in _remaining(sequence, letter))


def _remaining(sequence: tuple[Expression, ...], letter: str) -> set[tuple[Expression, ...]]:
    if not sequence:
        return set()
    head, tail = sequence[0], sequence[1:]
    found: set[tuple[Expression, ...]] = set()
    match head:
        case ("|", a, b):
            found |= _remaining((a, *tail), letter) | _remaining((b, *tail), letter)
        case (".", a, b):
            found |= _remaining((a, b, *tail), letter)
        case ("+", a):
            found |= {(*rest, *tail) for rest in _remaining((a,), letter)}
            found |= {(*rest, head, *tail) for rest in _remaining((a,), letter)}
            if accepts_empty_word(a):
                found |= _remaining(tail, letter)
        case (name,):
            if name == letter:
                found.add(tail)
            elif head == EPSILON:
                found |= _remaining(tail, letter)
    return found


def is_final(states: State) -> bool:
    return any(all(map(accepts_empty_word, sequence)) for sequence in states)


def find_counterexample(first: Expression, second: Expression) -> str | None:
    """Return a shortest word of the first language that is not in the second, or None if there is none."""
    start: tuple[State, State] = frozenset({(first,)}), frozenset({(second,)})
    seen, waiting = {start}, deque([(start, "")])
    while waiting:
        (left, right), word = waiting.popleft()
        if is_final(left) and not is_final(right):
            return word
        for letter in LETTERS:
            following = derivative(left, letter), derivative(right, letter)
            if following not in seen:
                seen.add(following)
                waiting.append((following, word + letter))
    return None


def translate_expression(e: Expression, prefix: str) -> list[str]:
    """Return the rules of a query for an expression; predicates besides F, G and the letters contain the prefix."""
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

"""Match texts with patterns in time linear in the text.

A pattern is compiled to instructions (Thompson 1968), and the sets of instructions that a text may have reached are the
states of an automaton that is built as far as texts need it.
"""

from __future__ import annotations

from functools import lru_cache

from tidelog.language.patterns import WORD, Chars, Choice, Pattern, Position, Repeat, Sequence, parse_pattern

#: The most instructions that all states together may list before the automaton is built anew.
MAX_LISTED = 1_000_000

_MATCH = -1


def matches_whole(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text. Raises `PatternError` if it is not a pattern of RE2.

    >>> matches_whole("a(b|c)*", "abcb"), matches_whole("b", "abcb")
    (True, False)
    """
    return _compile(pattern).matches(text)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> _Automaton:
    return _Automaton(parse_pattern(pattern))


class _State:
    """Instructions that are reached after some text, and the last character's kind; `after` are states that follow."""

    __slots__ = ("after", "final", "kind", "reached")

    def __init__(self, reached: frozenset[int], kind: str) -> None:
        self.reached, self.kind = reached, kind
        self.after: dict[str, _State] = {}
        self.final: bool | None = None


class _Automaton:
    """The instructions of a pattern, and the states that texts have led to so far.

    An instruction is a set of characters with the instruction after it, or a tuple of instructions to go on with, the
    first of which may depend on a position.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.instructions: list[tuple[Chars | Position | None, tuple[int, ...]]] = []
        self.first = self.emit(pattern, _MATCH)
        self.listed = 0
        self.start = _State(frozenset({self.first}), "begin")
        self.states = {(self.start.reached, self.start.kind): self.start}

    def add(self, condition: Chars | Position | None, *following: int) -> int:
        self.instructions.append((condition, following))
        return len(self.instructions) - 1

    def emit(self, pattern: Pattern, following: int) -> int:
        """Emit the instructions of a pattern, before those that follow; return where it begins."""
        match pattern:
            case Chars() | Position():
                return self.add(pattern, following)
            case Sequence(parts):
                for part in reversed(parts):
                    following = self.emit(part, following)
                return following
            case Choice(parts):
                return self.add(None, *(self.emit(part, following) for part in parts))
            case Repeat(part, least, most):
                if most is None:
                    loop = self.add(None)
                    self.instructions[loop] = (None, (self.emit(part, loop), following))
                    following = loop
                else:
                    end = following
                    for _ in range(most - least):
                        following = self.add(None, self.emit(part, following), end)
                for _ in range(least):
                    following = self.emit(part, following)
                return following

    def matches(self, text: str) -> bool:
        state = self.start
        for char in text:
            following = state.after.get(char)
            state = self.step(state, char) if following is None else following
            if not state.reached:
                return False
        if state.final is None:
            state.final = _MATCH in self.closure(state, "end")
        return state.final

    def step(self, state: _State, char: str) -> _State:
        """Return the state after one more character, and remember it."""
        kind = "newline" if char == "\n" else "word" if char in WORD else "other"
        reached = frozenset(
            following
            for at in self.closure(state, kind)
            if at != _MATCH
            for condition, rest in (self.instructions[at],)
            if isinstance(condition, Chars) and char in condition
            for following in rest
        )
        self.listed += 1 + len(reached)
        if self.listed > MAX_LISTED:
            self.listed = 0
            self.states = {}
            self.start.after.clear()
            state.after.clear()
        following = self.states.setdefault((reached, kind), _State(reached, kind))
        state.after[char] = following
        return following

    def closure(self, state: _State, kind: str) -> set[int]:
        """Return the instructions reached without reading, between the last character and one of a kind."""
        found = set(state.reached)
        pending = list(found)
        while pending:
            at = pending.pop()
            if at == _MATCH:
                continue
            condition, following = self.instructions[at]
            if isinstance(condition, Chars) or (condition is not None and not _holds(condition, state.kind, kind)):
                continue
            for each in following:
                if each not in found:
                    found.add(each)
                    pending.append(each)
        return found


def _holds(position: Position, before: str, after: str) -> bool:
    match position.kind:
        case "begin":
            return before == "begin"
        case "end":
            return after == "end"
        case "begin of line":
            return before in ("begin", "newline")
        case "end of line":
            return after in ("end", "newline")
        case "boundary":
            return (before == "word") != (after == "word")
        case _:
            return (before == "word") == (after == "word")

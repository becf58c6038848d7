"""Parse regular expressions in the syntax of RE2, for the text test `matches`.

RE2 has no backreferences and no lookaround, so a match takes time linear in the text. A pattern becomes a small tree;
`tidelog.numeric.pattern_matching` runs it. All of RE2's syntax is read except the names of scripts (`\\p{Greek}`) and
`\\C`, a single byte. See https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from functools import cache, lru_cache

#: RE2's own limit.
MAX_REPETITIONS = 1000
MAX_DEPTH = 100
#: The most sets of characters in a pattern, with repetitions written out.
MAX_SIZE = 10_000


class PatternError(Exception):
    """A text that is not a regular expression of RE2; the message says why."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set: in one of the ranges, with one of the properties, or a member of another set."""

    ranges: tuple[tuple[str, str], ...] = ()
    #: General categories, such as `Lu` or `L`.
    categories: tuple[str, ...] = ()
    sets: tuple[Chars, ...] = ()
    negated: bool = False
    #: Whether upper and lower case are the same.
    folded: bool = False

    def __contains__(self, char: str) -> bool:
        variants = find_case_variants(char) if self.folded else (char,)
        return self.negated != any(
            any(lo <= variant <= hi for lo, hi in self.ranges)
            or any(unicodedata.category(variant).startswith(name) for name in self.categories)
            or any(variant in inner for inner in self.sets)
            for variant in variants
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A condition on a position: `begin` or `end` of the text or of a `line`, a `boundary` of a word or not."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after another."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some parts."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that is repeated from `least` to `most` times; without `most`, there is no upper limit."""

    part: Pattern
    least: int
    most: int | None


Pattern = Chars | Position | Sequence | Choice | Repeat

_DIGIT = Chars((("0", "9"),))
_SPACE = Chars((("\t", "\n"), ("\f", "\r"), (" ", " ")))
WORD = Chars((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": WORD}
_ASCII = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "ascii": "\x00\x7f",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "word": "09AZ__az",
    "xdigit": "09AFaf",
}
_ESCAPED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_CATEGORIES = {
    *("L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
    *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
    *("Cc", "Cf", "Co"),
}
_POSITIONS = {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}
_REPETITIONS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@cache
def _case_orbits() -> dict[str, tuple[str, ...]]:
    """Map each letter with a case to the letters that differ from it only in case."""
    groups: dict[str, list[str]] = {}
    for char in map(chr, range(0x1E944)):
        folded = char.casefold() if len(char.casefold()) == 1 else char.lower()
        if folded != char and len(folded) == 1:
            groups.setdefault(folded, [folded]).append(char)
    return {char: tuple(group) for group in groups.values() for char in group}


def find_case_variants(char: str) -> tuple[str, ...]:
    """Return the characters that differ from one only in case, itself included."""
    return _case_orbits().get(char, (char,))


@lru_cache(maxsize=256)
def parse_pattern(text: str) -> Pattern:
    """Parse a regular expression. Raises `PatternError` if it is not one of RE2.

    >>> parse_pattern("^|$")
    Choice(parts=(Position(kind='begin'), Position(kind='end')))
    """
    parser = _Parser(text)
    pattern = parser.choice(0)
    if parser.at < len(text):
        raise PatternError("a `)` without a `(`")
    if _measure(pattern) > MAX_SIZE:
        raise PatternError("its repetitions are too large")
    return pattern


def _measure(pattern: Pattern) -> int:
    match pattern:
        case Sequence(parts) | Choice(parts):
            return 1 + sum(map(_measure, parts))
        case Repeat(part, least, most):
            return 1 + _measure(part) * max(least, most or 1)
        case _:
            return 1


@dataclass(frozen=True)
class _Flags:
    folded: bool = False
    lines: bool = False
    dot_all: bool = False


class _Parser:
    """A recursive-descent parser; `at` is its position in the text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.flags = _Flags()

    def looking_at(self, part: str) -> bool:
        return self.text.startswith(part, self.at)

    def skip(self, part: str) -> bool:
        found = self.looking_at(part)
        self.at += len(part) * found
        return found

    def take(self) -> str:
        if self.at >= len(self.text):
            raise PatternError("it ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def until(self, end: str, what: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise PatternError(f"{what} is not closed")
        found, self.at = self.text[self.at : stop], stop + len(end)
        return found

    def choice(self, depth: int) -> Pattern:
        if depth > MAX_DEPTH:
            raise PatternError(f"more than {MAX_DEPTH} brackets inside each other")
        flags = self.flags
        parts = [self.sequence(depth)]
        while self.skip("|"):
            parts.append(self.sequence(depth))
        self.flags = flags
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self, depth: int) -> Pattern:
        parts: list[Pattern] = []
        repeated = False
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            times = self.repetition()
            if times is None:
                parts += self.item(depth)
                repeated = False
            elif repeated or not parts:
                problem = "a repetition of a repetition" if parts else "a repetition of nothing"
                raise PatternError(f"{problem} at character {self.at}")
            else:
                parts[-1] = Repeat(parts[-1], *times)
                repeated = True
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repetition(self) -> tuple[int, int | None] | None:
        """Take `*`, `+`, `?` or `{2,5}`; whether it is lazy makes no difference to a match of the whole text."""
        times = _REPETITIONS.get(self.text[self.at])
        if times is not None:
            self.at += 1
        elif self.looking_at("{"):
            inside, closed, _ = self.text[self.at + 1 :].partition("}")
            least, comma, most = inside.partition(",")
            if not closed or not _is_natural(least) or not (most == "" or _is_natural(most)):
                return None
            times = (int(least[:5]), None if comma and not most else int(most[:5] or least[:5]))
            if max(times[0], times[1] or 0) > MAX_REPETITIONS or (times[1] is not None and times[1] < times[0]):
                raise PatternError(f"the repetition {{{inside}}}")
            self.at += len(inside) + 2
        if times is not None:
            self.skip("?")
        return times

    def item(self, depth: int) -> list[Pattern]:
        """Take what a repetition may follow; nothing for flags."""
        char = self.take()
        if char == "(":
            return self.group(depth)
        if char == "[":
            return [self.bracket()]
        if char == ".":
            newline = Chars((("\n", "\n"),), negated=True)
            return [Chars(negated=True) if self.flags.dot_all else newline]
        if char in "^$":
            side = "begin" if char == "^" else "end"
            return [Position(f"{side} of line" if self.flags.lines else side)]
        if char != "\\":
            return [self.literal(char)]
        if self.skip("Q"):
            stop = self.text.find("\\E", self.at)
            quoted = self.text[self.at : stop if stop >= 0 else len(self.text)]
            self.at += len(quoted) + 2 * (stop >= 0)
            return [self.literal(each) for each in quoted]
        for letter, kind in _POSITIONS.items():
            if self.skip(letter):
                return [Position(kind)]
        return [self.escape()]

    def literal(self, char: str) -> Chars:
        return Chars(((char, char),), folded=self.flags.folded)

    def group(self, depth: int) -> list[Pattern]:
        flags = self.flags
        if self.skip("?"):
            if self.skip("P<") or (self.looking_at("<") and not self.text.startswith(("<=", "<!"), self.at)):
                self.skip("<")
                name = self.until(">", "the name of a group")
                if not name or not (name.replace("_", "a").isalnum()):
                    raise PatternError(f"`{name}` as the name of a group")
            elif self.text.startswith(("=", "!", "<=", "<!"), self.at):
                raise PatternError("lookaround")
            elif not self.read_flags():
                return []
        found = self.choice(depth + 1)
        self.flags = flags
        if not self.skip(")"):
            raise PatternError("a `(` is not closed")
        return [found]

    def read_flags(self) -> bool:
        """Take `i:` of `(?i:...)` or `i)` of `(?i)`; return whether a group follows."""
        on = True
        flags = self.flags
        while True:
            char = self.take()
            if char in ":)":
                self.flags = flags
                return char == ":"
            if char == "-" and on:
                on = False
            elif char == "i":
                flags = replace(flags, folded=on)
            elif char == "m":
                flags = replace(flags, lines=on)
            elif char == "s":
                flags = replace(flags, dot_all=on)
            elif char != "U":
                raise PatternError(f"`(?{char}`")

    def bracket(self) -> Chars:
        """Take the rest of a set in square brackets."""
        negated = self.skip("^")
        ranges: list[tuple[str, str]] = []
        sets: list[Chars] = []
        first = True
        while first or not self.looking_at("]"):
            first = False
            if self.at >= len(self.text):
                raise PatternError("a `[` is not closed")
            if self.skip("[:"):
                sets.append(replace(_named_set(self.until(":]", "a `[:`")), folded=self.flags.folded))
                continue
            low = self.member()
            if isinstance(low, Chars):
                sets.append(low)
            elif self.looking_at("-") and not self.text.startswith("-]", self.at):
                self.at += 1
                high = self.member()
                if isinstance(high, Chars) or high < low:
                    raise PatternError(f"the range from {low}")
                ranges.append((low, high))
            else:
                ranges.append((low, low))
        self.at += 1
        return Chars(tuple(ranges), sets=tuple(sets), negated=negated, folded=self.flags.folded)

    def member(self) -> str | Chars:
        char = self.take()
        if char != "\\":
            return char
        found = self.escape()
        plain = len(found.ranges) == 1 and not found.negated and found.ranges[0][0] == found.ranges[0][1]
        return found.ranges[0][0] if plain else found

    def escape(self) -> Chars:
        """Take what follows a backslash."""
        char = self.take()
        if char.lower() in _PERL:
            return replace(_PERL[char.lower()], negated=char.isupper(), folded=self.flags.folded)
        if char in "pP":
            name = self.until("}", "`\\p{`") if self.skip("{") else self.take()
            return self.property(name.removeprefix("^"), (char == "P") != name.startswith("^"))
        if char in _ESCAPED:
            return self.literal(_ESCAPED[char])
        if char == "x":
            digits = self.until("}", "`\\x{`") if self.skip("{") else self.take() + self.take()
            if not digits or set(digits.lower()) - set("0123456789abcdef") or int(digits[:9], 16) > 0x10FFFF:
                raise PatternError(f"the code \\x{digits}")
            return self.literal(chr(int(digits, 16)))
        if char in "01234567":
            more = 0
            while more < 2 and self.text[self.at + more : self.at + more + 1] in tuple("01234567"):
                more += 1
            if char != "0" and not more:
                raise PatternError("a backreference")
            self.at += more
            return self.literal(chr(int(char + self.text[self.at - more : self.at], 8)))
        if char == "k":
            raise PatternError("a backreference")
        if char.isalnum() and char.isascii():
            raise PatternError(f"the escape \\{char}")
        return self.literal(char)

    def property(self, name: str, negated: bool) -> Chars:
        if name == "Any":
            return Chars(negated=not negated)
        if name == "C":
            return Chars(categories=("Cc", "Cf", "Co"), negated=negated, folded=self.flags.folded)
        if name not in _CATEGORIES:
            raise PatternError(f"the property {name}: only general categories such as \\p{{Lu}} are known")
        return Chars(categories=(name,), negated=negated, folded=self.flags.folded)


def _is_natural(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _named_set(name: str) -> Chars:
    ends = _ASCII.get(name.removeprefix("^"))
    if ends is None:
        raise PatternError(f"the set [:{name}:]")
    return Chars(tuple(zip(ends[::2], ends[1::2], strict=True)), negated=name.startswith("^"))

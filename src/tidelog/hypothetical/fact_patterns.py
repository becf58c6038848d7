"""Settings by fact pattern: for all facts, for a predicate, or for facts that match: `5`, `Temp=5`, `Temp(wt4,_)=5`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Value
from tidelog.language.wording import plural, suggest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pattern(Generic[T]):
    """An amount for facts of a predicate (None: of any) with these arguments, not counting the time (None: any value).

    The fingerprint of a saved session contains the `repr` of patterns, so names of class and fields must not change."""

    predicate: str | None
    args: tuple[Value | None, ...] | None
    amount: T

    def matches(self, predicate: str, args: Sequence[object]) -> bool:
        """Return whether a fact has the predicate and the arguments of the pattern."""
        if self.predicate not in (predicate, None):
            return False
        return self.args is None or all(a is None or a == b for a, b in zip(self.args, args, strict=True))

    @property
    def specificity(self) -> int:
        """How specific the pattern is: the number of constants; less for a bare predicate, least for none."""
        if self.args is None:
            return -1 if self.predicate else -2
        return sum(a is not None for a in self.args)


def most_specific(patterns: Iterable[Pattern[T]], predicate: str, args: Sequence[object]) -> list[T]:
    """Return the values of the most specific patterns that match a fact."""
    matching = [p for p in patterns if p.matches(predicate, args)]
    most = max((p.specificity for p in matching), default=0)
    return [p.amount for p in matching if p.specificity == most]


def parse_patterns(
    texts: Iterable[str],
    predicates: Mapping[str, int],
    read: Callable[[str], T | None],
    code: str,
    kind: str,
    law: str | None = None,
) -> tuple[Pattern[T], ...]:
    """Parse patterns; `read` parses the text after the equals sign and returns None if it is not of the `kind`.

    `predicates` are the predicates that may occur, with their arities not counting time. Errors have the given code and
    law, by default the law of the code."""
    found: dict[tuple[str | None, object], Pattern[T]] = {}
    errors: list[Diagnostic] = []
    for text in texts:
        name, equals, written = text.rpartition("=")
        value = read(written.strip())
        if value is None:
            errors.append(
                Diagnostic(code, f"{f'`{text}`: ' if equals else ''}`{written.strip()}` is not {kind}", law=law)
            )
            continue
        pattern = _parse_pattern(name.strip(), value, predicates) if equals else Pattern(None, None, value)
        if isinstance(pattern, str):
            errors.append(Diagnostic(code, f"`{text}`: {pattern}", law=law, help=_suggest_predicate(name, predicates)))
        elif found.setdefault((pattern.predicate, pattern.args), pattern) is not pattern:
            errors.append(Diagnostic(code, f"`{text}`: this pattern is given twice", law=law))
    if errors:
        raise TidelogError(errors)
    return tuple(found.values())


def to_texts(setting: float | str | Iterable[str] | Mapping[str, object]) -> list[str]:
    """Return a setting as pattern texts; it may be a number for all predicates, a mapping, or one or several texts."""
    if isinstance(setting, int | float | str):
        return [str(setting)]
    if isinstance(setting, Mapping):
        return [f"{pattern}={value}" for pattern, value in setting.items()]
    return list(setting)


def _parse_pattern(name: str, value: T, predicates: Mapping[str, int]) -> Pattern[T] | str:
    """Return the pattern, or a message on what is wrong with it."""
    try:
        fact, _ = parse_fact(name)
    except TidelogError as error:
        return error.diagnostics[0].message
    arity = predicates.get(fact.predicate)
    if arity is None:
        return f"the query awaits no facts of {fact.predicate}"
    if "(" not in name:
        return Pattern(fact.predicate, None, value)
    args = tuple(None if arg == "_" else arg for arg in fact.args)
    if len(args) == arity + 1 and args[-1] is None:
        args = args[:-1]
    if len(args) != arity:
        return f"{fact.predicate} has {plural(arity, 'argument')} before its time, not {len(args)}"
    return Pattern(fact.predicate, args, value)


def _suggest_predicate(name: str, predicates: Mapping[str, int]) -> str:
    close = suggest(name.partition("(")[0].strip(), predicates)
    return f"did you mean {close}?" if close else f"it awaits {', '.join(sorted(predicates)) or 'nothing'}"

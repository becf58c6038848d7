"""What is said of predicates, and of the facts of a predicate that fit a pattern: `5`, `Temp=5`, `Temp(wt4,_)=5`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.facts import parse_fact
from tidelog.language.syntax import Value

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pattern(Generic[T]):
    """Facts of a predicate (None: of any) with these arguments, without the time; an argument of None fits all."""

    predicate: str | None
    args: tuple[Value | None, ...] | None
    amount: T

    def fits(self, predicate: str, args: Sequence[object]) -> bool:
        if self.predicate not in (predicate, None):
            return False
        return self.args is None or all(a is None or a == b for a, b in zip(self.args, args, strict=True))

    @property
    def weight(self) -> int:
        """The more constants, the more special; a predicate alone is less, and none at all is least."""
        if self.args is None:
            return -1 if self.predicate else -2
        return sum(a is not None for a in self.args)


def most_special(patterns: Iterable[Pattern[T]], predicate: str, args: Sequence[object]) -> list[T]:
    """What the patterns say that fit a fact and have the most constants of all that do."""
    fitting = [p for p in patterns if p.fits(predicate, args)]
    most = max((p.weight for p in fitting), default=0)
    return [p.amount for p in fitting if p.weight == most]


def parse_patterns(
    texts: Iterable[str], predicates: Mapping[str, int], read: Callable[[str], T | None], code: str, law: str
) -> tuple[Pattern[T], ...]:
    """Patterns with what `read` makes of the text behind the equals sign. `predicates` are those that may be named,
    with their arity without time; errors have the given code and law."""
    found: dict[tuple[str | None, object], Pattern[T]] = {}
    errors: list[Diagnostic] = []
    for text in texts:
        name, equals, written = text.rpartition("=")
        amount = read(written.strip())
        if amount is None:
            errors.append(Diagnostic(code, f"`{text}`: `{written.strip()}` cannot be read", law=law))
            continue
        pattern = _pattern(name.strip(), amount, predicates) if equals else Pattern(None, None, amount)
        if isinstance(pattern, str):
            errors.append(Diagnostic(code, f"`{text}`: {pattern}", law=law, help=_help(name, predicates)))
        elif found.setdefault((pattern.predicate, pattern.args), pattern) is not pattern:
            errors.append(Diagnostic(code, f"`{text}`: this was said before", law=law))
    if errors:
        raise TidelogError(errors)
    return tuple(found.values())


def texts(given: float | str | Iterable[str] | Mapping[str, object]) -> list[str]:
    """What a caller may say, as a number for all predicates, by predicate or pattern, or as one or several texts."""
    if isinstance(given, int | float | str):
        return [str(given)]
    if isinstance(given, Mapping):
        return [f"{name}={amount}" for name, amount in given.items()]
    return list(given)


def _pattern(name: str, amount: T, predicates: Mapping[str, int]) -> Pattern[T] | str:
    """The pattern, or what is wrong with it."""
    try:
        fact, _ = parse_fact(name)
    except TidelogError as error:
        return error.diagnostics[0].message
    arity = predicates.get(fact.predicate)
    if arity is None:
        return f"the query awaits no facts of {fact.predicate}"
    if "(" not in name:
        return Pattern(fact.predicate, None, amount)
    args = tuple(None if arg == "_" else arg for arg in fact.args)
    if len(args) == arity + 1 and args[-1] is None:
        args = args[:-1]
    if len(args) != arity:
        return f"{fact.predicate} has {arity} argument{'' if arity == 1 else 's'} before its time, not {len(args)}"
    return Pattern(fact.predicate, args, amount)


def _help(name: str, predicates: Mapping[str, int]) -> str:
    close = suggest(name.partition("(")[0].strip(), predicates)
    return f"did you mean {close}?" if close else f"it awaits {', '.join(sorted(predicates)) or 'nothing'}"

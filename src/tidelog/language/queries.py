"""What `materialise` is asked for: a predicate, or an atom such as `Hot(t1, X)` that says which of its facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.parser import parse_rules
from tidelog.language.syntax import Atom, Constant, Fact, Term, Variable
from tidelog.language.time_arguments import read_dates
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.language.program import Program


@dataclass(frozen=True, slots=True)
class Query:
    """The facts of a predicate: all of them, or those whose arguments fit `terms`.

    A constant fits itself and a variable fits anything, but the same thing wherever it occurs.
    """

    predicate: str
    terms: tuple[Term, ...] | None = None

    @staticmethod
    def of(fact: Fact) -> Query:
        """Return the query for the atom of a fact."""
        return Query(fact.predicate, tuple(Constant(value) for value in fact.args))


def parse_query(program: Program, text: str) -> Query:
    """Parse a query: the name of a predicate, or an atom as rules have them.

    >>> from tidelog.language.program import Program
    >>> parse_query(Program.parse("Hot(X, Y) :- High(X, Y)."), 'Hot("T1", X)').terms
    (Constant(value='T1'), Variable(name='X', anonymous=False))
    """
    if "(" not in text:
        return Query(text)
    rules, errors = parse_rules(text, "<query>")
    if errors:
        raise TidelogError(errors)
    atom = rules[0].head if len(rules) == 1 and not rules[0].body else None
    # A group is an atom, too, but nothing that could be asked for.
    if type(atom) is not Atom:
        help = "write a predicate, Hot, or one atom with constants and variables, Hot(t1, X)"
        raise TidelogError(Diagnostic("TL001", f"`{text}` is not a query", help=help))
    terms = _without_time(program, atom)
    # Arguments that are times may be written as dates, as in facts.
    values = tuple(term.value if isinstance(term, Constant) else "" for term in terms)
    dated = program.time_arguments.get(atom.predicate, ())
    read = read_dates(Fact(atom.predicate, values, Interval.always()), dated).args
    return Query(
        atom.predicate, tuple(Constant(v) if isinstance(t, Constant) else t for t, v in zip(terms, read, strict=True))
    )


def _without_time(program: Program, atom: Atom) -> tuple[Term, ...]:
    """Return the arguments of an atom without the time of temporal Datalog, which has to be a variable of its own."""
    arity = len(atom.args) - 1
    if program.temporal is None or (atom.predicate, arity) not in program.temporal.temporal:
        return atom.args
    time = atom.args[-1]
    if not isinstance(time, Variable) or time in atom.args[:-1]:
        help = "write a variable of its own, as in Q(a,T), and choose times with --between LO,HI"
        raise TidelogError(Diagnostic("TL001", f"the last argument of {atom.predicate} is its time", help=help))
    return atom.args[:-1]

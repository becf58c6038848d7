"""Every diagnostic code of tidelog with its one-line title; a code, once given, keeps its meaning.

TL0xx: syntax of rules. TL1xx: what rules mean (safety, arity, ranges, heads). TL2xx: data. TL3xx: reasoning.
TL4xx: streaming. TL6xx: windows. TL7xx: hypothetical answers. TL8xx: pipelines on Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CODES: dict[str, str] = {
    # Syntax
    "TL001": "something else was expected here",
    "TL002": "a character that the language does not have",
    "TL003": "a quote is not closed",
    "TL004": "no such operator",
    "TL005": "an operator without a range",
    "TL006": "Since and Until in a chain, without brackets",
    "TL007": "a number that cannot be read",
    "TL008": "too many operators in one literal",
    "TL009": "no such directive",
    "TL010": "a file that cannot be read",
    # Meaning
    "TL101": "an unsafe variable",
    "TL102": "a predicate with two arities",
    "TL103": "an operator that a head may not carry",
    "TL104": "a negative range",
    "TL105": "an empty range",
    "TL106": "a range that spans past and future",
    "TL107": "a predicate used both with and without time",
    "TL108": "a time variable used as an object",
    "TL109": "a negated literal with a time of its own",
    "TL110": "a time argument that is not a time",
    # Data
    "TL201": "a fact that cannot be read",
    "TL202": "a timestamp that cannot be read",
    "TL203": "an empty interval",
    "TL204": "a timestamp that leaves 63 bits",
    "TL205": "a table whose columns are no fact's",
    "TL206": "a cell of a table that cannot be read",
    "TL207": "a data file that cannot be read",
    # Reasoning
    "TL301": "a negation in a cycle",
    "TL302": "a query for a predicate that does not occur",
    "TL303": "a constraint is violated",
    "TL304": "a model that could not be decided",
    "TL305": "an empty stretch of time",
    "TL306": "something that the timeline does not have",
    "TL307": "a length of time that cannot be read",
    "TL308": "a look-ahead without a bound",
    "TL309": "a way of memory that cannot be had",
    "TL321": "stable models over the rationals",
    "TL322": "a timed fact without a beginning, for stable models",
    "TL323": "stable models that could not be decided",
    "TL324": "stable models without clingo",
    "TL325": "a time that is no integer, for stable models",
    "TL326": "a stream that leaves no stable model",
    "TL327": "a program that stable models of a stream cannot follow",
    "TL328": "a fact that comes too late for the stable models of a stream",
    # Streaming
    "TL401": "a saved state that is damaged, or none",
    "TL402": "a saved state of another version",
    "TL403": "a saved state of another program",
    "TL405": "a port at which no page can be shown",
    # Pipelines on Spark
    "TL801": "Spark, or a Java for it, that cannot be had",
    "TL802": "a pipeline file that is not TOML",
    "TL803": "a key that a pipeline file does not have",
    "TL804": "a key that is missing",
    "TL805": "a value of the wrong kind",
    "TL806": "a source that cannot be read",
    "TL807": "an SQL expression that does not fit its sources",
    "TL808": "a predicate that the rules do not have",
    "TL809": "a checkpoint of another pipeline",
    "TL810": "a job that failed",
    # Hypothetical answers
    "TL701": "a resolution that does not end",
    "TL702": "something that stands in the way of hypothetical answers",
    "TL703": "a delay that cannot be read",
    "TL704": "an arrival that cannot be read",
    "TL705": "a query with too many ways to an answer",
    "TL706": "a probability that cannot be read",
    # Tests of rules
    "TL901": "a test file that cannot be read, or none",
    # Windows
    "TL601": "a rule that is not forward-propagating",
    "TL602": "objects that cannot be read, or none",
    "TL603": "a window that is none",
    "TL604": "two queries that cannot be compared",
    "TL605": "clingo is not installed",
    "TL606": "a fact outside of what a window was proved for",
}


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was probably meant to be, or None; letter case counts for little.

    >>> suggest("Diamonminus", ["Diamondminus", "Boxminus"])
    'Diamondminus'
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates if candidate != name}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return by_lower[close[0]] if close else None

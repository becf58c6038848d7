"""Load the rules and data that a command names, and warn of what looks like a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidelog.cli.bad_rows import open_bad_rows
from tidelog.cli.options import require_single_stdin
from tidelog.cli.schema_option import current_schema
from tidelog.cli.warning_output import show_warnings

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program


def load_program_and_data(
    rules: str,
    data: Sequence[str],
    queries: Iterable[str] | None = None,
    strict: bool = False,
    complete: bool = True,
) -> tuple[Program, Dataset]:
    """Load the program and the facts of a reasoning command; show warnings about them, or refuse them if `strict`.

    Unless the facts are `complete`, predicates without any are no cause for a warning.
    """
    from tidelog.data.dataset import Dataset
    from tidelog.data.input_warnings import find_warnings
    from tidelog.language.program import Program

    require_single_stdin(rules, *data)
    program, dataset = Program.load(rules), Dataset.load(*data, schema=current_schema(rules), bad_rows=open_bad_rows())
    program.require_times()
    show_warnings(find_warnings(program, dataset, queries, complete), strict)
    return program, dataset


def find_fact_predicate(fact: str) -> str:
    """Return the predicate of a fact that is not parsed yet.

    >>> find_fact_predicate("Hot(t1)@7"), find_fact_predicate("Alarm@3")
    ('Hot', 'Alarm')
    """
    return fact.strip().partition("@")[0].partition("(")[0].strip()

"""Find warnings about the tests of one file, taken together: a fact that one test lacks may be given in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.analysis.program_warnings import find_data_warnings, find_negated_predicates, find_program_warnings
from tidelog.data.dataset import Dataset
from tidelog.data.schema import find_schema_file
from tidelog.errors import Diagnostic
from tidelog.language.wording import suggest
from tidelog.rule_tests.case_reader import RuleTest


def find_test_warnings(tests: Sequence[RuleTest], strict: bool | None = None) -> tuple[Diagnostic, ...]:
    """Find the warnings about the tests of a file; those that are refused have the severity `error`.

    Warnings about predicates are refused unless `strict` is false, those about variables only if it is true.
    """
    if not tests:
        return ()
    program = tests[0].program
    program.require_times()
    given = {fact.predicate for test in tests for fact in test.given}
    files = sorted({file for test in tests for file in test.files})
    if files:
        given |= {name for name, _ in Dataset.load(*files, schema=find_schema_file(program.source)).relations}
    queries = {name for test in tests for name in test.queries}
    # That facts of a negated predicate are missing may be the point of a test, unless its name looks misspelt.
    absent = {name for name in find_negated_predicates(program) if suggest(name, {*given, *program.predicates}) is None}
    style, names = find_program_warnings(program), find_data_warnings(program, given | absent, queries)
    judged = [(warning, bool(strict)) for warning in style] + [(warning, strict is not False) for warning in names]
    return tuple(replace(warning, severity="error") if refused else warning for warning, refused in judged)

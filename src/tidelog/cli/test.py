"""`tidelog test`: run tests of rules, which are files beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import json_option
from tidelog.cli.signals import interruptible
from tidelog.cli.warning_output import show_warnings
from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    from tidelog.rule_tests.case_runner import Outcome


@click.command(short_help="Run tests of rules.")
@click.argument("paths", metavar="[FILE_OR_FOLDER]...", nargs=-1)
@click.option(
    "--strict/--no-strict",
    default=None,
    help="Treat all warnings as errors, or none. Default: those about predicates without rules or readers.",
)
@json_option
def test(paths: tuple[str, ...], strict: bool | None, as_json: bool) -> int:
    """Run tests of rules: files whose names end with .test, in the given folders (default: the current one). Each
    states facts, and what must and must not follow from them. Every test runs in batch and, if its rules allow it, as a
    stream. Failures are printed with the reason.

    Exit code 0 if all tests pass, 1 if one fails, 2 if a file cannot be read.

    \b
    Example:
      echo 'Hot(X) :- Boxminus[0,2] High(X).' > hot.dmtl
      echo 'test: two minutes of high readings' > hot.test
      echo 'given:' >> hot.test
      echo '  High(t1)@[0,9]' >> hot.test
      echo 'expect only:' >> hot.test
      echo '  Hot(t1)@[2,9]' >> hot.test
      tidelog test hot.test
    """
    from tidelog.rule_tests.case_reader import SUFFIX, find_test_files, read_tests
    from tidelog.rule_tests.case_runner import run_test
    from tidelog.rule_tests.case_warnings import find_test_warnings
    from tidelog.rule_tests.outcome_text import format_outcome, format_summary

    files = find_test_files(paths or (".",))
    if not files:
        where = ", ".join(paths) or "this folder"
        help = f"give tests a file whose name ends with {SUFFIX}, beside the rules"
        raise TidelogError(Diagnostic("TL901", f"there are no tests in {where}", help=help))
    by_file = [read_tests(name) for name in files]
    warnings = [warning for tests in by_file for warning in find_test_warnings(tests, strict)]
    show_warnings([warning for warning in warnings if warning.severity == "error"], strict=True)
    show_warnings(warnings, strict=False)
    tests = [test for tests in by_file for test in tests]
    outcomes: list[Outcome] = []
    for test in tests:
        with interruptible():
            outcomes.append(run_test(test))
        if not as_json:
            for line in format_outcome(outcomes[-1]):
                click.echo(line)
    failed = sum(not outcome.passed for outcome in outcomes)
    if as_json:
        objects = [outcome.as_json() for outcome in outcomes]
        summary = {"passed": len(outcomes) - failed, "failed": failed, "tests": objects}
        click.echo(json.dumps(summary, ensure_ascii=False))
    else:
        click.echo(format_summary(len(outcomes), failed))
    return 1 if failed else 0

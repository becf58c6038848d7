"""`tidelog test`: tests of rules, in files beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import killable
from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    from tidelog.rule_tests.running import Outcome


@click.command(short_help="Run tests of rules.")
@click.argument("paths", metavar="[FILE_OR_FOLDER]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def test(paths: tuple[str, ...], as_json: bool) -> int:
    """Run tests of rules: files whose names end with .test, in the folders given (here, unless told). Each says which
    facts are given, and what must follow from them and what must not. Every test runs in batch and, where its rules
    can, as a stream. What is wrong is shown with the reason.

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
    from tidelog.rule_tests.reading import SUFFIX, read_tests, test_files
    from tidelog.rule_tests.running import run

    files = test_files(paths or (".",))
    if not files:
        where = ", ".join(paths) or "this folder"
        help = f"give tests a file whose name ends with {SUFFIX}, beside the rules"
        raise TidelogError(Diagnostic("TL901", f"there are no tests in {where}", help=help))
    tests = [found for name in files for found in read_tests(name)]
    outcomes: list[Outcome] = []
    for one in tests:
        with killable():
            outcomes.append(run(one))
        if not as_json:
            for line in _lines(outcomes[-1]):
                click.echo(line)
    failed = sum(not outcome.passed for outcome in outcomes)
    if as_json:
        done = [outcome.as_json() for outcome in outcomes]
        summary = {"passed": len(outcomes) - failed, "failed": failed, "tests": done}
        click.echo(json.dumps(summary, ensure_ascii=False))
    else:
        click.echo(_summary(outcomes, failed))
    return 1 if failed else 0


def _lines(outcome: Outcome) -> Iterator[str]:
    from tidelog.language.facts import format_fact

    test = outcome.test
    how = "" if outcome.streamed else f" (in batch only{': ' + outcome.note if outcome.note else ''})"
    yield f"{'ok  ' if outcome.passed else 'FAIL'} {test.source}:{test.line} {test.name}{how}"
    for wrong in outcome.wrong:
        sign = "- expected, but missing" if wrong.missing else "+ not expected, but there"
        where = " in the stream" if wrong.how == "stream" else ""
        yield f"     {sign}{where}: {format_fact(wrong.fact, test.dates)}"
        for line in wrong.reason.splitlines():
            yield f"       {line}"


def _summary(outcomes: list[Outcome], failed: int) -> str:
    count = len(outcomes)
    word = "test" if count == 1 else "tests"
    return f"{count} {word} passed" if not failed else f"{failed} of {count} {word} failed"

"""`tidelog entails`: say whether a fact follows: yes, no, or unknown."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from tidelog.cli.bad_rows import bad_rows_option
from tidelog.cli.options import (
    ANSWER_EXIT_CODES,
    data_argument,
    json_option,
    rules_argument,
    strict_option,
    timeline_option,
)
from tidelog.cli.program_input import find_fact_predicate, load_program_and_data
from tidelog.cli.schema_option import schema_option
from tidelog.cli.signals import interruptible
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName


@click.command(short_help="Say whether a fact follows.")
@rules_argument
@data_argument
@click.argument("fact", metavar="FACT")
@timeline_option
@bad_rows_option
@schema_option
@json_option
@strict_option
def entails(
    rules: str, data: tuple[str, ...], fact: str, timeline: TimelineName | None, as_json: bool, strict: bool
) -> int:
    """Say whether FACT follows from RULES and DATA at every point of its interval: `yes` (exit code 0), `no` (exit
    code 1), or `unknown` (exit code 3) if that cannot be decided.

    \b
    Example:
      echo 'A(X) :- Diamondminus[1,1] A(X).' > rules.dmtl
      echo 'A(a)@0' | tidelog entails rules.dmtl - 'A(a)@1000000'
    """
    from tidelog.batch import decide
    from tidelog.data.time_units import check_asked_times

    program, dataset = load_program_and_data(rules, data, [find_fact_predicate(fact)], strict)
    show_warnings(program.find_question_warnings(fact), strict)
    asked = program.to_fact(fact).interval
    check_asked_times(dataset, fact, asked.lo, asked.hi)
    with interruptible():
        found, reason = decide(program, dataset, fact, timeline=timeline)
    answer = found.value
    if reason is not None:
        show_warnings([replace(reason, severity="warning")], strict=False)
    click.echo(json.dumps({"fact": fact, "answer": answer}, ensure_ascii=False) if as_json else answer)
    return ANSWER_EXIT_CODES[answer]

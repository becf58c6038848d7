"""`tidelog explain`: print the proof of a fact, or why it does not hold."""

from __future__ import annotations

import json

import click

from tidelog.cli.bad_rows import bad_rows_option, open_bad_rows
from tidelog.cli.options import (
    ANSWER_EXIT_CODES,
    data_argument,
    json_option,
    require_single_stdin,
    rules_argument,
    strict_option,
    timeline_option,
)
from tidelog.cli.program_input import find_fact_predicate
from tidelog.cli.schema_option import current_schema, schema_option
from tidelog.cli.signals import interruptible
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName


@click.command(short_help="Say why a fact holds, or why not.")
@rules_argument
@data_argument
@click.argument("fact", metavar="FACT")
@timeline_option
@bad_rows_option
@schema_option
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Show N levels of the proof. Default: all levels.")
@json_option
@strict_option
def explain(
    rules: str,
    data: tuple[str, ...],
    fact: str,
    timeline: TimelineName | None,
    depth: int | None,
    as_json: bool,
    strict: bool,
) -> int:
    """Say why FACT follows from RULES and DATA, as a tree: each line is a fact with the rule that derives it, and below
    it are the facts that this rule needs. If it does not follow, print for each rule that could derive it the first
    condition that fails, and when and for which constants that condition would have held.

    DATA may have deletions: what they take back does not count, and the last lines say which change made answers
    appear or disappear.

    Exit code 0 if the fact holds, 1 if it does not, 3 if that cannot be decided.

    \b
    Example:
      echo 'Hot(X) :- Diamondminus[0,5] High(X).' > rules.dmtl
      echo 'High(t1)@3' > data.facts
      tidelog explain rules.dmtl data.facts 'Hot(t1)@7'
      tidelog explain rules.dmtl data.facts 'Hot(t1)@9' || echo "no: exit code $?"
    """
    from tidelog.data.dataset import Dataset
    from tidelog.data.deletions import has_deletions, remove_deleted
    from tidelog.data.input_warnings import find_warnings
    from tidelog.data.time_units import TimeUnits, check_asked_times
    from tidelog.language.program import Program
    from tidelog.proofs.explanation import explain as find_explanation
    from tidelog.streaming.fact_log import explain_history

    require_single_stdin(rules, *data)
    program = Program.load(rules)
    program.require_times()
    schema = current_schema(rules)
    if len(data) > 1 and "-" not in data:
        # Loaded one by one, so that the explanation can say which file a fact comes from.
        sources = [(name, Dataset.load(name, schema=schema, bad_rows=open_bad_rows())) for name in data]
        units = TimeUnits()
        for name, facts in sources:
            units.add(facts.symbols, facts.as_columns(), name)
        dataset = sources[0][1]
        for _, more in sources[1:]:
            dataset |= more
    else:
        dataset, sources = Dataset.load(*data, schema=schema, bad_rows=open_bad_rows()), []
    history = None
    if has_deletions(dataset.relations):
        history = Dataset.load(*data, ordered=True, schema=schema) if "-" not in data else dataset
        dataset = Dataset.from_facts(list(remove_deleted(dataset)))
        dataset.dates = history.dates
    given = dataset if history is None else history
    show_warnings(find_warnings(program, given, [find_fact_predicate(fact)]), strict)
    show_warnings(program.find_question_warnings(fact), strict)
    asked = program.to_fact(fact).interval
    check_asked_times(dataset, fact, asked.lo, asked.hi)
    with interruptible():
        if history is None:
            explanation = find_explanation(program, dataset, fact, timeline=timeline, depth=depth, sources=sources)
        else:
            explanation = explain_history(program, history, fact, timeline, depth)
    if as_json:
        columns = (
            {name: schema.column_names(name) for name in program.predicates if schema.column_names(name)}
            if schema
            else {}
        )
        click.echo(
            json.dumps({**explanation.as_json(), **({"columns": columns} if columns else {})}, ensure_ascii=False)
        )
    else:
        columns_text = schema.describe_columns(program.predicates) if schema else ""
        click.echo(f"{explanation}{f'% columns: {columns_text}' if columns_text else ''}".rstrip("\n"))
    return ANSWER_EXIT_CODES[explanation.answer.value]

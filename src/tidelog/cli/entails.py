"""`tidelog entails`: yes, no, or unknown."""

from __future__ import annotations

import json

import click

from tidelog.cli.options import UNDECIDED, data_argument, killable, load, rules_argument, timeline_option

_EXIT = {"yes": 0, "no": 1, "unknown": UNDECIDED}


@click.command(short_help="Say whether a fact follows.")
@rules_argument
@data_argument
@click.argument("fact", metavar="FACT")
@timeline_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def entails(rules: str, data: tuple[str, ...], fact: str, timeline: str | None, as_json: bool) -> int:
    """Say whether FACT follows from RULES and DATA at every point of its interval: `yes` (exit code 0), `no` (exit
    code 1), or `unknown` (exit code 3) where that cannot be decided.

    \b
    Example:
      echo 'A(X) :- Diamondminus[1,1] A(X).' > rules.dmtl
      echo 'A(a)@0' | tidelog entails rules.dmtl - 'A(a)@1000000'
    """
    from tidelog.reasoning import entails as decide

    program, dataset = load(rules, data)
    with killable():
        answer = decide(program, dataset, fact, timeline=timeline).value
    click.echo(json.dumps({"fact": fact, "answer": answer}, ensure_ascii=False) if as_json else answer)
    return _EXIT[answer]

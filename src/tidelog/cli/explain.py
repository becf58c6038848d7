"""`tidelog explain`: the proof of a fact, or why it does not hold."""

from __future__ import annotations

import json

import click

from tidelog.cli.options import UNDECIDED, data_argument, killable, load, rules_argument, timeline_option

_EXIT = {"yes": 0, "no": 1, "unknown": UNDECIDED}


@click.command(short_help="Say why a fact holds, or why not.")
@rules_argument
@data_argument
@click.argument("fact", metavar="FACT")
@timeline_option
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Show N levels of the proof. Default: all of it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(
    rules: str, data: tuple[str, ...], fact: str, timeline: str | None, depth: int | None, as_json: bool
) -> int:
    """Say why FACT follows from RULES and DATA, as a tree: each line is a fact with the rule that derives it, and below
    it the facts that this rule needs. Or say why it does not follow: for each rule that could derive it the first
    condition that fails, and when and for whom it would have held.

    Exit code 0 where the fact holds, 1 where it does not, 3 where that cannot be decided.

    \b
    Example:
      echo 'Hot(X) :- Diamondminus[0,5] High(X).' > rules.dmtl
      echo 'High(t1)@3' > data.facts
      tidelog explain rules.dmtl data.facts 'Hot(t1)@7'
    """
    from tidelog.data.dataset import Dataset
    from tidelog.proofs.explanation import explain as find

    if len(data) > 1 and "-" not in data:
        program, _ = load(rules, ())
        sources = [(name, Dataset.load(name)) for name in data]
        dataset = sources[0][1]
        for _, more in sources[1:]:
            dataset |= more
    else:
        program, dataset = load(rules, data)
        sources = []
    with killable():
        explanation = find(program, dataset, fact, timeline=timeline, depth=depth, sources=sources)
    text = json.dumps(explanation.as_json(), ensure_ascii=False) + "\n" if as_json else str(explanation)
    click.echo(text, nl=False)
    return _EXIT[explanation.answer.value]

"""`tidelog state`: print what a saved state holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.options import json_option
from tidelog.language.hidden_predicates import is_hidden

if TYPE_CHECKING:
    from numpy.typing import NDArray


@click.command(short_help="Print the contents of a saved state.")
@click.argument("file", metavar="FILE")
@json_option
def state(file: str, as_json: bool) -> None:
    """Print the contents of a state that `tidelog stream --state FILE` saved: the rules, the query, the time that the
    stream has reached, and the number of facts of each predicate.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' > rules.dmtl
      echo 'B(a)@5' | tidelog stream rules.dmtl --query A --input - --state a.state
      tidelog state a.state
    """
    from tidelog.language.file_errors import read_input
    from tidelog.streaming.state_format import unpack

    data = read_input(file)
    meta, arrays = unpack(data, "<stdin>" if file == "-" else file)
    summary = {**_summarise(meta, file, len(data)), "corrections": _summarise_corrections(meta, arrays)}
    click.echo(json.dumps(summary, ensure_ascii=False) if as_json else _format_summary(summary))


def _summarise(meta: dict[str, Any], file: str, size: int) -> dict[str, Any]:
    from tidelog.streaming.state_format import FORMAT

    held = {name: count for name, _, count in meta["predicates"] if not is_hidden(name)}
    options = meta.get("stream", {}).get("options", {})
    return {
        "file": file,
        "size": size,
        "format": FORMAT,
        "tidelog": meta["tidelog"],
        "program": meta["program"],
        "source": meta["source"],
        "query": meta["query"],
        "timeline": meta["timeline"],
        "time": _format_clock(meta["clock"], meta["dates"]),
        "delay": {name or "": length for name, length in meta["delays"]},
        "memory": meta["memory"],
        "at": options.get("at"),
        "facts_in": meta["taken"],
        "late": meta["late"],
        "held": held,
        "held_between": sum(count for _, _, count in meta["predicates"]) - sum(held.values()),
    }


def _summarise_corrections(meta: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any] | None:
    """Return how far corrections reach back, and how many facts, answers and deletions are kept for them, if any."""
    if "corrections" not in meta:
        return None
    keys, waiting = meta["corrections"]["ledger"]
    return {
        "length": meta["corrections"]["length"],
        "facts": sum(arrays[f"ledger.{number}.times"].shape[1] for number in range(len(keys))),
        "answers": arrays["given.times"].shape[1],
        "unmatched": meta["corrections"]["unmatched"] + sum(count for *_, count in waiting),
    }


def _format_clock(time: str, dates: bool) -> str:
    from tidelog.language.time_text import format_iso

    return format_iso(Fraction(time)) if dates and "inf" not in time else time


def _format_summary(summary: dict[str, Any]) -> str:
    """Format a summary for people; a title stands in front of the first of its lines."""
    width = max((len(name) for name, count in summary["held"].items() if count), default=0)
    held = [f"{name:{width}}  {count:,}" for name, count in sorted(summary["held"].items()) if count]
    if summary["held_between"]:
        held.append(f"{summary['held_between']:,} of predicates that stand for parts of rules")
    delay = [f"{name}={length}" if name else length for name, length in summary["delay"].items()]
    began = summary["time"] != "-inf"
    lines = {
        "state": [
            f"{summary['file']}, {summary['size']:,} bytes, format {summary['format']}, by tidelog {summary['tidelog']}"
        ],
        "program": [f"{summary['source']}, {summary['timeline']} timeline", *summary["program"].splitlines()],
        "query": [summary["query"] + (f", at {summary['at']}" if summary["at"] else "")],
        "time": [summary["time"] if began else "no facts have arrived yet"],
        "delay": [", ".join(delay)],
        "facts in": [f"{summary['facts_in']:,}, and {summary['late']:,} too late"],
        "held": held or ["nothing"],
    }
    if kept := summary["corrections"]:
        counts = f"facts: {kept['facts']:,}, answers: {kept['answers']:,}, unmatched deletions: {kept['unmatched']:,}"
        lines["corrections"] = [f"within {kept['length']}; {counts}"]
    return "\n".join(
        f"{title if not number else '':<13}{line}"
        for title, texts in lines.items()
        for number, line in enumerate(texts)
    )

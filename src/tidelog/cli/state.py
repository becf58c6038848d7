"""`tidelog state`: what is in a saved state."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import click


@click.command(short_help="Say what is in a saved state.")
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def state(file: str, as_json: bool) -> None:
    """Say what is in a state that `tidelog stream --state FILE` saved: the rules, the query, how far time has come,
    and how many facts are held of each predicate.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' > rules.dmtl
      echo 'B(a)@5' | tidelog stream rules.dmtl --query A --input - --state a.state
      tidelog state a.state
    """
    from tidelog.data.files import read_bytes
    from tidelog.streaming.state import unpack

    data = read_bytes(file)
    meta, _ = unpack(data, "<stdin>" if file == "-" else file)
    found = _described(meta, file, len(data))
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else _page(found))


def _described(meta: dict[str, Any], file: str, size: int) -> dict[str, Any]:
    from tidelog.streaming.state import FORMAT

    held = {name: count for name, _, count in meta["predicates"] if not name.startswith("$")}
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
        "time": _shown(meta["clock"], meta["dates"]),
        "delay": {name or "": length for name, length in meta["delays"]},
        "memory": meta["memory"],
        "at": options.get("at"),
        "facts_in": meta["taken"],
        "late": meta["late"],
        "held": held,
        "held_between": sum(count for _, _, count in meta["predicates"]) - sum(held.values()),
    }


def _shown(time: str, dates: bool) -> str:
    from tidelog.language.times import format_iso

    return format_iso(Fraction(time)) if dates and "inf" not in time else time


def _page(found: dict[str, Any]) -> str:
    """The same for people; a title stands in front of the first of its lines."""
    width = max((len(name) for name, count in found["held"].items() if count), default=0)
    held = [f"{name:{width}}  {count:,}" for name, count in sorted(found["held"].items()) if count]
    if found["held_between"]:
        held.append(f"{found['held_between']:,} of predicates that stand for parts of rules")
    delay = [f"{name}={length}" if name else length for name, length in found["delay"].items()]
    began = found["time"] != "-inf"
    lines = {
        "state": [f"{found['file']}, {found['size']:,} bytes, format {found['format']}, by tidelog {found['tidelog']}"],
        "program": [f"{found['source']}, {found['timeline']} timeline", *found["program"].splitlines()],
        "query": [found["query"] + (f", at {found['at']}" if found["at"] else "")],
        "time": [found["time"] if began else "nothing has come yet"],
        "delay": [", ".join(delay)],
        "facts in": [f"{found['facts_in']:,}, and {found['late']:,} too late"],
        "held": held or ["nothing"],
    }
    return "\n".join(
        f"{title if not number else '':<13}{line}" for title, some in lines.items() for number, line in enumerate(some)
    )

"""`tidelog generate`: generate data of any size, with rules to go with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidelog.cli.standard_output import write_stdout

if TYPE_CHECKING:
    from tidelog.generate.catalogue import Generator


@click.command(short_help="Generate data of any size, with rules to go with it.")
@click.argument("name", metavar="SET", type=click.Choice(["traffic", "turbines", "lubm", "signals"]))
@click.option(
    "--facts", metavar="N", type=click.IntRange(min=1), default=10_000, show_default=True, help="How many facts."
)
@click.option("--size", metavar="N", type=click.IntRange(min=1), help="How many vehicles, turbines or signals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed gives other data.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "csv", "jsonl", "parquet"]),
    default="text",
    show_default=True,
    help="Tables are written as one file per predicate.",
)
@click.option("--rules", is_flag=True, help="Print the rules instead.")
@click.option("--arrivals", is_flag=True, help="Facts with their arrival times, for `tidelog hypothesise` (turbines).")
@click.option("-o", "--output", metavar="PATH", help="A file, or a folder (a/) for data and rules. Default: print.")
def generate(
    name: str,
    facts: int,
    size: int | None,
    seed: int,
    form: str,
    rules: bool,
    arrivals: bool,
    output: str | None,
) -> None:
    """Generate SET: traffic (vehicles on a ring of roads), turbines (whose reports arrive late), lubm (universities),
    or signals (in a network). The same seed gives the same data, in constant memory. A folder gets both the facts and
    the rules.

    \b
    Example:
      tidelog generate traffic --facts 5000 -o traffic/
      tidelog materialise traffic/traffic.dmtl traffic/traffic.facts --query Jam
      tidelog generate turbines --facts 50 --arrivals -o arrivals.jsonl
    """
    from tidelog.generate.catalogue import CATALOGUE
    from tidelog.generate.rule_files import read_rules
    from tidelog.generate.table_writer import join_lines

    chosen = CATALOGUE[name]
    if size is not None and not chosen.size:
        raise click.UsageError(f"{name} has no --size: it grows with --facts")
    if arrivals and (name != "turbines" or form != "text" or rules):
        raise click.UsageError("--arrivals works for turbines only, as JSON Lines; leave --format and --rules out")
    folder = output is not None and (output.endswith("/") or Path(output).is_dir())
    if form != "text" and not (folder or rules):
        raise click.UsageError(
            f"--format {form} writes one file per predicate: name a folder for them, like -o {name}/"
        )
    if rules:
        _write_texts([read_rules(chosen.file)], output)
    elif arrivals:
        lines = _generate_arrivals(facts, size or chosen.size, seed)
        _write_texts(join_lines(lines), f"{output}arrivals.jsonl" if folder else output)
    elif folder:
        assert output is not None
        _write_folder(Path(output), chosen, facts, size or chosen.size, seed, form)
    else:
        _write_texts(join_lines(chosen.facts(facts, size or chosen.size, seed)), output)


def _generate_arrivals(count: int, size: int, seed: int) -> Iterable[str]:
    from tidelog.generate import turbines

    arrivals = islice(turbines.generate_arrivals(size, seed=seed), count)
    return (json.dumps({"arrival": arrival, "fact": fact}) for arrival, fact in arrivals)


def _write_texts(texts: Iterable[str], output: str | None) -> None:
    """Write texts to a file, or to standard output."""
    if output is None or output == "-":
        for text in texts:
            write_stdout(text.encode())
        return
    with Path(output).open("w", encoding="utf-8") as file:
        file.writelines(texts)


def _write_folder(folder: Path, chosen: Generator, facts: int, size: int, seed: int, form: str) -> None:
    """Write data and rules into a folder, and print a command to try on them."""
    from tidelog.generate.rule_files import read_rules
    from tidelog.generate.table_writer import join_lines, write_tables

    folder.mkdir(parents=True, exist_ok=True)
    rules = folder / chosen.file
    rules.write_text(read_rules(chosen.file), encoding="utf-8")
    lines = chosen.facts(facts, size, seed)
    temporal = chosen.file.endswith(".tdl")
    if form == "text":
        data = folder / f"{chosen.name}.facts"
        _write_texts(join_lines(lines), str(data))
        click.echo(f"{facts:,} facts in {data}, and rules in {rules}. Next:")
        click.echo(f"  tidelog materialise {rules} {data} --query {chosen.query}")
    else:
        written = write_tables(lines, folder, form, temporal)
        counts = ", ".join(f"{predicate} ({count:,})" for predicate, count in sorted(written.items()))
        click.echo(f"{facts:,} facts in {folder}: {counts}; rules in {rules}. Next:")
        files = (
            " ".join(str(folder / f"{name}.{form}") for name in written) if len(written) < 5 else f"{folder}/*.{form}"
        )
        click.echo(f"  tidelog materialise {rules} {files} --query {chosen.query}")
    if chosen.name == "turbines":
        arrivals = folder / "arrivals.jsonl"
        _write_texts(join_lines(_generate_arrivals(facts, size, seed)), str(arrivals))
        query = f"--query '{chosen.query}(X,T)' --delay Temp=2"
        click.echo(f"  tidelog hypothesise {rules} {query} --input {arrivals}")

"""`tidelog fmt`: the printer."""

from __future__ import annotations

import click


@click.command(short_help="Print rules in their standard form.")
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@click.option(
    "--check", is_flag=True, help="Change nothing; name the files that are not in standard form (exit code 1)."
)
@click.option("-i", "--in-place", is_flag=True, help="Write the files instead of printing them.")
@click.option("--syntax", type=click.Choice(["dmtl", "tdl"]), help="Of standard input. Default: dmtl.")
def fmt(rules: tuple[str, ...], check: bool, in_place: bool, syntax: str | None) -> int:
    """Print RULES in their standard form, which reads as the same program: one rule a line, operators by their words,
    ranges as numbers. Comments stay where they are.

    \b
    Example:
      echo 'A(X):-SOMETIME[-2,0]B(X) % why' > rules.dmtl
      tidelog fmt rules.dmtl
      tidelog fmt --in-place rules.dmtl
      tidelog fmt --check rules.dmtl
    """
    from tidelog.language.layout import formatted
    from tidelog.language.program import read_text
    from tidelog.streaming.state import write_atomically

    if check and in_place:
        raise click.UsageError("--check changes nothing, and --in-place does: give one of them")
    if len(rules) > 1 and not (check or in_place):
        raise click.UsageError("several files are for --check and --in-place")
    if in_place and "-" in rules:
        raise click.UsageError("standard input has no place: leave --in-place out")
    changed = []
    for name in rules:
        text = read_text(name)
        kind = (syntax or "dmtl") if name == "-" else "tdl" if name.endswith(".tdl") else "dmtl"
        found = formatted(text, syntax=kind, source="<stdin>" if name == "-" else name)
        if not (check or in_place):
            click.echo(found, nl=False)
        elif found != text:
            changed.append(name)
            if in_place:
                write_atomically(name, found.encode())
    for name in changed:
        said = "formatted" if in_place else "not in standard form; `tidelog fmt --in-place` changes that"
        click.echo(f"{'<stdin>' if name == '-' else name}: {said}")
    return 1 if check and changed else 0

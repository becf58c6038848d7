"""`tidelog fmt`: print rules in their standard form."""

from __future__ import annotations

import click


@click.command(short_help="Print rules in their standard form.")
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@click.option(
    "--check", is_flag=True, help="Change nothing; list the files that are not in standard form (exit code 1)."
)
@click.option("-i", "--in-place", is_flag=True, help="Write the files instead of printing them.")
@click.option("--syntax", type=click.Choice(["dmtl", "tdl"]), help="The syntax of standard input. Default: dmtl.")
def fmt(rules: tuple[str, ...], check: bool, in_place: bool, syntax: str | None) -> int:
    """Print RULES in their standard form, which is the same program: one rule per line, operators as words, ranges as
    numbers. Comments stay where they are.

    \b
    Example:
      echo 'A(X):-SOMETIME[-2,0]B(X) % why' > rules.dmtl
      tidelog fmt rules.dmtl
      tidelog fmt --in-place rules.dmtl
      tidelog fmt --check rules.dmtl
    """
    from tidelog.language.formatter import format_source
    from tidelog.language.program import read_text
    from tidelog.streaming.state_format import write_atomically

    if check and in_place:
        raise click.UsageError("--check changes nothing, and --in-place does: give only one of them")
    if len(rules) > 1 and not (check or in_place):
        raise click.UsageError("several files need --check or --in-place")
    if in_place and "-" in rules:
        raise click.UsageError("standard input cannot be written to: leave --in-place out")
    changed = []
    for name in rules:
        text = read_text(name)
        kind = (syntax or "dmtl") if name == "-" else "tdl" if name.endswith(".tdl") else "dmtl"
        formatted_text = format_source(text, syntax=kind, source="<stdin>" if name == "-" else name)
        if not (check or in_place):
            click.echo(formatted_text, nl=False)
        elif formatted_text != text:
            changed.append(name)
            if in_place:
                write_atomically(name, formatted_text.encode())
    for name in changed:
        result = "formatted" if in_place else "not in standard form; `tidelog fmt --in-place` changes that"
        click.echo(f"{'<stdin>' if name == '-' else name}: {result}")
    return 1 if check and changed else 0

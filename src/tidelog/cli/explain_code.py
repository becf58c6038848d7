"""`tidelog explain-code`: what a diagnostic means, with an example."""

from __future__ import annotations

import click


@click.command("explain-code", short_help="Explain a diagnostic, such as TL101.")
@click.argument("code", metavar="CODE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain_code(code: str, as_json: bool) -> None:
    """Explain the diagnostic CODE: its title, the law behind it, how to fix it, an example and its correction.

    \b
    Example:
      tidelog explain-code TL101
      tidelog explain-code --json tl301
    """
    import json

    from tidelog.diagnostics.catalogue import CATALOGUE, entry_to_json, format_entry
    from tidelog.language.wording import suggest

    entry = CATALOGUE.get(code.upper())
    if entry is None:
        meant = suggest(code.upper(), CATALOGUE)
        hint = f"did you mean {meant}?" if meant else f"the codes are {min(CATALOGUE)} to {max(CATALOGUE)}"
        raise click.UsageError(f"there is no diagnostic {code}; {hint}")
    click.echo(json.dumps(entry_to_json(entry), ensure_ascii=False) if as_json else format_entry(entry))

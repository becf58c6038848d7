"""`tidelog lsp`: the language server for editors."""

from __future__ import annotations

import click


@click.command(short_help="Start the language server for editors.")
def lsp() -> None:
    """Start the language server: an editor runs this command and talks to it over standard input and output. It shows
    mistakes while you write, describes predicates, finds and renames them across rules, tests and schema, completes and
    formats rules, and runs rule tests. It needs the extra `lsp`.

    \b
    Example:
      m='{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
      printf "Content-Length: ${#m}\\r\\n\\r\\n$m" | tidelog lsp
    """
    from tidelog.optional_packages import require_package

    require_package("pygls", "lsp", "`tidelog lsp`")
    from tidelog.cli.standard_output import protocol_output
    from tidelog.language_server.server import build_server

    server = build_server()
    with protocol_output() as output:
        try:
            server.start_io(stdout=output)
        finally:
            server.worker.close()

"""`tidelog mcp`: the MCP server for agents."""

from __future__ import annotations

import click


@click.command(short_help="Start the MCP server for agents.")
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--reports", metavar="FOLDER", type=click.Path(exists=True, file_okay=False), help="Where `report` may write pages."
)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=30.0, show_default=True, help="Limit of one call.")
@click.option("--max-input", metavar="MB", type=click.IntRange(min=1), default=50, help="Limit of the files of a call.")
@click.option("--memory", metavar="GB", type=click.IntRange(min=1), default=8, help="Limit of the process. Default: 8.")
def mcp(folders: tuple[str, ...], reports: str | None, seconds: float, max_input: int, memory: int) -> None:
    """Start the MCP server: an agent runs this command and talks to it over standard input and output. It offers tools
    to check rules, infer a schema, run rules over files, run rule tests, explain facts and write reports. Tools read
    only files in the FOLDERs, after following links, and write only pages in the folder of --reports. It needs the
    extra `mcp`.

    \b
    Example:
      m='{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",'
      m="$m"' "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}'
      echo "$m" | tidelog mcp .
    """
    from tidelog.agent_server.commands import CommandTools, Limits
    from tidelog.cli.captured_run import run_captured
    from tidelog.optional_packages import require_package

    require_package("mcp", "mcp", "`tidelog mcp`")
    from tidelog.agent_server.server import build_server

    limits = Limits(seconds=seconds, input_bytes=max_input * 1_000_000, memory=memory << 30)
    tools = CommandTools(folders, run_captured, limits, reports)
    try:
        build_server(tools).run("stdio")
    finally:
        tools.close()

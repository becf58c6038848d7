"""The protocol: offer the tools to an agent over standard input and output, with the official SDK."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from tidelog.agent_server.commands import CommandError, CommandTools
from tidelog.errors import TidelogError
from tidelog.language.wording import join_words
from tidelog.version import __version__

INSTRUCTIONS = """\
tidelog finds conditions that unfold over time. A rule is `Head(X) :- Body.`; it says when its head holds.
Diamondminus[a,b] P: P held at some time between b and a ago. Boxminus[a,b] P: at every such time.
Diamondplus and Boxplus look ahead. A Since[a,b] B: B held in that range, and A ever since. not P: P does not hold now.
Ranges have units: [0,10min], (0,2h], [5s,5s], [0,inf). Variables begin with a capital letter, constants do not.
Aggregates: count[0,10min]{ Failed(U) } >= 5, sum{ A : Open(C, A) }, duration[0,1h]{ Hot(T) } >= 15min.
Comments begin with %. Facts are lines like Reading(t1,84)@10 or Open(d1)@[0,5); tables are CSV, JSON Lines or Parquet
whose file name is the predicate, with the time in the last column, or described by tidelog.toml (see infer_schema).
A way to work: write a rule file and a .test file beside it, `check` the rules, `test` them, `run` them over data,
and `explain` every answer that surprises you.
A .test file: `test: NAME`, `given:` with facts, `expect only:` / `expect:` / `expect not:` with facts, `until: T`.
"""

Rules = Annotated[str | None, Field(description="The path of a rule file (.dmtl, or .tdl for temporal Datalog)")]
Text = Annotated[str | None, Field(description="The rules as text, instead of a file")]
Data = Annotated[list[str], Field(description="Paths of data files; `Reading=file.csv` names the predicate of a table")]
Queries = Annotated[list[str] | None, Field(description="Only these predicates; by default all that rules derive")]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class _Server(MCPServer[Any]):
    """A server that refuses arguments that a tool does not have, where the SDK would ignore them."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool; raise `ToolError` if an argument has an unknown name."""
        for tool in await self.list_tools():
            known = list(tool.input_schema["properties"])
            for unknown in arguments.keys() - known if tool.name == name else ():
                raise ToolError(f"{name} has no argument {unknown}; its arguments are {join_words(known)}")
        return await super().call_tool(name, arguments, context)


def build_server(tools: CommandTools) -> MCPServer[Any]:
    """Build the server with its six tools."""
    server = _Server("tidelog", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    @server.tool(annotations=_READS)
    async def check(
        rules: Rules = None,
        rules_text: Text = None,
        query: Annotated[str | None, Field(description="Report only on the rules that this predicate needs")] = None,
    ) -> dict[str, Any]:
        """Check rules: syntax errors and mistakes with place and help; or how the rules are analysed: predicates,
        strata, recursion, and how far back each predicate is needed."""
        return await _run(tools.check, rules, rules_text, query)

    @server.tool(annotations=_READS)
    async def infer_schema(data: Data) -> dict[str, Any]:
        """Look at tables and print a first schema of them (types, time column, unit), to be saved as tidelog.toml."""
        return await _run(tools.infer, data)

    @server.tool(annotations=_READS)
    async def run(
        data: Data,
        rules: Rules = None,
        rules_text: Text = None,
        queries: Queries = None,
        until: Annotated[str | None, Field(description="Stop time here, as a number or a date")] = None,
    ) -> dict[str, Any]:
        """Run rules over data files and return all facts that hold, one per line, with exact intervals."""
        return await _run(tools.run, rules, rules_text, data, queries or [], until)

    @server.tool(annotations=_READS)
    async def test(paths: Annotated[list[str], Field(description="Test files, or folders of them")]) -> dict[str, Any]:
        """Run rule tests; every wrong fact comes with the reason."""
        return await _run(tools.test, paths)

    @server.tool(annotations=_READS)
    async def explain(
        data: Data,
        fact: Annotated[str, Field(description="A fact with its time, like Hot(t1)@7 or Hot(t1)@[0,3]")],
        rules: Rules = None,
        rules_text: Text = None,
    ) -> dict[str, Any]:
        """Say why a fact follows from rules and data, as a proof; or why it does not follow."""
        return await _run(tools.explain, rules, rules_text, data, fact)

    @server.tool(annotations=_WRITES)
    async def report(
        rules: Annotated[str, Field(description="The path of a rule file")],
        data: Data,
        output: Annotated[str, Field(description="The name of the page, like report.html")],
        queries: Queries = None,
    ) -> dict[str, Any]:
        """Write an HTML page with timelines and proofs into the server's folder for reports."""
        return await _run(tools.report, rules, data, queries or [], output)

    return server


async def _run(tool: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Run a tool in a thread; what is wrong with its input becomes an error that the agent can read."""
    try:
        return await anyio.to_thread.run_sync(partial(tool, *args))
    except (TidelogError, CommandError) as problem:
        raise ToolError(str(problem)) from None

"""TL91x: servers for editors, agents and metrics."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

SERVER_CODES = (
    DiagnosticEntry(
        "TL911",
        "a package of an extra is missing",
        Example(
            "situation",
            "`tidelog lsp` is started in an environment without pygls.",
            "run `pip install 'tidelog[lsp]'`.",
        ),
    ),
    DiagnosticEntry(
        "TL912",
        "a new name that cannot be given in an editor",
        Example(
            "situation",
            "the predicate Hot is renamed to High, and another predicate is named High already.",
            "choose a name that is not used yet.",
        ),
        law="renaming changes names only: the program must mean the same afterwards",
    ),
    DiagnosticEntry(
        "TL913",
        "a limit of a server",
        Example(
            "situation",
            "a rule test that an editor starts runs for more than a minute.",
            "give it fewer facts, or run it with `tidelog test`, which has no limit.",
        ),
        help="use less data or a shorter range of time, or run the command in a terminal, where there is no limit",
    ),
    DiagnosticEntry(
        "TL914",
        "a file that a server may not use",
        Example(
            "situation",
            "an agent asks `tidelog mcp rules` for ../data/payments.csv, which is not in the folder rules.",
            "name the folder, too: `tidelog mcp rules data`.",
        ),
        law="the tools read files in the named folders only, after following links, and write reports only",
    ),
)

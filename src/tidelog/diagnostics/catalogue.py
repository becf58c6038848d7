"""All diagnostics by code, and the page that `tidelog explain-code` prints for one."""

from __future__ import annotations

from textwrap import fill, indent

from tidelog.diagnostics.data_codes import DATA_CODES
from tidelog.diagnostics.entry import DiagnosticEntry
from tidelog.diagnostics.hypothetical_codes import HYPOTHETICAL_CODES
from tidelog.diagnostics.pipeline_codes import PIPELINE_CODES
from tidelog.diagnostics.reasoning_codes import REASONING_CODES
from tidelog.diagnostics.rule_codes import RULE_CODES
from tidelog.diagnostics.rule_test_codes import RULE_TEST_CODES
from tidelog.diagnostics.server_codes import SERVER_CODES
from tidelog.diagnostics.stream_codes import STREAM_CODES
from tidelog.diagnostics.window_codes import WINDOW_CODES

#: Every diagnostic, in the order of the codes.
CATALOGUE: dict[str, DiagnosticEntry] = {
    entry.code: entry
    for entry in (
        *RULE_CODES,
        *DATA_CODES,
        *REASONING_CODES,
        *STREAM_CODES,
        *WINDOW_CODES,
        *HYPOTHETICAL_CODES,
        *PIPELINE_CODES,
        *RULE_TEST_CODES,
        *SERVER_CODES,
    )
}

_WIDTH = 100


def format_entry(entry: DiagnosticEntry) -> str:
    """Format the page of one diagnostic: title, law, help, note, an example and its correction."""
    parts = [f"{entry.code}: {entry.title}"]
    for label, text in (("law", entry.law), ("help", entry.help)):
        if text:
            parts.append(fill(f"{label}: {text}", _WIDTH))
    if entry.note:
        parts.append(fill(entry.note, _WIDTH))
    example = entry.example
    if example.kind == "situation":
        parts.append(fill(f"Example: {example.text}", _WIDTH))
        parts.append(fill(f"Instead: {example.correction}", _WIDTH))
    else:
        parts.append(f"Example:\n{indent(example.text, '    ')}")
        parts.append(f"Instead:\n{indent(example.correction, '    ')}")
    return "\n\n".join(parts)


def entry_to_json(entry: DiagnosticEntry) -> dict[str, object]:
    """Convert an entry to the object that `tidelog explain-code --json` prints."""
    example = entry.example
    return {
        "code": entry.code,
        "title": entry.title,
        "law": entry.law,
        "help": entry.help,
        "note": entry.note,
        "example": {"kind": example.kind, "text": example.text, "correction": example.correction},
    }

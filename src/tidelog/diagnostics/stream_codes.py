"""TL4xx: saved states, alerts and the live page of a stream."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

STREAM_CODES = (
    DiagnosticEntry(
        "TL401",
        "a damaged state, or no state at all",
        Example("command", "tidelog state data.facts", "tidelog state stream.state"),
        law="a state is used only if every byte of it is as it was written",
    ),
    DiagnosticEntry(
        "TL402",
        "a state of another format version",
        Example(
            "situation",
            "a newer tidelog saved the state that an older one loads.",
            "use the version that saved it, or start without the state.",
        ),
        law="a state is read by the format that wrote it",
        help="use the version of tidelog that wrote it, or start again without it",
    ),
    DiagnosticEntry(
        "TL403",
        "a state of another program",
        Example(
            "situation",
            "the rules were edited after the state was saved, and the session is loaded with the new rules.",
            "ask for the change with --changed-rules, or start without the state.",
        ),
        law="a state continues with the rules, the query and the options that it was saved with",
    ),
    DiagnosticEntry(
        "TL404",
        "unsupported alert options",
        Example(
            "command",
            "tidelog stream rules.dmtl --query Alarm --input data.facts --per 1",
            "tidelog stream rules.dmtl --query Alarm --input data.facts --cooldown 5 --per 1",
        ),
    ),
    DiagnosticEntry(
        "TL405",
        "a port that the live page cannot use",
        Example(
            "situation",
            "--ui 8000 is given while another process listens on port 8000.",
            "choose another port: --ui 9000.",
        ),
        help="choose another port: --ui 9000",
    ),
    DiagnosticEntry(
        "TL406",
        "alerts that could not be delivered",
        Example(
            "situation",
            "the address of --notify does not answer until the stream ends, and there is no --state.",
            "add --state FILE, which keeps such alerts for the next run, and check the address.",
        ),
        law="an alert is delivered once a web hook answers with a 2xx status, or a command ends with exit code 0",
        help="check the receiver; --state FILE keeps alerts that are not delivered for the next run",
    ),
    DiagnosticEntry(
        "TL407",
        "a deletion where facts cannot be deleted",
        Example(
            "situation",
            "the stream has the line -Order(o1)@3, and there is no --corrections.",
            "say for how long corrections are taken: tidelog stream ... --corrections 1h.",
        ),
        law="a deletion takes back a fact of a stream that takes corrections",
    ),
    DiagnosticEntry(
        "TL408",
        "corrections that do not go together with other options",
        Example(
            "command",
            "tidelog stream rules.dmtl --query Alarm --input data.facts --delay 5 --corrections 3",
            "tidelog stream rules.dmtl --query Alarm --input data.facts --delay 5 --corrections 10",
        ),
        law="corrections reach back at least as far as the delay, and need the facts of that time",
    ),
    DiagnosticEntry(
        "TL409",
        "a change log that cannot be read",
        Example(
            "situation",
            "tidelog as-of gets a log of plain text, which does not say when changes were known.",
            "write the log with --format jsonl: tidelog stream ... --corrections 1h --format jsonl.",
        ),
        law="a change log has for every change `change` (+ or -) and `known`, the clock at which it was reported",
    ),
    DiagnosticEntry(
        "TL410",
        "a Kafka topic that cannot be read",
        Example(
            "command",
            "tidelog stream rules.dmtl --query Late --input kafka://localhost/order",
            "tidelog stream rules.dmtl --query Late --input kafka://localhost:9092/orders",
        ),
        law="a topic is written kafka://broker:9092/topic, and a schema describes its JSON records",
        help="check the broker, the name of the topic, and the section of the schema with `topic`",
    ),
)

"""TL90x: test files of rules."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

RULE_TEST_CODES = (
    DiagnosticEntry(
        "TL901",
        "an unreadable test file, or none",
        Example(
            "test",
            "rules: rules.dmtl\ntest: smoke alarms\ngiven:\nSmoke(hall)@3\nexpects:\nAlarm(hall)@3",
            "rules: rules.dmtl\ntest: smoke alarms\ngiven:\nSmoke(hall)@3\nexpect:\nAlarm(hall)@3",
        ),
        law=(
            "a test file has sections: `rules:`, `given:`, `test:`, `expect:`, `expect only:`, `expect not:`, "
            "`query:`, `until:`, `timeline:`, `delay:`, `stream:`"
        ),
    ),
)

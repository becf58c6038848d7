"""The diagnostics of tidelog, declared once, each with its code, title, law, help and an example.

Read `entry` for what is declared, then `catalogue` for how an entry is found. The entries themselves are in one module
per range of codes: `rule_codes` (TL0xx and TL1xx), `data_codes` (TL2xx), `reasoning_codes` (TL3xx), `stream_codes`
(TL4xx; TL5xx is unused), `window_codes` (TL6xx), `hypothetical_codes` (TL7xx), `pipeline_codes` (TL8xx),
`rule_test_codes` (TL90x), `server_codes` (TL91x).

Code that reports a problem creates a `tidelog.errors.Diagnostic` with a code and a message. Law and help come from the
entry unless the case at hand calls for others. To add a diagnostic, add an entry with the next free code, use it, and
add a line to docs/reference/errors.md; tests check that the three agree and that the examples give the codes.
"""

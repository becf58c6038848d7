"""The `tidelog` command line: one module per command, named after it. Read `main.py` first.

The commands: `as_of`, `check`, `demo`, `entails`, `explain`, `explain_code`, `fmt`, `generate`, `hypothesise`,
`infer`, `lsp`, `materialise`, `mcp`, `report`, `run`, `stable`, `state`, `stream`, `test`, `warm`, `window`.

Shared by the commands: `options.py` (options and the parsers of their values), `program_input.py` (load rules and
data), `schema_option.py` and `bad_rows.py` (`--schema`, `--bad-rows`), `warning_output.py` (warnings and `--strict`),
`fact_output.py` (`--format` and `--output`), `signals.py` (Ctrl-C and SIGTERM), `standard_output.py`, `live_page.py`
(`--ui`), `metrics_options.py` (`--metrics`, `--otlp`), `file_watch.py` (`--watch`).

Of `stream`: `stream_options.py` declares and checks the options, `stream.py` sets the session up, `stream_session.py`
runs the stream (with `wall_clock.py` for `--heartbeat`), `stream_output.py` writes its answers, `alert_delivery.py`
sends alerts to web hooks and commands, and `stream_state.py` keeps the command's options in a saved state.

Of `hypothesise`: `arrival_warnings.py` warns of arrivals that look like mistakes, and `moment_output.py` writes the
answers. Of `stable`: `labelled_facts.py` writes tables of models.

Of `mcp`: `captured_run.py` runs other commands and keeps what they print.

Commands import the engine inside their functions, so that `tidelog --help` and errors in options appear at once.
"""

"""HTML pages: a report of what holds and why, and a live view of a running stream.

Both pages use the same bundle in `static`, built from the folder `page` of the repository, with different data beside
it. Read `html_document.py` first (bundle, style and data in one sealed page), then `report_data.py` or
`live_board.py`.

| module | holds |
|---|---|
| `html_document` | the page: bundle, data, content security policy |
| `report_data`, `stream_report` | the data of a report; of a stream's report |
| `timeline_data`, `timeline_builder`, `packed_columns` | timelines as columns, and their compact JSON form |
| `proof_columns`, `awaited_timeline`, `step_charts` | proofs, possible answers and step figures of a report |
| `live_board`, `live_observer`, `live_server` | the figures of a running stream, what updates them, the server |
| `open_alerts`, `live_reasons` | the answers of a running stream that hold now, and why |
| `predicate_roles`, `gap_columns` | which predicates come first on a report; why intervals are missing |
| `written_durations`, `written_rules` | durations and rules as the user wrote them |
"""

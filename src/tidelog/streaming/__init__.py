"""Standing queries over streams: facts in as they arrive, answers out as they become certain.

Read `reasoner.py` first: `Reasoner` is the session that users hold. The other modules, from the outside in:

- `fact_input` reads the facts of a push, `stream_reader` reads files and pipes in chunks. `stream_inputs` opens the
  inputs of `tidelog stream`: `merged_input` merges several by time, and `followed_inputs` follows live ones
  (`live_input`): `live_files` (files that grow, and pipes), whose lines `line_decoder` turns into facts, and
  `kafka_input`, where records of topics become facts.
- `compiled_query` and `stream_plans` prepare the rules. `step_layout` sorts facts into steps and separates late ones,
  which `Reasoner` counts. `query_evaluation` and `stepper` evaluate steps, `recursion_start` where a recursion
  through time begins, `finer_grid` on a finer grid where that is needed; `speculation` evaluates some ahead.
- With `corrections`, late facts and deletions change earlier answers: `arrivals` are what comes in a step,
  `assertion_ledger` holds what can be corrected, `checkpoints` (made of `marks`) where an evaluation can go back to,
  and `answer_segments` the answers given since. `key_replay` evaluates the keys of a correction alone, where the query
  falls apart by keys, and `correction_windows` does so for many steps at once; `joined_steps` takes many steps of rules
  with aggregates in one. `corrected_steps` takes the steps, in the `arrival_order` of facts and deletions; `feeding`
  does it without corrections. `answer_changes` are their results, `change_log` reads them back, `alert_corrections`
  withdraws alerts, and `correction_state` saves and restores it all.
- `calendar_feed` generates the days and months that rules read, ahead of the clock.
- `answers` holds the results of steps, `output_times` the times at which answers are asked for (`output_time_text`
  reads them), and `completeness` how far they are known. `alerts` and `watch` turn answers into alerts. `fact_log`
  keeps facts for explanations.
- `snapshot` and `state_format` save and load states; `state_migration` moves a state onto changed rules.
- `capacity` bounds how many facts are held. `observer` is the protocol of pages that watch a stream.
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)

"""The engine: facts as flat arrays, one compiled machine that runs any plan, and the fixpoint around it.

- `fact_store`, `store_tables`, `array_room`: the facts, their hash tables and indexes, and how large arrays are made.
  `bulk_load`: bring whole relations into it. `store_parts`: the facts of some keys, to evaluate them apart;
  `atom_links`: what runs note about atoms.
- `plan_machine`, `join_kernels`, `standing_kernels`: the compiled function that takes records and runs the plans they
  trigger; facts that hold until something changes. `Since` is evaluated in `join_kernels.operand_times`, by the
  definition in `timeline.grid.since` (proofs evaluate it again in `timeline.time_sets`).
- `fixpoint`, `batch_problem`: batch evaluation, component by component, as far in time as `horizons` says;
  `repetition_search`, `extent` and `repetition` find, hold and print facts that repeat for ever. `single_literals`:
  rules that need no join, over whole columns; `maximal_intervals` sorts and coalesces these.
- `bucket_threads`: large batch problems, divided over the threads of the process.
- `gap_jumps`: recursion over groups of facts that lie far apart; `shift_recursion`: recursion that only moves facts.
- `temporal_recursion`: negation and aggregates in a recursion that goes back in time, slice by slice.
- `numeric_steps`, `running_numbers`: calculations and aggregations between the runs of the machine, all at once or
  forward in time; `tidelog.numeric` computes them.
- `stream_kernel`, `agenda`, `retention`: the steps of a stream, the atoms to re-evaluate, and which facts to forget;
  `time_heap` and `system_clock` serve them.
- `generated_joins`, `generated_kernel`, `generated_tier`: a stream kernel for the plans of one program, how its source
  is written, and when a stream gets it.

Read `plan_machine.py` first; `compiler.opcodes` describes the words of its plans.
"""

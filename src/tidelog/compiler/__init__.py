"""From a program to what an engine runs: one visible list of passes, each a pure function in a module of its own.

`passes.PASSES` lists the passes in order; `compile_program` runs them for a `Target` (the engine, the queries, the
timeline) and gives a frozen `CompiledProgram`, the only form of a program that engines take. The join orders of a rule
depend on how many facts there are, so they are chosen later, when those numbers are known (`order_joins`, `encode`).

The passes: `validate`, `stratify`, `choose_grid`, `flatten`, `prune`, `normalise_streams`, `collect_arities`,
`group_components`, `bound_memory`, `standing_facts`; then, per component, `order_joins` and `encode`.

Read `passes.py` first, then `compiled_program.py`. Besides the passes: `flat_rules` (rules in normal form, as data),
`opcodes` (the words of encoded plans), `prepare_facts` (from users' data to the grid, for every engine), `plan_text`
(rules and plans as text), `violations` and `undecided` (violated constraints, and recursions that could not be decided,
in words), `late_rows` (aggregates over streams that have to look back), `key_arguments` (by which argument a
standing query falls apart), `calendar_demand` (in which ranges of time rules read a calendar) and `calendar_input` (the
facts of the calendar for a run).
"""

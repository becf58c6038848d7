"""Numbers in rules: what constants are worth, and what counts, sums and their relatives over rows are at each time.

Rows come in as columns of constants with intervals, and go out the same way. Read `rows.py` and `numbers.py` first,
then `aggregation.py`.

| module | holds |
|---|---|
| `rows` | the rows of one predicate as columns |
| `numbers`, `number_kernels` | numbers among the constants as arrays; interning of computed numbers |
| `expressions`, `pattern_matching` | exact evaluation of expressions and text tests, one binding at a time |
| `calculation`, `calculation_kernels`, `constant_values` | the same for whole columns |
| `aggregation` | counts, sums, averages, least, greatest, first and last values, start times |
| `durations` | how long a group held within a window, compared with a limit |
| `contributions`, `aggregate_state` | what aggregators keep, and the steps that their kernels share |
| `group_parts` | the groups of some keys, to compute them apart |
| `window_kernels`, `point_kernels`, `duration_kernels` | the sweeps through time |
| `hash_tables`, `sorted_runs`, `pairing_heaps` | the data structures inside |
| `refinement` | positions on a finer grid |
"""

"""Facts as columns of numbers: reading, printing and shipping them.

Every constant becomes one integer in a `Symbols` dictionary, every time a number of ticks. Read `relation.py` first
(the columns that all readers produce), then `symbol_table.py` (the dictionary) and `dataset.py` (what users hold).

| module | holds |
|---|---|
| `dataset` | `Dataset`, the public class |
| `relation` | the facts of one predicate as columns, and common time steps |
| `statistics` | the constants of a dataset, and how fine its times are |
| `symbol_table`, `symbol_kernels`, `constant_order` | the dictionary of constants, its kernels, the order of ids |
| `packed_rows` | rows that are sorted as one number each |
| `data_files` | which reader a path goes to; chunks, compression, encoding |
| `fact_scanner`, `scan_kernels`, `number_scanner` | the compiled reader of fact text |
| `range_scanner` | large files of fact text, read by several threads |
| `table_reader`, `table_cells`, `json_lines` | CSV, JSON Lines and Parquet |
| `data_frames`, `arrow_columns`, `arrow_kernels` | dataframes: Arrow columns read from their buffers |
| `table_lines` | CSV and JSON Lines that are still being written, line by line |
| `column_types`, `time_columns`, `arrow_calls` | the types of columns; columns of times; functions of Arrow |
| `schema`, `schema_inference` | which columns a table has, and what they mean; a first schema, found in data |
| `deletions` | deletions among facts, in fact text and in columns `op` |
| `bad_rows`, `row_recovery` | rows that cannot be read: where they go; how they are separated from the others |
| `input_warnings`, `time_units` | warnings about facts that do not fit the rules; times in different units |
| `unknown_constants` | constants of rules that no fact has |
| `fact_printer`, `fact_sheet`, `notebook_view` | facts as text or JSON Lines; as a table; as HTML in notebooks |
| `arrow_output` | facts as Arrow tables, which dataframes are made from |
| `calendar_facts` | days, months and hours of time zones, generated as facts |
| `wire_format` | facts as bytes, for Spark and saved states, and the buckets that they go to |
"""

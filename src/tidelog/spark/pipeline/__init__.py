"""Pipeline files (`tidelog run`): read and check the file, run its SQL over sources, write answers to sinks.

Read `pipeline_config` (a pipeline as data) first, then `preparation`, and `stream_run` or `batch_run`. `pipeline_file`
reads the file (with `declared_columns`), `sources` opens files and topics, `bad_rows` separates the rows that cannot be
read, `fact_queries` makes facts of the others (with `sql`, which checks the queries), `sinks` writes the answers.
`correction_keys` checks the keys for corrections, and `change_envelope` takes rows out of Debezium's envelopes;
`awaited_table` reads the options of hypothetical answers, `pipeline_warnings` decides which warnings are errors,
`checkpoint_record` compares a checkpoint with the pipeline that continues it (through `hadoop_files`), and `progress`
says how far a run is.
"""

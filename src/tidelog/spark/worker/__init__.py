"""The code that runs inside Spark's Python workers; none of it needs a Spark session.

Read `packed_rows` (the rows between stages) first, then `fact_packer` (rows of sources to packed facts), then `bucket`
(the engine of one bucket), then `stateful_operator` (streams) and `batch_worker` (batch jobs). Over stable models these
run `stable_bucket` and `stable_worker`. `late_facts` separates and counts late facts. `answer_columns` and `alert_rows`
turn answers into columns and alerts. With corrections, `change_log` packs changes of answers, and `passed_facts`
corrects facts that later stages have received. `bucket_program` finds the rules and the background of a bucket;
`history_slices` cuts the history of a backfill into steps, and `end_of_time` computes the answers at the end of a job.
`declared_rows` reads the tables of sources whose columns are declared. `engine_cache` keeps engines between batches and
passes them on between workers; `worker_daemon` is the process that the workers of a local Spark are forked from.
"""

"""The plan of a job: what the driver decides once and every worker follows. Read `job_plan` first.

`fact_columns` are the columns of facts in a DataFrame, `bucket_keys` the keys under which Spark places buckets,
`state_layout` says when a state fits a new split, `endless_predicates` finds predicates whose facts may repeat
forever, and `stable_program` checks and completes programs for jobs over stable models.
"""

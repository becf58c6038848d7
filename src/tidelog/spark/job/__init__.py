"""A job over DataFrames: plan it, build its DataFrame, read its outputs and metrics. Read `build` first.

- `options` are the options of a job, `output` is what `build` gives.
- `fact_schemas` describes the columns of fact DataFrames with the types that `struct_types` reads, `fact_frames` finds
  the arguments and times among them, `shared_scans` combines those that come from one source, `stage_frames` builds
  the DataFrame of all stages, `answer_types` chooses the types of answers, `wake_clock` is a source that wakes up
  buckets without facts.
- `change_log_frames` folds the changes of a job with corrections into the answers that stand.
- `session` starts Spark, with the Java that `java` finds, or a session of Spark Connect, which `connect` is about;
  `java_process` and `failures` explain how a job ended.
- `metrics` collects figures of batches, and `live_metrics` shows them on the live page.
"""

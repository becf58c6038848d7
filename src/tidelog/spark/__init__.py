"""The same rules on Apache Spark: batch and streaming DataFrames of facts in, a DataFrame of answers out.

The packages; each imports only from those listed before it:

    plan/      what the driver decides once and all workers follow: stages, buckets, routes, columns
    worker/    what runs inside Python workers: packing, engines of buckets, the stateful operator
    awaiting/  hypothetical answers: their plan, their buckets, their rows
    job/       a job over DataFrames: options, the DataFrame of all stages, outputs, metrics; sessions
    pipeline/  a pipeline file: reading and checking it, SQL, sources, sinks, running it

Read `plan/job_plan.py` first, then `job/build.py` (`reason`, `build_job`). `tidelog run` starts in
`pipeline/preparation.py`.

A row of a source, such as a Kafka topic, becomes a fact in three steps: `pipeline/sources` opens the source and parses
Kafka's JSON (`worker/declared_rows` does so where the pipeline declares the columns), `pipeline/fact_queries` runs the
SQL and finds the time columns, and `worker/fact_packer` turns rows into packed facts. Late facts are separated and
counted in `worker/late_facts`.
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)

"""Hypothetical answers on Spark: answers that are still possible while facts may be late.

They are the last stage of a job. Read `awaited_bucket` first; `awaited_plan` adds the stage to a job. Streams run it in
`awaited_operator`, batch jobs in `awaited_worker`; `change_rows` holds the rows that they give.
"""

"""The same rules on Apache Spark: batch and streaming DataFrames of facts in, a DataFrame of answers out."""

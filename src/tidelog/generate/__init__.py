"""Generators of example data; the same seed gives the same data.

Read `catalogue.py` first: it lists the data sets, each with its rules and a generator of facts as text.

| module | holds |
|---|---|
| `catalogue`, `rule_files` | the data sets by name; the rules that ship with them |
| `traffic`, `turbines`, `lubm`, `signals` | the generators |
| `time_order` | facts sorted by time, in constant memory |
| `table_writer`, `traffic_pipeline` | generated facts as tables; traffic as the input of a Spark pipeline |
"""

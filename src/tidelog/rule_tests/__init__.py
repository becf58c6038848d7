"""Tests of rules in plain text, which `tidelog test` runs.

Read `case_reader.py` first: it describes the file format and parses it to `RuleTest`s. `case_runner.py` runs them, in
batch and as a stream, and explains every mismatch. `case_warnings.py` finds warnings about all tests of a
file together, and `outcome_text.py` prints outcomes.
"""

"""Corrections: facts that arrive late, change or are withdrawn.

`ledger.py` keeps the multiset of assertions that input is made of; its compiled parts are in `ledger_kernels.py`.
`view.py` holds a model that is kept up to date: `analysis.key_stages` finds what can be evaluated for some constants
alone, `stage_evaluation.py` evaluates it (with `time_shift.py`, each constant in its own time; with `single_facts.py`,
each fact), `stored_extents.py` keeps the results, and `difference.py` (with `difference_kernels.py`) compares them with
those before.
"""

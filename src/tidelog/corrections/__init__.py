"""Corrections: facts that arrive late, change or are withdrawn.

`ledger.py` keeps the multiset of assertions that input is made of; its compiled parts are in `ledger_kernels.py`.
"""

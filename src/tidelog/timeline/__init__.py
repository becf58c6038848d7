"""Time: intervals with exact rational ends, and the integer grid that engines work on.

Read `interval` for what users see, then `grid` for how engines represent intervals as pairs of integers. `time_sets`
has sets of times, in plain Python, for proofs and stable models.
"""

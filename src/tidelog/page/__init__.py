"""Pages to look at: a report of what holds and why, and a view of a running stream.

Both are the one bundle in `static`, built from the folder `page` of the project, with different data beside it.
"""

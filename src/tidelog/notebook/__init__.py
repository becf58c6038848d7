"""tidelog in notebooks: cells of rules, completion of predicates, and a live view of a reasoner.

`%load_ext tidelog` loads `extension`, which registers the cell magic of `cell_magic` and the matcher of `completion`.
`live_view` needs no extension. IPython is imported where it is used; it is there wherever a notebook runs.
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)

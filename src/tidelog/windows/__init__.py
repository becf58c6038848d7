"""How much history a query needs, and which rules are redundant.

Start with `validity`: `window` computes the radius, the uniform window and, over known objects, the least valid window
of a query; `contained` compares two queries. The other modules, in the order in which `validity` uses them:

- `object_names`: the objects that users name.
- `forward_query`: the rules that a window is defined for; `window_algorithm` is the definition itself, as a program.
- `uniform_validity`: windows that are valid for any data, found by freezing rules (`frozen_terms`) and evaluating them
  (`pointwise_evaluation`).
- `open_containment`: containment over all data, for queries without recursion, by unfolding and freezing.
- `loss_search`: the search over known objects, with clingo (`incremental_solver`), in `product_program`,
  `unrolled_product` and `product_search`; `witness` is the stream that it finds where a window loses an answer.
- `closed_domain`: streaming with the window that was proved for known objects.

For DatalogMTL, `retention_search` finds how long each predicate has to be kept, over rules that `time_cells` makes;
`redundant_rules` finds rules that follow from others (`body_freezing`), and `memory_report` explains
how long facts are kept and why. The theory is that of Ronca, Kaminski, Cuenca Grau and Horrocks, "The Window Validity
Problem in Rule-Based Stream Reasoning" (KR 2018), called "the paper" in this package.
"""

from tidelog.lazy_names import attach_lazy_names

__all__, __getattr__, __dir__ = attach_lazy_names(__name__)
